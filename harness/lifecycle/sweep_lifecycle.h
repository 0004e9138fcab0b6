// SPDX-License-Identifier: MIT
// sweep_lifecycle.h: runs a sweep of a lifecycle, or one trial of it, with the engine that sweeps programs (harness/sweep).
//
//   Threads   one thread.
//   Errors    what makes a sweep impossible becomes Audit::message with outcome Error or NotExercised.
#pragma once

#include <string>
#include <vector>

#include "harness/process/status.h"
#include "harness/sweep/findings/benign.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// `only` holds the faults of the one trial to run; empty: all trials.
void SweepLifecycle(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, const std::vector<std::string>& only, Audit* audit);

// Parses the benign declarations of the lifecycle.
Status ParseBenignOf(const Lifecycle& lifecycle, std::vector<Benign>* benign);

}  // namespace cuaudit::harness
