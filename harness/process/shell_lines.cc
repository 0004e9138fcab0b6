// SPDX-License-Identifier: MIT
#include "harness/process/shell_lines.h"

#include <algorithm>
#include <cstddef>

namespace cuaudit::harness {
namespace {

// Inside single quotes a POSIX shell takes every byte but the quote as it is; fish also reads \' and \\ there. The $'...' of ShellQuote is
// no choice here: dash 0.5.12 does not know it.
std::string Quoted(Shell shell, std::string_view value) {
  std::string quoted = "'";
  for (const char c : value) {
    if (shell == Shell::Fish && (c == '\'' || c == '\\')) {
      quoted.append("\\").append(1, c);
    } else if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string ShellLines(Shell shell, std::span<const Variable> variables) {
  std::string lines;
  for (const Variable& variable : variables) {
    const bool fish = shell == Shell::Fish;
    if (variable.value.has_value()) {
      lines += (fish ? "set -gx " + variable.name + " " : "export " + variable.name + "=") + Quoted(shell, *variable.value) + "\n";
    } else {
      lines += (fish ? "set -e " : "unset ") + variable.name + "\n";
    }
  }
  return lines;
}

std::string WithoutEntries(std::string_view list, std::span<const std::string> ours, std::string_view separators) {
  std::string rest;
  char separator = '\0';  // before the entry
  bool any = false;
  for (;;) {
    const std::size_t stop = list.find_first_of(separators);
    const std::string_view entry = list.substr(0, stop);
    if (std::find(ours.begin(), ours.end(), entry) == ours.end()) {
      if (any) rest += separator;
      rest += entry;
      any = true;
    }
    if (stop == std::string_view::npos) return rest;
    separator = list[stop];
    list.remove_prefix(stop + 1);
  }
}

}  // namespace cuaudit::harness
