// SPDX-License-Identifier: MIT
#include "harness/process/shell_quote.h"

#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr std::string_view kSpecial = "|&;<>()$`\"*?[#~!{}\n\t";  // unquoted, a shell takes these for more than letters

// Reads the rest of '...' and moves `line` behind it. False: it has no end.
bool ReadQuoted(std::string_view* line, std::string* word) {
  const std::size_t end = line->find('\'');
  if (end == std::string_view::npos) return false;
  word->append(line->substr(0, end));
  line->remove_prefix(end + 1);
  return true;
}

// Reads the rest of $'...': a backslash is followed by a quote, a backslash or three octal digits.
bool ReadEscaped(std::string_view* line, std::string* word) {
  while (!line->empty()) {
    const char c = line->front();
    line->remove_prefix(1);
    if (c == '\'') return true;
    if (c != '\\') {
      *word += c;
      continue;
    }
    if (line->empty()) return false;
    if (line->front() == '\'' || line->front() == '\\') {
      *word += line->front();
      line->remove_prefix(1);
      continue;
    }
    if (line->size() < 3) return false;
    unsigned value = 0;
    for (const char digit : line->substr(0, 3)) {
      if (digit < '0' || digit > '7') return false;
      value = value * 8 + static_cast<unsigned>(digit - '0');
    }
    if (value == 0 || value > 255) return false;
    *word += static_cast<char>(value);
    line->remove_prefix(3);
  }
  return false;
}

}  // namespace

std::string ShellQuote(std::string_view word) { return report::ShellWord(word); }

std::string ShellJoin(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += ShellQuote(word);
  }
  return line;
}

std::optional<std::vector<std::string>> ShellSplit(std::string_view line) {
  std::vector<std::string> words;
  bool inside = false;
  while (!line.empty()) {
    const char c = line.front();
    line.remove_prefix(1);
    if (c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    std::string& word = words.back();
    if (c == '\'') {
      if (!ReadQuoted(&line, &word)) return std::nullopt;
    } else if (c == '$' && !line.empty() && line.front() == '\'') {
      line.remove_prefix(1);
      if (!ReadEscaped(&line, &word)) return std::nullopt;
    } else if (c == '\\') {
      if (line.empty()) return std::nullopt;
      word += line.front();
      line.remove_prefix(1);
    } else if (kSpecial.find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      word += c;
    }
  }
  return words;
}

}  // namespace cuaudit::harness
