// SPDX-License-Identifier: MIT
// resolving_driver.h: where the calls of the process go: a driver whose cuGetProcAddress returns the drop-in's exports instead of the
// driver's own entry points, and the audit in the process that takes all calls meanwhile.
//
// A genuine driver is asked first, so that its names, versions and flags apply; the simulated driver resolves by the versions of the
// typedef headers (proc_address.h). A pointer that is no known symbol (an entry point of a newer driver) is returned unchanged: it
// works, and its calls are not audited; `unknown` counts such pointers. Every other call is forwarded. Holds one copy of a driver table
// in static storage. Make it once, before the first call.
#pragma once

#include <atomic>
#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/genuine_driver.h"

namespace cuaudit::faults {

// `genuine` is null when `next` is the simulated driver. `unknown` may be null.
driver::DriverRef Resolving(driver::DriverRef next, const driver::GenuineDriver* genuine, std::atomic<std::uint32_t>* unknown) noexcept;

// The drop-in's function for a symbol. cuGetProcAddress must return it instead of the driver's own pointer.
void* ExportOf(driver::CallId id) noexcept;

// Where the driver calls of this process go instead of to its own gate, while an audit in the process runs lifecycles
// (harness/lifecycle).
//
// The table and the object are borrowed until the diversion ends. Any thread may read the pointer; a call in progress finishes where it
// began.

// Null when there is no diversion.
extern constinit std::atomic<const driver::DriverRef*> diversion;

}  // namespace cuaudit::faults
