// SPDX-License-Identifier: MIT
// lifecycle_cycles.h: does a lifecycle leave more behind after ten cycles than after one? Kind by kind and place by place, in one world.
// What grew in one cycle only, and what is the process's and may be another thread's, must grow in a second series too.
//
//   Threads   one thread.
//   Units     objects alive at the end of a cycle; exact, so one too many is growth.
//   Errors    a cycle that reports a failure, or none that calls the driver, becomes Audit::message.
//   Faults    makes no driver calls but the lifecycle's.
#pragma once

#include <cstdint>
#include <vector>

#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

void CheckCycles(const Lifecycle& lifecycle, const CycleOptions& options, Audit* audit);

// `live`: objects alive at the end of each cycle after the warm-up, the warm-up's end first. They grow when they never fall and end
// higher, or when the later half never comes down to what the earlier half had. A cache that is emptied every other cycle does neither.
bool Grows(const std::vector<std::uint64_t>& live);

}  // namespace cuaudit::harness
