// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_runner.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "faults/plan/fault.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kTrunk = 0;            // tag of the fault-free run in the pool; a fork has its slot + 1
constexpr std::uint64_t kLookEveryMs = 200;  // for forks that no process reported yet
// A fork notes its process id, and a killed group is gone, within microseconds as a rule. The tool waits for that, and while it waits it
// judges nothing.
constexpr useconds_t kLookUs = 50;
constexpr int kLooks = 4000;

// True once the leader's process group is empty. The group was killed at the end of the leader.
bool GroupIsGone(pid_t leader) {
  for (int look = 0; look < kLooks; ++look) {
    if (kill(-leader, 0) != 0 && errno == ESRCH) return true;
    usleep(kLookUs);
  }
  return false;
}

// The environment line by which all descendants of this fork are recognised.
std::string ForkLine(pid_t pid) {
  char line[sizeof(faults::kForkVariable) + faults::kForkDigits + 2];
  std::snprintf(line, sizeof(line), "%s=%08x", faults::kForkVariable, static_cast<unsigned>(pid));
  return line;
}

Reason WhyUnfitToFork(const Subject& subject, const Rehearsal& rehearsal) {
  if (subject.launch.driver != DriverKind::Simulated) return ReasonOf(faults::ForkRefusal::Driver);
  const std::vector<ProcessFacts>& processes = rehearsal.run.ledger.facts.processes;
  const auto calling = std::count_if(processes.begin(), processes.end(), [](const ProcessFacts& one) { return one.calls != 0; });
  if (calling > 1) return Reason::SeveralProcesses;
  return rehearsal.run.ending.orphans != 0 ? Reason::Outlives : Reason::None;
}

}  // namespace

ForkRunner::ForkRunner(const Subject& subject, const WorkDir& dir, const SpawnOptions& options, const Rehearsal& rehearsal)
    : subject_(subject),
      dir_(dir),
      options_(options),
      unfit_{WhyUnfitToFork(subject, rehearsal)},
      control_(rehearsal.run),
      spawn_(subject, dir, options) {
  pool_.BeforeKill([this] { Separate(); });
}

// The fault-free run may still be ending when the last trial was read, and a signal may end the sweep while it forks. Its new forks must
// be known meanwhile.
ForkRunner::~ForkRunner() {
  StopRun();
  pool_.BeforeKill({});
  if (exchange_ != nullptr && !options_.keep) unlink(journal_.c_str());
}

Status ForkRunner::Spawn(TrialOrder order, const Because& why) {
  why_spawned_[order.index] = why;
  return spawn_.Give({std::move(order)});
}

Status ForkRunner::Give(std::vector<TrialOrder> orders) {
  for (TrialOrder& order : orders) {
    Because why = unfit_;
    for (const std::string& fault : order.faults) {
      if (why.reason == Reason::None && IsBySite(fault)) why = {Reason::BySite};
      const faults::HostFaultRow* const host = faults::HostFaultOf(fault);
      if (why.reason == Reason::None && host != nullptr) why = {Reason::HostFault, std::string(host->what)};
    }
    if (why.reason == Reason::None && order.attempt > 1) why = {Reason::OtherPlace};
    if (why.reason != Reason::None) {
      Status given = Spawn(std::move(order), why);
      if (!given.ok()) return given;
    } else {
      waiting_.push_back(std::move(order));
    }
  }
  return {};
}

// Forks copies without any fault before the first trial. What they do shows the effect of forking alone on the program.
Status ForkRunner::BeginControl() {
  controlled_ = Controlled::UnderWay;
  seen_.assign(control_.points().size(), false);
  return StartRun(PlantControls(control_.points()));
}

Status ForkRunner::Begin() {
  given_ = std::exchange(waiting_, {});
  std::vector<std::vector<faults::Fault>> lists;
  for (const TrialOrder& order : given_) {
    std::vector<faults::Fault>& list = lists.emplace_back();
    for (const std::string& text : order.faults) {
      if (faults::ParseFault(text, &list.emplace_back()).expected != nullptr) return {Exit::Failure, text + ": expected a fault"};
    }
  }
  seen_.assign(given_.size(), false);
  return StartRun(PlantForks(lists));
}

Status ForkRunner::StartRun(const std::vector<faults::ForkNode>& nodes) {
  const std::string name = dir_.Journal("forks-" + std::to_string(++family_));
  journal_ = ForkImages::Trunk(name);
  // New files instead of truncated old ones: processes left by a killed sweep may still have the old ones mapped.
  unlink(journal_.c_str());
  unlink((name + ".forks").c_str());
  Result<Launch> launch = PrepareRun(subject_, journal_, options_.records, {}, options_.keep ? name + ".log" : std::string("/dev/null"),
                                     "forks=" + name + ".forks");
  if (!launch.ok()) return launch.status();
  const auto jobs = static_cast<std::uint32_t>(std::max<std::size_t>(1, options_.forks));
  Result<std::unique_ptr<ForkExchange>> exchange =
      ForkExchange::Make(name + ".forks", journal_, nodes, options_.records, {jobs + 1, std::max(1U, jobs / 2)});
  if (!exchange.ok()) return exchange.status();
  exchange_ = std::move(*exchange);
  Status images = images_.Make(name, exchange_->header().slots, OptionsOf(subject_, options_.records));
  if (!images.ok()) return images;
  trunk_runs_ = true;
  trunk_ending_ = {};
  overwritten_ = false;
  pool_.Spare([this] { return NotYetAdopted(); });
  launch->environment.push_back(ForkLine(0));
  return pool_.Start(kTrunk, *launch);
}

// The fork in this slot if it is new. Its node may be kNobody, and its process any.
ForkExchange::Fork ForkRunner::NewFork(std::uint32_t slot) const {
  return retired_.contains(slot) || processes_.contains(slot) ? ForkExchange::Fork() : exchange_->Noted(slot);
}

// All new forks, by slot. Forks of one process are in the order in which it made them.
std::vector<std::pair<std::uint32_t, ForkExchange::Fork>> ForkRunner::NewForks() const {
  std::vector<std::pair<std::uint32_t, ForkExchange::Fork>> all;
  for (std::uint32_t slot = 0; slot < exchange_->header().slots; ++slot) {
    const ForkExchange::Fork fork = NewFork(slot);
    if (fork.node != 0) all.emplace_back(slot, fork);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second.parent_records < b.second.parent_records; });
  return all;
}

// A fork starts in its parent's process group. It gets a group of its own, so that it does not die with the parent.
void ForkRunner::Separate() const {
  if (exchange_ == nullptr) return;
  for (std::uint32_t slot = 0; slot < exchange_->header().slots && !overwritten_; ++slot) {
    for (int look = 0; look < kLooks; ++look) {
      const ForkExchange::Fork fork = NewFork(slot);
      if (pool_.CanAdopt(fork.pid)) setpgid(fork.pid, fork.pid);  // fails when the group exists, and when the fork has ended
      if (fork.node == 0 || fork.node == ForkExchange::kNobody || fork.pid != 0) break;
      usleep(kLookUs);
    }
  }
}

// All forks that some process has recorded. A child that was seen before this call is among them.
std::vector<pid_t> ForkRunner::NotYetAdopted() const {
  Separate();
  std::vector<pid_t> forks;
  if (exchange_ == nullptr || overwritten_) return forks;
  for (const auto& [slot, fork] : NewForks()) forks.push_back(fork.pid);
  return forks;
}

// Adopts new forks. False: the process id of one is not recorded yet.
Result<bool> ForkRunner::Adopt() {
  bool complete = true;
  const auto as_adopted = [this](const auto& one) { return exchange_->Noted(one.first) == exchange_->fork(one.second.node); };
  for (bool more = true; more;) {
    more = false;
    complete = true;
    overwritten_ = overwritten_ || !std::all_of(processes_.begin(), processes_.end(), as_adopted);
    for (const auto& [slot, fork] : NewForks()) {
      overwritten_ = overwritten_ || fork.node == ForkExchange::kNobody;
      if (overwritten_) return true;
      const std::uint32_t parent = exchange_->node(fork.node).parent;
      const std::uint32_t parent_slot = exchange_->fork(parent).slot;
      const bool parent_known = parent == 0 || (processes_.contains(parent_slot) && processes_[parent_slot].node == parent);
      if (fork.pid == 0 || !parent_known) {
        complete = false;
        continue;
      }
      // The process may be anyone's, and the tool kills what it has adopted.
      overwritten_ = !exchange_->Fits(fork, slot) || !pool_.CanAdopt(fork.pid);
      if (overwritten_) return true;
      setpgid(fork.pid, fork.pid);
      Status adopted = pool_.Adopt(slot + 1, fork.pid, subject_.deadline_ms, ForkLine(fork.pid));
      if (!adopted.ok()) return adopted;
      processes_[slot].node = fork.node;
      exchange_->Follow(fork);
      if (parent != 0) ++processes_[parent_slot].forks;
      // The parent has until its next fork.
      pool_.Postpone(parent == 0 ? kTrunk : parent_slot + 1, subject_.deadline_ms);
      more = true;
    }
  }
  return complete;
}

// Extends the deadline of each process that waits for a slot while another has one that forks less: such a slot becomes free.
void ForkRunner::Postpone() {
  const auto forks_less = [this](std::uint32_t depth) {
    return std::any_of(processes_.begin(), processes_.end(), [&](const auto& one) {
      const faults::ForkNode& node = exchange_->node(one.second.node);
      return !one.second.ended && (node.children == 0 || node.depth > depth);
    });
  };
  if (exchange_->Waits(faults::kNoSlot) && forks_less(0)) pool_.Postpone(kTrunk, subject_.deadline_ms);
  for (const auto& [slot, process] : processes_) {
    const faults::ForkNode& node = exchange_->node(process.node);
    if (node.children != 0 && exchange_->Waits(slot) && forks_less(node.depth)) pool_.Postpone(slot + 1, subject_.deadline_ms);
  }
}

Status ForkRunner::Retire(std::uint32_t slot, bool reusable) {
  processes_.erase(slot);
  if (!reusable) retired_.insert(slot);
  if (!reusable) return {};
  Status renewed = images_.Renew(slot);
  if (renewed.ok()) exchange_->Free(slot);
  return renewed;
}

// Why the trial of a fork that has ended is run again in a process of its own; None: the fork can be judged. The cause of a hang or death
// may be something that only a fork lacks. The journal of a fork that executes a program lacks the calls of that program.
Reason ForkRunner::WhyNotJudged(const Ending& ending, bool whole, std::uint32_t slot) const {
  if (ending.timed_out) return Reason::ForkHung;
  if (ending.signal != 0) return Reason::ForkDied;
  if (!whole) return Reason::ForkOverwritten;
  return images_.Called(slot) ? ReasonOf(faults::ForkRefusal::Indirect) : Reason::None;
}

Status ForkRunner::TakeEnd(const ProcessPool::Ended& ended) {
  // All forks of the process must be known before its own journal is removed.
  for (int look = 0; look < kLooks; ++look) {
    const Result<bool> complete = Adopt();
    if (!complete.ok()) return complete.status();
    if (*complete) break;
    usleep(kLookUs);
  }
  if (ended.tag == kTrunk) {
    trunk_runs_ = false;
    trunk_ending_ = ended.ending;
    return {};
  }
  const auto slot = static_cast<std::uint32_t>(ended.tag - 1);
  Process& process = processes_.at(slot);
  const faults::ForkNode& node = exchange_->node(process.node);
  const bool gone = GroupIsGone(exchange_->fork(process.node).pid);
  const bool whole = !overwritten_ && exchange_->Whole(process.node);
  process.ended = true;
  if (node.trial != faults::kNoTrial && !seen_[node.trial]) {
    seen_[node.trial] = true;
    if (node.control) {
      if (whole) control_.TakeCopy(node.trial, exchange_->Collect(process.node, ended.ending), subject_.deadline_ms);
    } else if (const Reason why = WhyNotJudged(ended.ending, whole, slot); why != Reason::None) {
      Status spawned = Spawn(given_[node.trial], {why});
      if (!spawned.ok()) return spawned;
    } else {
      ready_.push_back({given_[node.trial].index, exchange_->Collect(process.node, ended.ending), Isolation::Fork, {}});
    }
  }
  const std::uint32_t parent = exchange_->fork(node.parent).slot;
  Status retired = process.forks == 0 ? Retire(slot, gone) : Status();
  if (!retired.ok() || parent == faults::kNoSlot) return retired;
  Process& above = processes_.at(parent);
  return --above.forks == 0 && above.ended ? Retire(parent, true) : Status();
}

// True when every slot of some pool may still be written by a process that cannot be killed. A process that needs such a slot waits for
// ever.
bool ForkRunner::Stuck() const {
  if (retired_.empty()) return false;
  std::map<std::uint32_t, bool> usable;
  for (std::uint32_t slot = 0; slot < exchange_->header().slots; ++slot) {
    usable[exchange_->slot(slot).pool] = usable[exchange_->slot(slot).pool] || !retired_.contains(slot);
  }
  return std::any_of(usable.begin(), usable.end(), [](const auto& pool) { return !pool.second; });
}

ForkRunner::Work ForkRunner::work() const noexcept {
  if (exchange_ == nullptr) return work_;
  return {work_.folded + exchange_->folded(), work_.copied + exchange_->copied()};
}

// Of the forks that are not adopted yet none is spared, for nobody adopts them any more.
void ForkRunner::StopRun() {
  pool_.Spare({});
  pool_.Stop();
  trunk_runs_ = false;
}

// True when no process can have noted what they share. A run that ended while it waited may have waited for a slot that nobody had.
bool ForkRunner::Overwritten() const {
  return overwritten_ || !exchange_->Whole(0) || (exchange_->Waits(faults::kNoSlot) && retired_.empty());
}

void ForkRunner::EndRun() {
  if (!options_.keep) unlink(journal_.c_str());
  images_.Remove();
  work_ = work();
  exchange_.reset();
  processes_.clear();
  retired_.clear();
}

// When a copy differs, or none could be forked, all waiting trials are spawned.
Status ForkRunner::FinishControl() {
  controlled_ = Controlled::Done;
  std::vector<faults::ForkRefusal> refusals(control_.points().size(), faults::ForkRefusal::None);
  for (std::uint32_t i = 1; i < exchange_->header().nodes; ++i) {
    const faults::ForkNode& node = exchange_->node(i);
    if (node.trial < refusals.size()) refusals[node.trial] = exchange_->Refusal(i);
  }
  Result<Observation> trunk = ReadObservation(journal_, trunk_ending_);
  if (!trunk.ok() && !IsDamaged(trunk.status())) return {Exit::Failure, trunk.status().message()};
  if (trunk.ok()) control_.TakeTrunk(*trunk, subject_.deadline_ms);
  unfit_ = trunk.ok() ? control_.WhyNot(refusals) : Because{Reason::CopyDiffers, std::string(Row(Missed::Damaged).coverage)};
  if (trunk.ok() && Overwritten()) unfit_ = {Reason::ForkOverwritten};
  EndRun();
  return unfit_.reason == Reason::None ? Status() : Give(std::exchange(waiting_, {}));
}

// Called when no process runs any more. Trials that were not forked are spawned.
Status ForkRunner::Finish() {
  if (controlled_ == Controlled::UnderWay) return FinishControl();
  const bool overwritten = Overwritten();
  std::map<std::size_t, Reason> why;
  for (std::uint32_t i = 1; i < exchange_->header().nodes; ++i) {
    const faults::ForkNode& node = exchange_->node(i);
    if (node.trial == faults::kNoTrial || seen_[node.trial]) continue;
    faults::ForkRefusal refusal = faults::ForkRefusal::None;
    for (std::uint32_t at = i; at != 0; at = exchange_->node(at).parent) {
      if (exchange_->Refusal(at) != faults::ForkRefusal::None) refusal = exchange_->Refusal(at);
    }
    why[node.trial] = overwritten ? Reason::ForkOverwritten : ReasonOf(refusal);
  }
  EndRun();
  std::vector<TrialOrder> given = std::exchange(given_, {});
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (seen_[i]) continue;
    const auto reason = why.find(i);
    Status spawned = Spawn(std::move(given[i]), {reason == why.end() ? Reason::SameFaults : reason->second});
    if (!spawned.ok()) return spawned;
  }
  return {};
}

Result<TrialSeen> ForkRunner::Next() {
  for (;;) {
    if (!ready_.empty()) {
      TrialSeen seen = std::move(ready_.front());
      ready_.pop_front();
      return seen;
    }
    if (exchange_ == nullptr && waiting_.empty()) break;
    if (exchange_ == nullptr) {
      Status begun = controlled_ == Controlled::Done ? Begin() : BeginControl();
      if (!begun.ok()) return begun;
    }
    const Result<bool> adopted = Adopt();
    if (!adopted.ok()) return adopted.status();
    Postpone();
    if (pool_.size() == 0 || overwritten_ || Stuck()) {
      StopRun();
      Status finished = Finish();
      if (!finished.ok()) return finished;
      continue;
    }
    Result<std::optional<ProcessPool::Ended>> ended = pool_.WaitSome(kLookEveryMs);
    if (!ended.ok()) return ended.status();
    if (!ended->has_value()) continue;
    Status taken = TakeEnd(**ended);
    if (!taken.ok()) return taken;
  }
  Result<TrialSeen> seen = spawn_.Next();
  if (seen.ok()) {
    const auto why = why_spawned_.find(seen->index);
    seen->isolation = Isolation::Spawn;
    if (why != why_spawned_.end()) seen->fallback = {why->second};
  }
  return seen;
}

}  // namespace cuaudit::harness
