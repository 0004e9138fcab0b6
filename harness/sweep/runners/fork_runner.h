// SPDX-License-Identifier: MIT
// fork_runner.h: carries out a round in one run of the program, which forks at each fault point. Trials that cannot fork are spawned.
//
//   Owns      the running program, its forks and the fork file.
//   Threads   one thread; up to `forks` forks at a time, and one more that is being read.
//   Units     milliseconds. The deadline holds for each fork, and for a process that forks from one fork to the next.
//   Errors    Status: as ProcessPool and SpawnRunner.
//
// Before the first trial, copies without any fault are forked (fork_control.h). README.md lists which trials are spawned instead.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/process.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/fork_control.h"
#include "harness/sweep/runners/fork_exchange.h"
#include "harness/sweep/runners/spawn_runner.h"

namespace cuaudit::harness {

class ForkRunner final : public Runner {
 public:
  // The bytes of the rehearsal's journal must outlive every call.
  ForkRunner(const Subject& subject, const WorkDir& dir, const SpawnOptions& options, const Rehearsal& rehearsal);
  ~ForkRunner() override;

  Status Give(std::vector<TrialOrder> orders) override;
  Result<TrialSeen> Next() override;
  bool idle() const noexcept override { return exchange_ == nullptr && waiting_.empty() && ready_.empty() && spawn_.idle(); }
  // Number of records folded and copied to read the trials (fork_exchange.h).
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
  Status StartRun(const std::vector<faults::ForkNode>& nodes);
  ForkExchange::Fork NewFork(std::uint32_t slot) const;
  std::vector<std::pair<std::uint32_t, ForkExchange::Fork>> NewForks() const;
  Result<bool> Adopt();
  void Separate() const;
  std::vector<pid_t> NotYetAdopted() const;
  void Postpone();
  Reason WhyNotJudged(const Ending& ending, bool whole, std::uint32_t slot) const;
  Status TakeEnd(const ProcessPool::Ended& ended);
  Status Retire(std::uint32_t slot, bool reusable);
  Status Finish();
  Status FinishControl();
  void StopRun();
  bool Overwritten() const;
  void EndRun();
  bool Stuck() const;

  const Subject& subject_;
  const WorkDir& dir_;
  const SpawnOptions options_;
  Because unfit_;  // why nothing can be forked
  ForkControl control_;
  enum class Controlled { NotYet, UnderWay, Done } controlled_ = Controlled::NotYet;
  ProcessPool pool_;
  SpawnRunner spawn_;
  std::map<std::size_t, Because> why_spawned_;
  std::deque<TrialSeen> ready_;
  int family_ = 0;
  Work work_;                        // of finished runs
  std::vector<TrialOrder> waiting_;  // for the next run

  // State of the current run.
  std::vector<TrialOrder> given_;
  std::unique_ptr<ForkExchange> exchange_;
  ForkImages images_;
  std::string journal_;
  bool trunk_runs_ = false;
  Ending trunk_ending_;
  bool overwritten_ = false;  // what its processes noted of forks cannot be true
  struct Process {
    std::uint32_t node = 0;
    std::uint32_t forks = 0;  // own forks that still need its journal
    bool ended = false;
  };
  std::map<std::uint32_t, Process> processes_;  // by slot
  std::set<std::uint32_t> retired_;             // slots that a process may still write to
  std::vector<bool> seen_;                      // by index in given_, or by point of the control
};

}  // namespace cuaudit::harness
