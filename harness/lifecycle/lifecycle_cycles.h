// SPDX-License-Identifier: MIT
// lifecycle_cycles.h: checks in one world whether a lifecycle leaves more behind after ten cycles than after one, by kind and place.
//
//   Threads   one thread.
//   Units     objects alive at the end of a cycle. Counts are exact, so one more is growth.
//   Errors    a cycle that reports a failure, or a lifecycle that never calls the driver, becomes Audit::message.
//
// What grew runs again with twice as many cycles, until it has stopped or CycleOptions::most_cycles are reached. Growth of a resource that
// may be another thread's must show in a second series as well.
#pragma once

#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

void CheckCycles(const Lifecycle& lifecycle, const CycleOptions& options, Audit* audit);

}  // namespace cuaudit::harness
