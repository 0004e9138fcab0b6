// SPDX-License-Identifier: MIT
#include "harness/project/split_words.h"

#include <cstddef>
#include <utility>

namespace cuaudit::harness {

std::optional<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) words.push_back(std::move(word));
      word.clear();
      begun = false;
      continue;
    }
    begun = true;
    if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else if (c == '\\' && quote != '\'') {
      if (i + 1 == line.size()) return std::nullopt;
      const char next = line[i + 1];
      if (quote == '"' && next != '"' && next != '\\') {
        word += c;
      } else {
        word += next;
        ++i;
      }
    } else {
      word += c;
    }
  }
  if (quote != '\0') return std::nullopt;
  if (begun) words.push_back(std::move(word));
  return words;
}

}  // namespace cuaudit::harness
