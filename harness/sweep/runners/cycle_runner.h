// SPDX-License-Identifier: MIT
// cycle_runner.h: runs many trials in one process, each in its own marked cycle, followed by a clean cycle; and cuts that one run into one
// slice per trial, as if each trial had its own run.
//
//   Owns      the running process, and the other runner for trials that cannot run in a cycle. A slice has a copy of the facts and keeps its
//             run alive; the bytes of the journal must outlive it.
//   Threads   one thread, one process at a time.
//   Units     cycles, counted from 1; tickets of the journal's clock.
//   Errors    Status: as ProcessPool and the other runner. A cycle that the run never reached has no slice.
//
// README.md says which programs are suitable, and when a trial is the last one of its process that counts. With n cycles on its command
// line a process carries out up to n/2 trials. When the process dies in a trial, the trials before it run again without it.
//
// The slice of cycle k has everything before the first cycle with a fault, cycle k, the clean cycle after it, and everything after the last
// cycle. The cycles left out must have left nothing behind, or the slice is not used (MayGoOn). Cycle k gets the number of the rehearsal's
// cycle that it stands for, and its calls are renumbered likewise.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "harness/process/process.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/spawn_runner.h"

namespace cuaudit::harness {

class Cycles {
 public:
  explicit Cycles(const Evidence& run);

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(facts_.cycles.size()); }
  bool Ended(std::uint32_t cycle) const noexcept { return cycle <= count() && cycle > 0 && EndOf(cycle) != 0; }
  std::uint64_t BeginOf(std::uint32_t cycle) const noexcept { return facts_.cycles[cycle - 1].begin; }
  std::uint64_t EndOf(std::uint32_t cycle) const noexcept { return facts_.cycles[cycle - 1].end; }
  // Hash over the calls of a cycle in order: entry point, call stack and result.
  std::uint64_t TraceOf(std::uint32_t cycle) const;
  // The n-th call of an entry point by the program; null when there is none.
  const faults::Record* CallOf(driver::BaseId base, std::uint32_t occurrence) const;
  // Number of calls of `base` before the cycle began.
  std::uint32_t CallsBefore(std::uint32_t cycle, driver::BaseId base) const;

 private:
  faults::JournalView journal_;
  Facts facts_;
};

// The slice of `run` in which cycle `cycle` becomes cycle `as`. `first` is the first cycle of the run with a fault. With `last` the slice
// has everything from its cycle on.
Observation SliceOf(const std::shared_ptr<const Observation>& run, const Cycles& cycles, std::uint32_t first, std::uint32_t cycle,
                    std::uint32_t as, const Cycles& rehearsal, bool last);

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
    bool alone = false;                 // it gets a process of its own
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
