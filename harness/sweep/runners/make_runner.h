// SPDX-License-Identifier: MIT
// make_runner.h: chooses the runner for --isolation.
//
//   Threads   one thread.
//   Errors    none: trials that cannot fork are spawned, and the report says so.
#pragma once

#include <memory>

#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/spawn_runner.h"

namespace cuaudit::harness {

// With `wished` Unknown the driver and the program decide.
std::unique_ptr<Runner> MakeRunner(Isolation wished, const Subject& subject, const WorkDir& dir, const SpawnOptions& resources,
                                   const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
