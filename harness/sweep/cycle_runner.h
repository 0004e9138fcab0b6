// SPDX-License-Identifier: MIT
// cycle_runner.h: many trials in one process, each in a cycle of its own that the program marks, with a clean cycle after it.
//
//   Owns      the running process; what cannot be a cycle is given to another runner, which it owns too.
//   Threads   one thread, one process at a time.
//   Errors    Status: as ProcessPool and the other runner.
//   Faults    makes no driver calls.
//
// For programs that mark their cycles and report from each (include/cuaudit/mark.h), in one thread of one process, and whose cycles do the
// same from some cycle on. The program loops as often as its command line says: with n cycles a process carries out up to n/2 trials. A
// trial after which the clean cycle leaves anything, or does anything else than the rehearsal's, or whose own leftovers a later call
// names, is the last one of its process that counts; so is one that the process did not survive, and those before it are run again
// without it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/sweep/cycle_slices.h"
#include "harness/sweep/process.h"
#include "harness/sweep/rehearsal.h"
#include "harness/sweep/spawn_runner.h"

namespace cuaudit::harness {

class CycleRunner final : public Runner {
 public:
  // `other` carries out what has to be spawned or forked. The bytes of the rehearsal's journal must outlive every call.
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
    std::uint32_t as = 0;               // the cycle of the rehearsal that it stands for
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

// Why no trial beside this rehearsal can be a cycle; None: it can.
Reason WhyUnfitForCycles(const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
