// SPDX-License-Identifier: MIT
// host_plan.h: plans which host allocations and threads fail, one trial each (--how host_oom,host_thread).
//
//   Errors    none: what is left out is counted by reason.
#pragma once

#include <cstddef>

#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/run/rehearsal.h"

namespace cuaudit::harness {

// Appends a fault for each allocation of the rehearsal's first process and then for each thread, in their order, until `plan` holds
// options.limit faults. Only ways in options.hows are planned.
void AppendHostFaults(const Rehearsal& rehearsal, const PlanOptions& options, PlannedFaults* plan);

}  // namespace cuaudit::harness
