// SPDX-License-Identifier: MIT
#include "harness/process/shell_quote.h"

#include "reports/escape.h"

namespace cuaudit::harness {

std::string ShellQuote(std::string_view word) { return report::ShellWord(word); }

std::string ShellJoin(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += ShellQuote(word);
  }
  return line;
}

}  // namespace cuaudit::harness
