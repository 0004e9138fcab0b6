// SPDX-License-Identifier: MIT
// replay.h: one trial of one program, told like a sweep.
//
//   Owns      what it makes in the work directory.
//   Threads   one thread; one process at a time.
//   Errors    Status: as Rehearse; the trial cannot be run.
//   Faults    makes no driver calls.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/aggregate.h"
#include "harness/sweep/benign.h"
#include "harness/sweep/work_dir.h"

namespace cuaudit::harness {

// One trial under `faults`, beside a single rehearsal; fills the report like a sweep of one.
Status Replay(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults, const JudgeOptions& judge,
              const std::vector<Benign>& benign, const Reproduction& reproduction, report::Run* run, int* interrupted);

}  // namespace cuaudit::harness
