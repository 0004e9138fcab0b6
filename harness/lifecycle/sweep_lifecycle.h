// SPDX-License-Identifier: MIT
// sweep_lifecycle.h: one sweep of a lifecycle, or one trial of it, by the engine that sweeps programs (harness/sweep).
//
//   Threads   one thread.
//   Errors    what makes a sweep impossible becomes Audit::message with outcome Error or NotExercised.
//   Faults    makes no driver calls but the lifecycle's.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/benign.h"
#include "harness/sweep/status.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// `only`: the faults of the one trial to run; empty: all trials.
void SweepLifecycle(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, const std::vector<std::string>& only, Audit* audit);

// The declarations of the lifecycle, parsed.
Status ParseBenignOf(const Lifecycle& lifecycle, std::vector<Benign>* benign);

}  // namespace cuaudit::harness
