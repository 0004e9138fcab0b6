// SPDX-License-Identifier: MIT
// shell.h: quotes words for a POSIX shell, writes environment variables as its commands, and splits a command line without one.
//
//   Errors    none. Every byte string without a NUL can be quoted.
//   Source    POSIX.1-2024 Shell Command Language, 2.2.2 and 2.2.4 (dollar-single-quotes, for words with control characters).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::harness {

// The word itself when it needs no quotes, otherwise quoted. The result is always one line.
std::string ShellQuote(std::string_view word);

// The quoted words with one space between them.
std::string ShellJoin(const std::vector<std::string>& words);

// The words of a line that ShellJoin made. Empty when a quote is not closed, or when a shell would do more than take the words apart.
std::optional<std::vector<std::string>> ShellSplit(std::string_view line);

// Environment variables as commands for a shell to evaluate.
//
//   Errors    none. Every value without a NUL can be written, in any encoding.
//   Source    POSIX.1-2024 Shell Command Language, 2.2.2 (single quotes); the manual of fish, Quotes.

enum class Shell : std::uint8_t { Posix, Fish };

struct Variable {
  std::string name;
  std::optional<std::string> value;  // none: the shell removes the variable
};

// One command per variable: "export NAME='value'" or "unset NAME"; for fish "set -gx NAME 'value'" or "set -e NAME".
std::string ShellLines(Shell shell, std::span<const Variable> variables);

// `list` without the entries that are in `ours`. The other entries keep their order and their separators.
std::string WithoutEntries(std::string_view list, std::span<const std::string> ours, std::string_view separators);

// Splits a command line into words without a shell.
//
//   Errors    nothing for a quote that is not closed or a backslash at the end.

// Words stand between spaces, tabs and line feeds. '...' keeps everything, "..." everything but \" and \\; outside of quotes a backslash
// keeps the next character. Nothing is expanded.
std::optional<std::vector<std::string>> SplitWords(std::string_view line);

}  // namespace cuaudit::harness
