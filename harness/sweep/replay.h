// SPDX-License-Identifier: MIT
// replay.h: runs one trial of one program and reports it like a sweep.
//
//   Owns      the files that it makes in the work directory.
//   Threads   one thread; one process at a time.
//   Errors    Status: as Rehearse; the trial cannot be run.
#pragma once

#include <string>
#include <vector>

#include "harness/process/work_dir.h"
#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/findings/benign.h"

namespace cuaudit::harness {

// Runs one trial under `faults`, compares it with a single rehearsal, and fills the report like a sweep of one trial.
Status Replay(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults, const JudgeOptions& judge,
              const std::vector<Benign>& benign, const Reproduction& reproduction, report::Run* run, int* interrupted);

}  // namespace cuaudit::harness
