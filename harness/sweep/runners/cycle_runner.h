// SPDX-License-Identifier: MIT
// cycle_runner.h: runs many trials in one process, each in its own marked cycle, followed by a clean cycle.
//
//   Owns      the running process, and the other runner for trials that cannot run in a cycle.
//   Threads   one thread, one process at a time.
//   Errors    Status: as ProcessPool and the other runner.
//
// A suitable program marks its cycles, reports from each (include/cuaudit/mark.h), runs in one thread of one process, and does the same in
// every cycle from some cycle on. With n cycles on its command line a process carries out up to n/2 trials.
//
// A trial is the last one of its process that counts when the clean cycle afterwards differs from the rehearsal's or leaves anything, or
// when a later call names what the trial left. When the process dies in a trial, the trials before it run again without it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/process/process.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/cycle_slices.h"
#include "harness/sweep/runners/spawn_runner.h"

namespace cuaudit::harness {

class CycleRunner final : public Runner {
 public:
  // `other` runs the trials that must be spawned or forked. The bytes of the rehearsal's journal must outlive every call.
  CycleRunner(const Subject& subject, const WorkDir& dir, const SpawnOptions& options, const Rehearsal& rehearsal,
              std::unique_ptr<Runner> other);

  Status Give(std::vector<TrialOrder> orders) override;
  Result<TrialSeen> Next() override;
  bool idle() const noexcept override { return waiting_.empty() && ready_.empty() && other_->idle(); }
  int interrupted() const noexcept override { return pool_.interrupted() != 0 ? pool_.interrupted() : other_->interrupted(); }

 private:
  struct Armed {
    TrialOrder order;
    std::vector<faults::Fault> faults;  // occurrences count from the begin of the cycle
    std::uint32_t as = 0;               // the rehearsal's cycle that it stands for
  };
  Because Arm(const TrialOrder& order, Armed* armed) const;
  Status RunOne();
  Status Elsewhere(std::vector<Armed> trials, Reason why);
  Status Take(const std::shared_ptr<const Observation>& of, std::vector<Armed> trials, std::uint32_t first);

  const Subject& subject_;
  const WorkDir& dir_;
  const SpawnOptions options_;
  Cycles cycles_;
  Reason unfit_;
  std::uint32_t steady_ = 0;
  std::unique_ptr<Runner> other_;
  ProcessPool pool_;
  std::deque<Armed> waiting_;
  std::deque<TrialSeen> ready_;
  std::map<std::size_t, Because> why_;
  int runs_ = 0;
};

// The reason why no trial of this case can be a cycle; None when trials can.
Reason WhyUnfitForCycles(const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
