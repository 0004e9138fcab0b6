// SPDX-License-Identifier: MIT
// shell_quote.h: quotes words for a POSIX shell.
//
//   Errors    none. Every byte string without a NUL can be quoted.
//   Source    POSIX.1-2024 Shell Command Language, 2.2.2 and 2.2.4 (dollar-single-quotes, for words with control characters).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::harness {

// The word itself when it needs no quotes, otherwise quoted. The result is always one line.
std::string ShellQuote(std::string_view word);

// The quoted words with one space between them.
std::string ShellJoin(std::span<const std::string> words);

// The words of a line that ShellJoin made. Empty when a quote is not closed, or when a shell would do more than take the words apart.
std::optional<std::vector<std::string>> ShellSplit(std::string_view line);

}  // namespace cuaudit::harness
