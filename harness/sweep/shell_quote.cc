// SPDX-License-Identifier: MIT
#include "harness/sweep/shell_quote.h"

#include <algorithm>

namespace cuaudit::harness {
namespace {

bool NeedsNoQuotes(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("-_./:=,+@%").find(c) != std::string_view::npos;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// $'...' keeps a word with line breaks on one line.
std::string Escaped(std::string_view word) {
  constexpr std::string_view kOctal = "01234567";
  std::string quoted = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (IsControl(c)) {
      quoted += {'\\', kOctal[byte >> 6U], kOctal[(byte >> 3U) & 7U], kOctal[byte & 7U]};
    } else {
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

}  // namespace

std::string ShellQuote(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), NeedsNoQuotes)) return std::string(word);
  if (std::any_of(word.begin(), word.end(), IsControl)) return Escaped(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

std::string ShellJoin(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += ShellQuote(word);
  }
  return line;
}

}  // namespace cuaudit::harness
