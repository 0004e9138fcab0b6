// SPDX-License-Identifier: MIT
// shell_lines.h: environment variables as commands for a shell to evaluate.
//
//   Errors    none. Every value without a NUL can be written, in any encoding.
//   Source    POSIX.1-2017 Shell Command Language, 2.2.2 (single quotes); the manual of fish, Quotes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cuaudit::harness {

enum class Shell : std::uint8_t { Posix, Fish };

struct Variable {
  std::string name;
  std::optional<std::string> value;  // none: the shell removes the variable
};

// One command per variable: "export NAME='value'" or "unset NAME"; for fish "set -gx NAME 'value'" or "set -e NAME".
std::string ShellLines(Shell shell, std::span<const Variable> variables);

// `list` without the entries that are in `ours`. The other entries keep their order and their separators.
std::string WithoutEntries(std::string_view list, std::span<const std::string> ours, std::string_view separators);

}  // namespace cuaudit::harness
