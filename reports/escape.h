// SPDX-License-Identifier: MIT
// escape.h: makes any bytes safe to show on a terminal, in XML and in a shell command.
//
//   Owns      nothing; pure functions.
//   Threads   safe everywhere; no state.
//   Errors    never fails: bytes that are not UTF-8 become U+FFFD, one per byte.
//   Faults    makes no driver calls.
//   Source    Unicode 15, table 3-7 (well-formed UTF-8); XML 1.0, section 2.2 (Char).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::report {

// Control characters, the C1 range included, become \n, \t or \x1b, so that a path cannot steer the terminal.
std::string ForTerminal(std::string_view bytes);

// Characters that XML 1.0 forbids become U+FFFD; markup characters are left to the XML writer.
std::string ForXml(std::string_view bytes);

// One word that a shell reads back as it is: without quotes when it needs none, always one line. Control characters take $'...', which bash
// and POSIX.1-2024 know.
std::string ShellWord(std::string_view word);

// One line that a shell reads back as the same words.
std::string ForShell(const std::vector<std::string>& words);

}  // namespace cuaudit::report
