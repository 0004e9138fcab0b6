// SPDX-License-Identifier: MIT
// fork_runner.h: a round in one run of the program, which forks at each fault point; what cannot be forked is spawned.
//
//   Owns      the running program, its forks and the file through which they are told apart.
//   Threads   one thread; as many forks at a time as `jobs`, and one more to read while they run.
//   Units     milliseconds. The deadline holds for each fork; for a process that forks, from one fork to the next.
//   Errors    Status: as ProcessPool and SpawnRunner.
//   Faults    makes no driver calls.
//
// Before the first trial copies without any fault are forked (fork_control.h); where one differs from the rehearsal nothing is forked.
// Spawned instead, each with its reason: where the program refused to fork (ForkRefusal), never reached the call, or ended before it; a
// trial that is given again; a rehearsal in which several processes call the driver; a fork that executes a program which calls the
// driver; faults addressed by site.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/sweep/fork_control.h"
#include "harness/sweep/fork_exchange.h"
#include "harness/sweep/fork_images.h"
#include "harness/sweep/process.h"
#include "harness/sweep/rehearsal.h"
#include "harness/sweep/spawn_runner.h"

namespace cuaudit::harness {

class ForkRunner final : public Runner {
 public:
  // The bytes of the rehearsal's journal must outlive every call.
  ForkRunner(const Subject& subject, const WorkDir& dir, const SpawnOptions& options, const Rehearsal& rehearsal);
  ~ForkRunner() override;

  Status Give(std::vector<TrialOrder> orders) override;
  Result<TrialSeen> Next() override;
  bool idle() const noexcept override { return exchange_ == nullptr && waiting_.empty() && ready_.empty() && spawn_.idle(); }
  // Records that were folded and copied to know what the trials did; fork_exchange.h.
  struct Work {
    std::uint64_t folded = 0;
    std::uint64_t copied = 0;
  };
  Work work() const noexcept;
  int interrupted() const noexcept override { return pool_.interrupted() != 0 ? pool_.interrupted() : spawn_.interrupted(); }

 private:
  Status Spawn(TrialOrder order, const Because& why);
  Status Begin();
  Status BeginControl();
  Status StartRun(const std::vector<ForkRow>& rows);
  const faults::ForkNode* NewFork(std::uint32_t slot) const;
  std::vector<std::uint32_t> NewForks() const;
  Result<bool> Adopt();
  void Separate() const;
  std::vector<pid_t> NotYetAdopted() const;
  void Postpone();
  Status TakeEnd(const ProcessPool::Ended& ended);
  Status Retire(std::uint32_t slot, bool reusable);
  Status Finish();
  Status FinishControl();
  void EndRun();
  bool Stuck() const;

  const Subject& subject_;
  const WorkDir& dir_;
  const SpawnOptions options_;
  Because unfit_;  // why nothing is to be forked at all
  ForkControl control_;
  enum class Controlled { NotYet, UnderWay, Done } controlled_ = Controlled::NotYet;
  ProcessPool pool_;
  SpawnRunner spawn_;
  std::map<std::size_t, Because> why_spawned_;
  std::deque<TrialSeen> ready_;
  int family_ = 0;
  Work work_;                        // of the runs that are over
  std::vector<TrialOrder> waiting_;  // for the next run

  // Of the run that is under way.
  std::vector<TrialOrder> given_;
  std::unique_ptr<ForkExchange> exchange_;
  ForkImages images_;
  std::string journal_;
  bool trunk_runs_ = false;
  Ending trunk_ending_;
  std::uint32_t trunk_moves_ = 0;
  struct Process {
    std::uint32_t node = 0;
    std::uint32_t moves = 0;
    std::uint32_t forks = 0;  // of its own that still need its journal
    bool ended = false;
  };
  std::map<std::uint32_t, Process> processes_;  // by slot
  std::set<std::uint32_t> retired_;             // slots that somebody may still write to
  std::vector<bool> seen_;                      // by index in given_, or by point of the control
};

// Why a sweep beside this rehearsal cannot fork; None: it can.
Reason WhyUnfitToFork(const Subject& subject, const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
