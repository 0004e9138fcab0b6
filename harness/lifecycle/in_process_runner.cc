// SPDX-License-Identifier: MIT
#include "harness/lifecycle/in_process_runner.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <new>
#include <utility>

#include "faults/driver/result.h"
#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/diversion.h"

namespace cuaudit::harness {
namespace {

constexpr int kMostLooks = 10;  // deadlines that a trial may last while it makes calls or has not met its fault

std::string Joined(const std::vector<faults::Fault>& faults) {
  std::string words;
  for (const faults::Fault& fault : faults) {
    char text[faults::kMaxFaultText];
    words.append(words.empty() ? "" : ";").append(text, faults::FormatFault(fault, text, sizeof(text)));
  }
  return words;
}

std::string WordsFor(const std::string& lifecycle, const std::vector<std::string>& faults) {
  std::string words = "cuaudit: lifecycle '" + lifecycle + "' ends this process in the trial CUAUDIT_FAULT='";
  for (std::size_t i = 0; i < faults.size(); ++i) words.append(i == 0 ? "" : ";").append(faults[i]);
  return words.append("'; with SweepOptions::isolate that is a verdict\n");
}

std::string ErrorText(CUresult code) { return "CUDA_ERROR_" + std::string(driver::ShortResultName(code)); }

}  // namespace

InProcessRunner::InProcessRunner(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, std::vector<Benign> benign,
                                 bool host_faults, SiteTexts* sites)
    : lifecycle_(lifecycle),
      options_(options),
      benign_(std::move(benign)),
      host_faults_(host_faults),
      genuine_(IsGenuine(options.driver)),
      sites_(sites),
      host_(options.host && !options.isolate, genuine_) {}

Result<Observation> InProcessRunner::RunFaultFree(TrialWorld* world, bool first) {
  TrialTrace trace;
  Metering metering = MeteringOfRuns();
  metering.others = metering.first;
  world->Run(lifecycle_, faults::Plan(), Stacks::FaultedCycle, kMostCycles, metering, &trace);
  if (!trace.opened) return Status(Exit::Environment, "the simulated driver got no address space (limit on virtual memory?)");
  if (!trace.prepared)
    return Status(Exit::Environment, "preparing the case failed" + (trace.prepare.has_code ? ": " + ErrorText(trace.prepare.code) : ""));
  if (trace.first_failed != 0) {
    const char* const second_cycle = trace.first_failed == 1 ? "" : " in a second cycle";
    return Status(Exit::Environment, "without any fault " + trace.failed.FirstFailure() + second_cycle);
  }
  if (trace.lost != CUDA_SUCCESS) return Status(Exit::Environment, "without any fault the context is lost: " + ErrorText(trace.lost));
  const faults::JournalView journal = world->Journal();
  if ((journal.header().flags.load() & faults::kRecordsDropped) != 0)
    return Status(Exit::Failure, "one cycle makes more driver calls than the journal has room for");
  if (first) {
    spotless_ = BalanceOf(journal, trace) == Balance::Spotless;
    if (!spotless_) grown_ = MoreHeld(FoldObjects(journal.records()), trace.cycle[0].end, trace.cycle[1].end);
  } else {
    // A trial's faulted cycle is the first of its world. What a program keeps only once was already kept in the world before.
    good_host_ = WhatIsKept(trace.cycle[0].host);
    good_span_ = trace.cycle[0].seen;
    if (metering.records != nullptr) good_kept_ = KeptBy(*metering.records, good_span_);
  }
  return ObserveCycle(journal, trace, Ending());
}

Result<Rehearsal> InProcessRunner::Rehearse() {
  Status possible = CheckHostFaults();
  if (!possible.ok()) return possible;
  Rehearsal rehearsal;
  for (const bool first : {true, false}) {
    Result<TrialWorld::Pointer> world = TrialWorld::Open(options_.driver, !first && options_.isolate);
    if (!world.ok()) return world.status();
    if (world_ != nullptr) rehearsed_in_.push_back(std::move(world_));
    world_ = std::move(*world);
    Result<Observation> run = RunFaultFree(world_.get(), first);
    if (!run.ok()) return run.status();
    AddRun(std::move(*run), &rehearsal);
  }
  if (rehearsal.run.ledger.facts.calls.empty()) {
    return Status::NotExercised(std::string("no step called the driver") +
                                (Diversion::present() ? "" : ": calls of cu* functions by name are seen with the drop-in library only"));
  }
  rehearsal.grown = grown_;
  ForgetEqualRuns(&rehearsal);
  repeats_exactly_ = !rehearsal.threaded && !rehearsal.drifting;
  if (!rehearsal.others.empty()) {
    Result<TrialWorld::Pointer> world = TrialWorld::Open(options_.driver, options_.isolate);
    if (!world.ok()) return world.status();
    rehearsed_in_.push_back(std::exchange(world_, std::move(*world)));
  }
  if (options_.isolate) {
    shared_trace_ = std::make_unique<SharedBytes>(sizeof(TrialTrace));
    if (shared_trace_->get() == nullptr) return Status(Exit::Failure, "no memory to share with the processes of trials");
    ::new (shared_trace_->get()) TrialTrace();
  } else {
    last_words_.emplace();
  }
  if (host_faults_) rehearsal.host_turns = {good_span_.allocations, good_span_.threads};
  Status host = FindFaultFreeHost(&rehearsal.host_findings);
  if (!host.ok()) return host;
  return rehearsal;
}

Status InProcessRunner::Give(std::vector<TrialOrder> orders) {
  std::move(orders.begin(), orders.end(), std::back_inserter(orders_));
  return {};
}

Result<TrialSeen> InProcessRunner::Next() {
  const Status stopped(Exit::Failure, "stopped by a signal");
  if (interrupted() != 0) return stopped;
  const TrialOrder order = std::move(orders_.front());
  orders_.pop_front();
  faults_.clear();
  plan_ = faults::Plan();
  bool by_site = false;
  for (const std::string& text : order.faults) {
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    if (error.expected != nullptr)
      return Status(Exit::Usage, "fault '" + text + "': column " + std::to_string(error.column) + ": expected " + error.expected);
    if (!plan_.Add(fault)) return Status(Exit::Usage, "expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial");
    faults_.push_back(fault);
    by_site = by_site || fault.site != 0;
  }
  if (shared_trace_ == nullptr) LastWords::Set(WordsFor(lifecycle_.name(), order.faults));

  TrialSeen one;
  one.index = order.index;
  const std::uint64_t benign = BenignFaults(benign_, faults_);
  one.isolation = shared_trace_ == nullptr ? Isolation::InProcess : Isolation::Fork;
  const Stacks stacks = by_site || !spotless_ ? Stacks::All : order.goes_on ? Stacks::FaultedCycle : Stacks::None;
  Result<Ending> ending = Execute(plan_, stacks);
  if (ending.ok() && interrupted() != 0) return stopped;  // an isolated trial was ended, too
  if (!ending.ok()) return ending.status();
  trace_.cycle[0].benign_faults = benign;
  const auto died = [&] { return ending->signal != 0 || ending->timed_out; };
  if (spotless_ && !died()) one.settled = Settle(lifecycle_, benign_, faults_, world_->Journal(), trace_);
  if (one.settled) {
    died_ = false;
    if (order.goes_on) one.seen = ObserveCycle(world_->Journal(), trace_, *ending);
    return one;
  }
  if (stacks != Stacks::All && trace_.lost == CUDA_SUCCESS) ending = Execute(plan_, Stacks::All);
  if (!ending.ok()) return ending.status();
  trace_.cycle[0].benign_faults = benign;
  died_ = died();
  if (trace_.unguarded != 0) Count(Reason::Unguarded, trace_.unguarded, &skipped_);
  one.seen = Observe(lifecycle_, faults_, world_->Journal(), trace_, *ending);
  return one;
}

Result<Ending> InProcessRunner::Execute(const faults::Plan& plan, Stacks stacks) {
  Result<Ending> ending = Ending();
  if (shared_trace_ == nullptr) {
    world_->Run(lifecycle_, plan, stacks, kMostCycles, MeteringOfRuns(), &trace_);
    if (trace_.kept != 0) Count(Reason::Unreturned, trace_.kept, &skipped_);
  } else {
    ending = ExecuteForked(plan, stacks);
  }
  if (trace_.unheard != 0) Count(Reason::Unheard, trace_.unheard, &skipped_);
  return ending;
}

Result<Ending> InProcessRunner::ExecuteForked(const faults::Plan& plan, Stacks stacks) {
  auto* const trace = static_cast<TrialTrace*>(shared_trace_->get());
  *trace = TrialTrace();
  world_->Forget();
  // A trial hangs when its faults have fired and no call was made since the last look. A slow machine is no hang.
  std::uint64_t clock = 0;
  int looks = 0;
  const auto still_going = [&] {
    const faults::JournalView journal = world_->Journal();
    const std::uint64_t before = std::exchange(clock, journal.header().clock.load());
    return ++looks < kMostLooks && (before != clock || !AllFired(journal, plan.size()));
  };
  const auto body = [&] {
    world_->WatchStops();
    world_->Run(lifecycle_, plan, stacks, kMostCycles, Metering(), trace);
  };
  const auto answers = [&] { return (world_->Journal().header().flags.load() & faults::kTellsStops) != 0; };
  Result<Ending> ending = RunForked(body, options_.deadline_ms, still_going, answers);
  trace_ = *trace;
  const bool left = ending.ok() && ending->signal == 0 && !ending->timed_out && !trace_.finished;
  if (left) ending->signal = SIGABRT;  // it exited in the middle of a step, or a sanitizer ended it
  return ending;
}

Status InProcessRunner::WhyLost(std::size_t left) const {
  if (trace_.lost == CUDA_SUCCESS) return {};
  return {Exit::Environment, "the genuine driver's context is lost (" + ErrorText(trace_.lost) + ") after the trial '" + Joined(faults_) +
                                 "'; " + std::to_string(left) + " known trials need another process"};
}

std::vector<Because> InProcessRunner::unmetered() const {
  if (!host_.wanted()) return {{options_.isolate ? Reason::HostIsolated : Reason::HostAsAsked}};
  std::vector<Because> unmetered = host_.unmetered();
  if (!host_.alone()) unmetered.push_back({Reason::HostNotAlone});
  return unmetered;
}

}  // namespace cuaudit::harness
