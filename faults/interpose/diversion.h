// SPDX-License-Identifier: MIT
// diversion.h: where the driver calls of this process go instead of to its own gate, while an audit in the process runs lifecycles
// (harness/lifecycle).
//
// The table and the object are borrowed until the diversion ends. Any thread may read the pointer; a call in progress finishes where it
// began.
#pragma once

#include <atomic>

#include "faults/driver/driver_ref.h"

namespace cuaudit::faults {

// Null when there is no diversion.
extern constinit std::atomic<const driver::DriverRef*> diversion;

}  // namespace cuaudit::faults
