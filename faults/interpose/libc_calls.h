// SPDX-License-Identifier: MIT
// libc_calls.h: functions of the C library that the drop-in exports in its place, to hide its signal handlers and to record an _exit.
#pragma once

namespace cuaudit::faults {

// Whether the program's calls of sigaction come to this library. False where the program would see handlers of this library, for example
// after dlopen of the driver alone.
bool SignalCallsAreOurs() noexcept;

}  // namespace cuaudit::faults
