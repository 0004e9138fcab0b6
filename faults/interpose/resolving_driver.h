// SPDX-License-Identifier: MIT
// resolving_driver.h: a driver whose cuGetProcAddress hands out the drop-in's exports instead of its own entry points.
//
//   Owns      one copy of a driver table, in static storage.
//   Threads   made once, before the first call passes.
//   Errors    as the driver below answers. A pointer that is none of the symbols we know (a newer driver's entry point) goes back
//             unchanged: it works, and its calls are not audited; `unknown` counts them.
//   Faults    forwards every call; cuGetProcAddress itself is one.
//   Source    a genuine driver is asked first, so names, versions and flags resolve as it says; the simulated driver answers by the
//             typedef versions (proc_address.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "faults/driver/genuine_driver.h"

namespace cuaudit::faults {

// `genuine` null: the simulated driver stands behind `next`. `unknown` may be null.
driver::DriverRef Resolving(driver::DriverRef next, const driver::GenuineDriver* genuine, std::atomic<std::uint32_t>* unknown) noexcept;

}  // namespace cuaudit::faults
