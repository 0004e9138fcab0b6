// SPDX-License-Identifier: MIT
// make_runner.h: chooses the runner for --isolation.
//
//   Threads   one thread.
//   Errors    none: trials that cannot fork are spawned, and the report says so.
#pragma once

#include <memory>
#include <string_view>

#include "harness/sweep/rehearsal.h"
#include "harness/sweep/spawn_runner.h"

namespace cuaudit::harness {

// `isolation` is "auto", "fork", "spawn" or "cycle".
std::unique_ptr<Runner> MakeRunner(std::string_view isolation, const Subject& subject, const WorkDir& dir, const SpawnOptions& resources,
                                   const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
