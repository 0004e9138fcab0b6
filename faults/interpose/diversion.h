// SPDX-License-Identifier: MIT
// diversion.h: where the calls of this process go instead of its own gate, while somebody in it audits lifecycles of its own.
//
//   Owns      nothing; borrows table and object until the diversion ends.
//   Threads   any; a call under way stays where it went.
//   Errors    a driver table of other headers is refused.
//   Faults    makes no driver calls.
//   Source    ours; harness/lifecycle asks for it.
#pragma once

#include <atomic>

#include "faults/driver/driver_ref.h"

namespace cuaudit::faults {

// Null: there is none.
extern constinit std::atomic<const driver::DriverRef*> diversion;

}  // namespace cuaudit::faults
