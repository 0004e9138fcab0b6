// SPDX-License-Identifier: MIT
// make_runner.h: the runner for what a user asked for.
//
//   Threads   one thread.
//   Errors    none: what cannot be forked is spawned, and the report says so.
//   Faults    makes no driver calls.
#pragma once

#include <memory>

#include "harness/sweep/rehearsal.h"
#include "harness/sweep/spawn_runner.h"

namespace cuaudit::harness {

// `wished`: Unknown leaves the choice to the driver and the program.
std::unique_ptr<Runner> MakeRunner(Isolation wished, const Subject& subject, const WorkDir& dir, const SpawnOptions& resources,
                                   const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
