// SPDX-License-Identifier: MIT
// signal_calls.h: whether the program's calls of sigaction come to this library (signal_calls.cc).
#pragma once

namespace cuaudit::faults {

// False where the program would see handlers of this library, for example after dlopen of the driver alone.
bool SignalCallsAreOurs() noexcept;

}  // namespace cuaudit::faults
