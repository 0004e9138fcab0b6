// SPDX-License-Identifier: MIT
#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "reports/escape.h"

namespace cuaudit::report {
namespace {

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

// True where the letters at `at` would make a link, a mention or a picture of what stands around them.
bool IsMarkup(std::string_view line, std::size_t at) {
  const char c = line[at];
  if (std::string_view("&<>`*[]|\\~$").find(c) != std::string_view::npos) return true;
  const std::string_view before = line.substr(0, at);
  const std::string_view after = line.substr(at + 1);
  if (c == '_') return before.empty() || after.empty() || !IsWord(before.back()) || !IsWord(after.front());  // within a word it is none
  if (c == ':') return after.starts_with("//") || before.ends_with("mailto") || before.ends_with("xmpp");
  if (c == '.') return before.ends_with("www") || before.ends_with("WWW");
  return false;
}

}  // namespace

std::string ForMarkdown(std::string_view text) {
  const std::string line = ForTerminal(text);
  std::string marked;
  marked.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (IsMarkup(line, i)) {
      marked += fmt::format("&#{};", static_cast<int>(line[i]));
    } else {
      marked += line[i];
    }
  }
  return marked;
}

std::string MarkdownCode(std::string_view text, std::size_t most) {
  return text.empty() ? std::string() : "<code>" + ForMarkdown(Shortened(text, most)) + "</code>";
}

std::string MarkdownFence(std::string_view lines, std::string_view language) {
  std::string block;
  std::size_t longest = 0;
  std::size_t run = 0;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    block += ForTerminal(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  for (const char c : block) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fence + std::string(language) + "\n" + block + fence + "\n";
}

}  // namespace cuaudit::report
