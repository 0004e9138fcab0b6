// SPDX-License-Identifier: MIT
// host_plan.h: which host allocations and threads a sweep makes fail, one trial each (--how host_oom,host_thread).
//
//   Threads   pure.
//   Errors    none: what is left out is counted by reason.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>

#include "harness/sweep/make_plan.h"
#include "harness/sweep/rehearsal.h"

namespace cuaudit::harness {

// Appends to `plan` a fault for each allocation of the rehearsal's first process and then for each thread, in their order, until it holds
// options.limit faults. Nothing of what options.hows does not ask for.
void AppendHostFaults(const Rehearsal& rehearsal, const PlanOptions& options, PlannedFaults* plan);

}  // namespace cuaudit::harness
