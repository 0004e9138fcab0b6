// SPDX-License-Identifier: MIT
// make_runner.h: the runner for what a user asked for.
//
//   Threads   one thread.
//   Errors    none: what cannot be forked is spawned, and the report says so.
//   Faults    makes no driver calls.
#pragma once

#include <memory>
#include <string_view>

#include "harness/sweep/rehearsal.h"
#include "harness/sweep/spawn_runner.h"

namespace cuaudit::harness {

// `isolation`: "auto", "fork", "spawn" or "cycle".
std::unique_ptr<Runner> MakeRunner(std::string_view isolation, const Subject& subject, const WorkDir& dir, const SpawnOptions& resources,
                                   const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
