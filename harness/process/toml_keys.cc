// SPDX-License-Identifier: MIT
#include "harness/process/toml_keys.h"

#include <algorithm>

namespace cuaudit::harness {
namespace {

// Where the string ends whose first quote is at `at`: behind its last quote. A string of one line ends with the line at the latest.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool long_one = text.substr(at, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''");
  const std::string_view end = text.substr(at, long_one ? 3 : 1);
  for (std::size_t i = at + end.size(); i < text.size(); ++i) {
    if (!long_one && text[i] == '\n') return i;
    if (quote == '"' && text[i] == '\\' && i + 1 < text.size() && (long_one || text[i + 1] != '\n')) {
      ++i;
    } else if (text.substr(i).starts_with(end)) {
      return i + end.size();
    }
  }
  return text.size();
}

bool IsInKey(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == ' ' || c == '\t';
}

}  // namespace

std::optional<std::uint32_t> LineOfDeepKey(std::string_view text) {
  std::size_t braces = 0;
  std::size_t around = 0;  // dots of the keys in open braces
  std::size_t dots = 0;    // of the key that may begin here; a number has one, too
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = EndOfString(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    ++at;
    if (c == '.') {
      if (around + ++dots > kMostDotsInKey) {
        const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
        return static_cast<std::uint32_t>(line + 1);
      }
    } else if (!IsInKey(c)) {
      if (c == '=' && braces != 0) around += dots;
      dots = 0;
      if (c == '{') ++braces;
      if (c == '}' && braces != 0 && --braces == 0) around = 0;
    }
  }
  return {};
}

}  // namespace cuaudit::harness
