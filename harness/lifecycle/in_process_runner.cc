// SPDX-License-Identifier: MIT
#include "harness/lifecycle/in_process_runner.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <new>
#include <utility>

#include "faults/driver/result.h"
#include "harness/defect/blame.h"
#include "harness/lifecycle/chosen_driver.h"
#include "harness/verdict/parts.h"

namespace cuaudit::harness {
namespace {

constexpr int kMostLooks = 10;  // deadlines that a trial may last while it makes calls or has not met its fault

std::string Joined(const std::vector<faults::Fault>& faults) {
  std::string words;
  for (const faults::Fault& fault : faults) words.append(words.empty() ? "" : ";").append(harness::TextOf(fault));
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
  if (!trace.opened) return Status(Exit::Environment, Words({Detail::NoAddressSpace}));
  if (!trace.prepared) {
    Details why = {{Detail::NotPrepared}};
    if (trace.prepare.has_code) why.push_back({Detail::Namely, {ErrorText(trace.prepare.code)}});
    return Status(Exit::Environment, Words(why));
  }
  if (trace.first_failed != 0) {
    const Details where = trace.first_failed == 1 ? Details() : Details{{Detail::InSecondCycle}};
    return Status(Exit::Environment, Words(FailedWithoutFault(trace, where)));
  }
  if (trace.lost != CUDA_SUCCESS)
    return Status(Exit::Environment, Words(Details{{Detail::WithoutFault}, {Detail::ContextLost, {ErrorText(trace.lost)}}}));
  const faults::JournalView journal = world->Journal();
  if ((journal.header().flags.load() & faults::kRecordsDropped) != 0) return Status(Exit::Failure, Words({Detail::CycleTooLong}));
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
    AddRun(std::move(*run), sites_, &rehearsal);
  }
  if (rehearsal.run.ledger.facts.calls.empty()) {
    return Status::NotExercised(Words(Diversion::NoStepCalled()));
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
  return host.ok() ? Result<Rehearsal>(std::move(rehearsal)) : host;
}

Status InProcessRunner::Give(std::vector<TrialOrder> orders) {
  std::move(orders.begin(), orders.end(), std::back_inserter(orders_));
  return {};
}

Status InProcessRunner::SetFaults(const std::vector<std::string>& faults) {
  faults_.clear();
  plan_ = faults::Plan();
  for (const std::string& text : faults) {
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    if (error.expected != nullptr)
      return {Exit::Usage, "fault '" + text + "': column " + std::to_string(error.column) + ": expected " + error.expected};
    if (!plan_.Add(fault)) return {Exit::Usage, "expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial"};
    faults_.push_back(fault);
  }
  return {};
}

Result<faults::JournalView> InProcessRunner::Record(const std::vector<std::string>& faults) {
  const Status fit = SetFaults(faults);
  if (!fit.ok()) return fit;
  const Result<Ending> ending = Execute(plan_, Stacks::All);
  if (!ending.ok()) return ending.status();
  const faults::JournalView journal = world_->Journal();
  return trace_.cycle[0].finished ? journal.Part(0, trace_.cycle[0].end_record) : journal;
}

Result<TrialSeen> InProcessRunner::Next() {
  const Status stopped(Exit::Failure, "stopped by a signal");
  if (interrupted() != 0) return stopped;
  const TrialOrder order = std::move(orders_.front());
  orders_.pop_front();
  const Status fit = SetFaults(order.faults);
  if (!fit.ok()) return fit;
  const bool by_site = std::any_of(faults_.begin(), faults_.end(), [](const faults::Fault& fault) { return fault.site != 0; });
  if (shared_trace_ == nullptr) LastWords::Set(WordsFor(lifecycle_.name(), order.faults));

  TrialSeen one;
  one.index = order.index;
  const DeclaredFaults declared = DeclaredOf(benign_, order.faults);
  one.isolation = shared_trace_ == nullptr ? Isolation::InProcess : Isolation::Fork;
  const Stacks stacks = by_site || !spotless_ ? Stacks::All : order.goes_on ? Stacks::FaultedCycle : Stacks::None;
  Result<Ending> ending = Execute(plan_, stacks);
  if (ending.ok() && interrupted() != 0) return stopped;  // an isolated trial was ended, too
  if (!ending.ok()) return ending.status();
  trace_.cycle[0].benign_faults = declared.surely;
  const auto died = [&] { return ending->signal != 0 || ending->timed_out; };
  if (spotless_ && !died()) one.settled = Settle(lifecycle_, declared, faults_, world_->Journal(), trace_);
  if (one.settled) {
    died_ = false;
    if (order.goes_on) one.seen = ObserveCycle(world_->Journal(), trace_, *ending);
    return one;
  }
  if (stacks != Stacks::All && trace_.lost == CUDA_SUCCESS) ending = Execute(plan_, Stacks::All);
  if (!ending.ok()) return ending.status();
  trace_.cycle[0].benign_faults = declared.surely;
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

// The part of InProcessRunner that checks what trials keep of the host each time they are repeated.

Metering InProcessRunner::MeteringOfRuns() const {
  Metering metering;
  if (!host_.wanted()) return metering;
  metering.first = host_.sees_blocks() ? kCountedMeters : kTrialMeters;
  metering.records = host_.records();
  metering.stacks = host_stacks_;
  metering.count_turns = host_faults_;
  return metering;
}

Status InProcessRunner::CheckHostFaults() const {
  if (!host_faults_ || host_.records() != nullptr) return {};
  const std::string why = !host_.wanted() ? "SweepOptions::host without isolate" : Words(unmetered().front());
  return {Exit::Usage, "faults of the host: expected cuaudit's host drop-in at work: " + why};
}

// One good cycle may take from the C library's caches what every other one adds to the heap. (One that adds more than the others hides as
// much in a trial: that is not looked for, because it would cost repeats of every trial.)
Status InProcessRunner::KnowGoodHeap() {
  if (good_heap_known_) return {};
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < HostExcess::kRepeats; ++i) {
    const Result<Ending> ending = Execute(faults::Plan(), Stacks::None);
    if (!ending.ok()) return ending.status();
    kept.push_back(trace_.cycle[0].host[HostMeter::HeapBytes]);
  }
  std::sort(kept.begin(), kept.end());
  good_host_.value[static_cast<std::size_t>(HostMeter::HeapBytes)] = std::max<std::int64_t>(kept[kept.size() / 2], 0);
  good_heap_known_ = true;
  return {};
}

Status InProcessRunner::KnowGoodByPlace() {
  if (good_by_place_.has_value()) return {};
  host_stacks_ = true;
  Status status;
  for (int i = 0; i < 2 && status.ok(); ++i) {  // the second run shows releases of what the first one kept
    status = Execute(faults::Plan(), Stacks::None).status();
  }
  host_stacks_ = false;
  if (!status.ok()) return status;
  good_by_place_ = KeptBy(*host_.records(), trace_.cycle[0].seen);
  return {};
}

// Misuse of a mutex is a finding without any fault. What a good cycle keeps may be a cache, so only RunCycles judges that.
Status InProcessRunner::FindFaultFreeHost(std::vector<TrialFindingText>* findings) {
  if (host_.records() == nullptr || good_kept_.Violations() == 0) return {};
  Status status = KnowGoodByPlace();
  if (!status.ok()) return status;
  if (good_by_place_->net.lost) Count(Reason::PlacesBeyond, 1, &skipped_);
  std::vector<TrialFinding> found;
  for (const auto& [key, tally] : good_by_place_->places) {
    if (key.rule != Rule::Leak && key.rule != Rule::Deficit) found.push_back(HostFinding(key, tally, host_.records()->View()));
  }
  *findings = HostTexts(found);
  return {};
}

std::vector<TrialFindingText> InProcessRunner::HostTexts(const std::vector<TrialFinding>& places) {
  std::size_t of_googletest = 0;
  std::vector<TrialFindingText> texts = harness::HostTexts(places, host_.records()->View(), sites_, &of_googletest);
  if (of_googletest != 0) Count(Reason::GoogleTestBlocks, of_googletest, &skipped_);
  return texts;
}

Status InProcessRunner::RepeatByMeters(bool balanced, std::vector<MeterFinding>* meters) {
  const HostMeterSet asked = genuine_ ? (balanced ? kCountedMeters : kLibraryMeters) : (balanced ? kTrialMeters : kCountedMeters);
  const HostChange trial = trace_.cycle[0].host;
  if (HostExcess(trial, good_host_, asked).empty()) return {};
  Status status = KnowGoodHeap();
  if (!status.ok()) return status;
  HostExcess excess(trial, good_host_, asked);
  for (std::size_t i = 0; i < excess.repeats_wanted() && !excess.empty(); ++i) {
    const Result<Ending> ending = Execute(plan_, i + 1 >= HostExcess::kRepeats ? Stacks::All : Stacks::None);
    if (!ending.ok()) return ending.status();
    excess.Repeat(trace_.cycle[0].host, trace_.cycle[0].heap_bytes);
  }
  excess.DropWhatDoesNotAddUp();
  *meters = excess.Findings();
  return {};
}

Status InProcessRunner::RepeatByPlace(bool blocks, bool descriptors, TrialResult* trial, std::vector<TrialFinding>* places) {
  Status status = KnowGoodByPlace();
  if (!status.ok()) return status;
  host_stacks_ = true;
  Result<Ending> ending = Execute(plan_, Stacks::None);
  HostLoss loss(*good_by_place_, blocks, descriptors);
  bool lost = good_by_place_->net.lost;  // all these runs share one journal
  for (std::size_t i = 0; ending.ok() && !lost && i < HostLoss::kRepeats && !loss.empty(); ++i) {
    ending = Execute(plan_, i + 1 == HostLoss::kRepeats ? Stacks::All : Stacks::None);
    if (!ending.ok()) break;
    const HostKept kept = KeptBy(*host_.records(), trace_.cycle[0].seen);
    lost = kept.net.lost;
    if (!lost) loss.Repeat(kept);
  }
  host_stacks_ = false;
  if (!ending.ok()) return ending.status();
  if (lost) trial->skipped.push_back(Reason::PlacesBeyond);
  if (!lost && !loss.empty()) *places = loss.Findings(host_.records()->View());
  return {};
}

Status InProcessRunner::Repeat(TrialResult* trial) {
  if (!host_.wanted() || !trial->fired || died_ || trace_.lost != CUDA_SUCCESS || !trace_.cycle[0].finished) return {};
  // Memory may belong to a driver object that stays, and contexts of a genuine driver have threads and descriptors. So one loss is reported
  // only once.
  const faults::JournalView journal = world_->Journal();
  const bool balanced = trial->verdict != Verdict::ReleaseRefused && trial->verdict != Verdict::RetainedForRetry &&
                        BalanceOf(journal, trace_) == Balance::Spotless &&
                        std::none_of(journal.records().begin(), journal.records().end(), MakesUnownedHolder);
  if (!balanced) trial->skipped.push_back(Reason::ObjectsFirst);
  const bool blocks = balanced && host_.sees_blocks();
  bool may_have_places = false;
  if (HostRecords* const records = host_.records()) {
    const HostKept kept = KeptBy(*records, trace_.cycle[0].seen);
    may_have_places = HostLoss::MayBe(kept, good_kept_, blocks);
    if (kept.net.lost) trial->skipped.push_back(Reason::PlacesBeyond);
  }
  std::vector<MeterFinding> meters;
  Status status = RepeatByMeters(balanced, &meters);
  std::vector<TrialFinding> places;
  if (status.ok() && host_.records() != nullptr && (may_have_places || !meters.empty())) {
    const auto of_descriptors = [](const MeterFinding& one) { return one.meter == HostMeter::Descriptors; };
    status = RepeatByPlace(blocks, std::any_of(meters.begin(), meters.end(), of_descriptors), trial, &places);
  }
  if (!status.ok()) return status;
  if ((meters.empty() && places.empty()) || !host_.alone()) return {};
  for (const TrialFinding& place : places) {
    if (place.rule == Rule::Leak) std::erase_if(meters, [&](const MeterFinding& one) { return KindOf(one.meter) == place.kind; });
  }
  std::vector<TrialFindingText> found;
  if (!places.empty()) found = HostTexts(places);
  for (const MeterFinding& meter : meters) found.push_back(TextOf(meter));
  if (found.empty()) return {};
  // The last repeat had call stacks.
  if (trial->fault_key == 0) NamePlaces(ObserveCycle(world_->Journal(), trace_, Ending()), sites_, trial);
  for (TrialFindingText& one : found) one.blame = BlameForLoss({one.acquired->stack, trial->fault_site->stack, {}, 0, {}});
  AddFindings(std::move(found), trial);
  return {};
}

}  // namespace cuaudit::harness
