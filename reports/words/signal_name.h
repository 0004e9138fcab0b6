// SPDX-License-Identifier: MIT
// signal_name.h: a signal as reports name it.
#pragma once

#include <cstring>
#include <string>

namespace cuaudit::words {

// "SIGKILL"; "signal 34" for one that has no name.
inline std::string SignalName(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

}  // namespace cuaudit::words
