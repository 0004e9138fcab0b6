// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/coverage.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/plan/fault.h"
#include "harness/defect/blame.h"
#include "harness/defect/defects.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

// Counts the places of each way to fail by function.
class TriedWays {
 public:
  void Add(const report::Tried& way, const std::vector<report::Frame>& stack) {
    ProgramPlace at = PlaceInProgram(stack);
    if (way.unwinding) at.function.clear();  // most stacks of those calls are known to their trials only
    places_[{way.call, way.code, way.how, way.unwinding, std::move(at.function)}].insert(at.place);
  }
  std::vector<report::Tried> Sorted() const {
    std::vector<report::Tried> tried;
    for (const auto& [way, places] : places_) {
      const auto& [call, code, how, unwinding, function] = way;
      tried.push_back({call, code, how, unwinding, function, places.size()});
    }
    return tried;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string, bool, std::string>, std::set<std::uint64_t>> places_;
};

// A lost context answers with an error that the call itself does not document. A request to the host has one way to fail.
bool IsDocumented(const std::string& call, const std::string& code) {
  const std::size_t base = driver::FindBase(call);
  if (base == driver::kBaseCount) return true;
  CUresult result = CUDA_SUCCESS;
  return driver::ResultFromName(code, &result) && driver::IsLegalCode(static_cast<driver::BaseId>(base), result);
}

}  // namespace

ProgramPlace PlaceInProgram(const std::vector<report::Frame>& stack) {
  ProgramPlace found;
  found.place = kHashSeed;
  for (const report::Frame& frame : stack) {
    if (!IsProgram(frame)) continue;
    const std::string_view name = PlainName(frame.function);
    if (found.function.empty()) found.function = name;
    found.place = HashNumber(frame.line != 0 ? static_cast<std::uint64_t>(frame.line) : frame.offset, HashText(name, found.place));
  }
  return found;
}

void TriedBefore::Add(const std::string& call, const std::string& function, std::uint64_t places) {
  std::uint64_t& most = places_[{call, function}];
  most = std::max(most, places);
}

std::vector<Novelty> TriedBefore::Compare(const std::vector<report::Acquired>& places) const {
  std::vector<Function> functions;
  std::map<Function, std::set<std::uint64_t>> now;
  for (const report::Acquired& one : places) {
    ProgramPlace at = PlaceInProgram(one.stack);
    functions.emplace_back(one.call, std::move(at.function));
    now[functions.back()].insert(at.place);
  }
  std::vector<Novelty> novelties;
  for (const Function& function : functions) {
    const auto before = places_.find(function);
    const bool same = before != places_.end() && (before->second == 0 || before->second == now[function].size());
    novelties.push_back(before == places_.end() ? Novelty::New : same ? Novelty::Known : Novelty::Changed);
  }
  return novelties;
}

CoverageTable::Row& CoverageTable::RowOf(const WayToFail& way) {
  const faults::FaultWords fault = faults::WordsOf(way.fault);
  Row row;
  row.call = fault.call;
  row.code = fault.code;
  row.how = fault.how;
  row.site = way.site;
  row.phase = way.phase;
  row.unwinding = way.unwinding;
  std::uint64_t key = HashText(row.how, HashText(row.code, HashText(row.call)));
  // An allocation or thread of a lifecycle has no place before its trial, only a turn.
  if (way.site == 0 && faults::HostFaultOf(std::string_view(way.fault)) != nullptr) key = HashText(fault.where, key);
  key = HashNumber(way.site, HashNumber(static_cast<std::uint64_t>(way.phase), HashNumber(way.unwinding ? 1 : 0, key)));
  const auto [found, fresh] = by_key_.emplace(key, rows_.size());
  if (fresh) rows_.push_back(std::move(row));
  return rows_[found->second];
}

void CoverageTable::Plan(const WayToFail& way, std::size_t trial) { RowOf(way).trials.push_back(trial); }

void CoverageTable::LeaveOut(const WayToFail& way, Reason why) {
  Row& row = RowOf(way);
  if (row.why_not == Reason::None) row.why_not = why;
}

report::Coverage CoverageTable::Result(const std::map<std::size_t, TrialResult>& results,
                                       const std::function<report::Acquired(std::uint64_t)>& site, Reason untried) const {
  report::Coverage coverage;
  coverage.reachable = rows_.size();
  std::set<std::pair<std::string, std::string>> tried;
  std::set<std::string> calls;
  TriedWays ways;
  for (const Row& row : rows_) {
    calls.insert(row.call);
    const auto fired = [&](std::size_t trial) {
      const auto result = results.find(trial);
      return result != results.end() && result->second.fired;
    };
    if (std::any_of(row.trials.begin(), row.trials.end(), fired)) {
      ++coverage.reached;
      if (IsDocumented(row.call, row.code)) tried.emplace(row.call, row.code);
      ways.Add({row.call, row.code, row.how, row.unwinding, {}, 0}, row.unwinding ? std::vector<report::Frame>() : site(row.site).stack);
      continue;
    }
    report::NotReached one = {.call = row.call, .code = row.code, .how = row.how};
    if (row.phase != faults::Phase::Any) one.phase = std::string(faults::Name(row.phase));
    one.unwinding = row.unwinding;
    const auto first = row.trials.empty() ? results.end() : results.find(row.trials.front());
    if (first != results.end()) {
      one.missed = first->second.missed;
    } else {
      one.why = row.trials.empty() ? row.why_not : untried;
    }
    one.stack = site(row.site).stack;
    coverage.not_reached.push_back(std::move(one));
  }
  coverage.tried = ways.Sorted();
  coverage.codes_tried = tried.size();
  for (const std::string& call : calls) {
    const std::size_t base = driver::FindBase(call);
    // A request to the host has one way to fail.
    coverage.codes_documented += base == driver::kBaseCount ? 1 : driver::LegalCodes(static_cast<driver::BaseId>(base)).size();
  }
  return coverage;
}

namespace {

report::NeverFired WhatNeverFired(std::span<const TrialResult* const> trials, std::size_t planned, const std::string& dir) {
  report::NeverFired never;
  for (const TrialResult* const trial : trials) {
    if (!trial->stray && !trial->fired) ++never.trials[trial->missed];
  }
  never.planned = planned;
  never.journals = dir;
  if (trials.size() != 1 || trials.front()->unfired.empty()) return never;
  for (const std::size_t fault : trials.front()->unfired) never.faults.push_back(trials.front()->faults[fault]);
  never.of = trials.front()->faults.size();
  return never;
}

}  // namespace

void RequireCoverage(std::uint64_t tenths, report::Run* run) {
  const std::uint64_t got = report::PerMille(*run->coverage);
  if (got >= tenths) return;
  run->message.coverage = {got, tenths};
  if (run->outcome == words::Outcome::Clean) run->outcome = words::Outcome::NotExercised;
}

void SetOutcome(std::span<const TrialResult* const> trials, std::size_t possible, const std::string& dir, report::Run* run) {
  std::size_t planned = 0;
  for (const TrialResult* const trial : trials) planned += trial->stray ? 0 : 1;
  report::Message& message = run->message;
  message.never_fired = WhatNeverFired(trials, planned, dir);
  if (planned == 0) message.nothing = possible == 0 ? report::NothingPlanned::NothingCanFail : report::NothingPlanned::NothingChosen;
  const bool tried = message.never_fired.trials.empty() && planned != 0;
  run->outcome = !run->findings.empty() ? words::Outcome::Findings : tried ? words::Outcome::Clean : words::Outcome::NotExercised;
  if (planned < possible) message.chosen = {planned, possible};
}

void RefuseUnseenAbandonment(const faults::JournalHeader& header, std::span<const TrialResult* const> trials, report::Run* run) {
  const auto unseen = [](const TrialResult* trial) {
    return !trial->stray && trial->verdict == Verdict::AbandonedAtExit &&
           std::any_of(trial->notes.begin(), trial->notes.end(),
                       [](const TrialFindingText& note) { return note.rule == Rule::AbandonedAtExit; });
  };
  const auto abandoned = static_cast<std::uint64_t>(std::count_if(trials.begin(), trials.end(), unseen));
  if (abandoned == 0) return;
  const std::uint32_t flags = header.flags.load();
  if ((flags & faults::kHostProbesActive) != 0 && (flags & faults::kHeapLeftOut) == 0) return;
  run->message.abandoned = {abandoned, run->totals.trials};
  if (run->outcome == words::Outcome::Clean) run->outcome = words::Outcome::NotExercised;
}

}  // namespace cuaudit::harness
