// SPDX-License-Identifier: MIT
// host_plan.h: which host allocations and threads a sweep makes fail, one trial each (--how host_oom,host_thread).
//
//   Owns      nothing.
//   Threads   pure.
//   Errors    none: what is left out is counted by reason.
//   Faults    makes no driver calls.
//   Source    design section 6, host_oom; what is the program's own: faults/interpose/host_oom.h.
#pragma once

#include <cstddef>

#include "faults/journal/journal_view.h"
#include "harness/sweep/make_plan.h"

namespace cuaudit::harness {

// Appends to `plan` a fault for each allocation of the rehearsal's first process and then for each thread, in their order, until it holds
// options.limit faults. Nothing of what options.hows does not ask for.
void AppendHostFaults(const faults::JournalView& rehearsal, const PlanOptions& options, PlannedFaults* plan);

}  // namespace cuaudit::harness
