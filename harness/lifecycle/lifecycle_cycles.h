// SPDX-License-Identifier: MIT
// lifecycle_cycles.h: checks in one world whether a lifecycle leaves more behind after ten cycles than after one, by kind and place.
//
//   Threads   one thread.
//   Units     objects alive at the end of a cycle. Counts are exact, so one more is growth.
//   Errors    a cycle that reports a failure, or a lifecycle that never calls the driver, becomes Audit::message.
//
// Growth in one cycle only, and growth of a resource that may be another thread's, must show in a second series as well.
#pragma once

#include <cstdint>
#include <vector>

#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

void CheckCycles(const Lifecycle& lifecycle, const CycleOptions& options, Audit* audit);

// `live` holds the objects alive at the end of the warm-up and of each later cycle. They grow when they never fall and end higher, or when
// the later half never comes down to the level of the earlier half. A cache that is emptied every other cycle does neither.
bool Grows(const std::vector<std::uint64_t>& live);

}  // namespace cuaudit::harness
