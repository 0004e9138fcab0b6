// SPDX-License-Identifier: MIT
// sweep_lifecycle.h: runs a sweep of a lifecycle, or one trial of it, with the engine that sweeps programs (harness/sweep).
//
//   Threads   one thread.
//   Errors    what makes a sweep impossible becomes Audit::message with outcome Error or NotExercised.
#pragma once

#include <string>
#include <vector>

#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// `only` holds the faults of the one trial to run; empty: all trials.
void SweepLifecycle(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, const std::vector<std::string>& only, Audit* audit);

inline constexpr char kBenignSource[] = "Lifecycle::Benign";  // named where a declaration cannot be read

}  // namespace cuaudit::harness
