// SPDX-License-Identifier: MIT
// host_plan.h: which host allocations a sweep makes fail, one trial each (--how host_oom).
//
//   Owns      nothing.
//   Threads   pure.
//   Errors    none: allocations that are left out are counted by reason.
//   Faults    makes no driver calls.
//   Source    design section 6, host_oom; which allocations are the program's own: faults/interpose/host_oom.h.
#pragma once

#include <cstddef>

#include "faults/journal/journal_view.h"
#include "harness/sweep/make_plan.h"

namespace cuaudit::harness {

// Appends to `plan` a fault for each allocation of the rehearsal's first process, in their order, until it holds options.limit faults.
// Nothing when options.hows does not ask for it.
void AppendHostFaults(const faults::JournalView& rehearsal, const PlanOptions& options, PlannedFaults* plan);

}  // namespace cuaudit::harness
