// SPDX-License-Identifier: MIT
// What a SweepEngine does for other machines: trials that another one has planned, and trials that others have finished.
#include <utility>

#include "harness/sweep/host_plan.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

Result<std::uint64_t> SweepEngine::ListFirstFaults(Rehearsal rehearsal, const FaultSink& sink) {
  Status usable = CheckPlanOptions(options_.plan);
  if (!usable.ok()) return usable;
  TakeRehearsal(std::move(rehearsal));
  std::uint64_t count = ListFaults(CallsToPlan(), options_.plan, by_site_, sink);
  PlanOptions rest = options_.plan;
  if (rest.limit != 0 && count >= rest.limit) return count;
  if (rest.limit != 0) rest.limit -= count;
  PlannedFaults of_host;
  AppendHostFaults(*rehearsal_, rest, &of_host);
  for (std::size_t i = 0; i < of_host.faults.size(); ++i, ++count) sink(of_host.faults[i], of_host.sites[i]);
  return count;
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
