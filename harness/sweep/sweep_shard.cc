// SPDX-License-Identifier: MIT
// What a SweepEngine does for other machines: trials that another one has planned, and trials that others have finished.
#include <utility>

#include "harness/sweep/host_plan.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

Result<std::vector<PlannedTrial>> SweepEngine::FirstTrials(Rehearsal rehearsal) {
  Status usable = CheckPlanOptions(options_.plan);
  if (!usable.ok()) return usable;
  TakeRehearsal(std::move(rehearsal));
  PlannedFaults first = MakePlan(CallsToPlan(), options_.plan, by_site_);
  AppendHostFaults(*rehearsal_, options_.plan, &first);
  std::vector<PlannedTrial> trials;
  trials.reserve(first.faults.size());
  for (std::size_t i = 0; i < first.faults.size(); ++i) trials.push_back(FirstTrial(std::move(first.faults[i]), first.sites[i]));
  return trials;
}

Status SweepEngine::PrepareShard(Rehearsal rehearsal, std::vector<PlannedTrial> trials, int round) {
  Status usable = CheckPlanOptions(options_.plan);
  if (!usable.ok()) return usable;
  TakeRehearsal(std::move(rehearsal));
  (void)TakeFirstFaults();  // second faults are compared with them
  shard_ = true;
  round_ = round;
  plan_ = std::move(trials);
  Result<TrialLog> log = TrialLog::Open(dir_->File("trials.jsonl"));
  if (!log.ok()) return log.status();
  log_ = std::move(*log);
  return BeginRounds();
}

void SweepEngine::Know(std::vector<TrialResult> finished, bool whole) {
  known_ = std::move(finished);
  known_whole_ = whole;
}

}  // namespace cuaudit::harness
