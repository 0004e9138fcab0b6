// SPDX-License-Identifier: MIT
#include "harness/compare/looked_for.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/defect/blame.h"
#include "harness/defect/defects.h"
#include "reports/audit_defects.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

using report::Reason;

// What the audit was told to leave out: it may be other places in each release.
constexpr std::array kChoices = {Reason::NotChosen,  Reason::SecondNotChosen, Reason::BeyondLimit,
                                 Reason::OverBudget, Reason::ShardMissing,    Reason::Interrupted};

// What one function makes: the ways in which its calls failed, with the number of places.
using Makes = std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::uint64_t>;

std::map<std::string, Makes> FunctionsOf(const report::Run& run) {
  std::map<std::string, Makes> functions;
  if (!run.coverage) return functions;
  for (const report::Tried& one : run.coverage->tried) {
    if (!one.unwinding && !one.function.empty()) functions[one.function][{one.call, one.code, one.how}] = one.places;
  }
  return functions;
}

// Functions of `before` that are gone, when each of them is one that only `after` has: those make the same calls, one to one. Otherwise
// none: then nobody can tell a function that was renamed from one that was left out.
std::set<std::string> Renamed(const report::Run& before, const report::Run& after) {
  const std::map<std::string, Makes> had = FunctionsOf(before);
  const std::map<std::string, Makes> has = FunctionsOf(after);
  std::set<std::string> gone;
  std::multiset<Makes> old;
  std::multiset<Makes> fresh;
  for (const auto& [function, makes] : had) {
    if (has.contains(function)) continue;
    gone.insert(function);
    old.insert(makes);
  }
  for (const auto& [function, makes] : has) {
    if (!had.contains(function)) fresh.insert(makes);
  }
  return old == fresh ? gone : std::set<std::string>();
}

bool IsNamed(const Stack& stack) {
  return std::any_of(stack.begin(), stack.end(), [](const report::Frame& frame) { return !frame.function.empty() && IsProgram(frame); });
}

// True when the run makes the driver call, with a fault or without. Nothing: that is unknown.
std::optional<bool> MakesCall(const report::Run* run, std::string_view call) {
  if (run == nullptr || !run->sequence || run->sequence->places.empty()) return std::nullopt;
  const auto same = [call](const auto& one) { return WithoutVersion(one.call) == call; };
  const std::vector<report::CallPlace>& places = run->sequence->places;
  if (std::any_of(places.begin(), places.end(), same)) return true;
  if (run->coverage && std::any_of(run->coverage->tried.begin(), run->coverage->tried.end(), same)) return true;
  if (run->sequence->more != 0) return std::nullopt;
  return false;
}

bool IsDriverCall(std::string_view call) { return call.size() > 2 && call.starts_with("cu") && call[2] >= 'A' && call[2] <= 'Z'; }

// True when the text of a fault as a report has it, "cuMemAlloc#2=OUT_OF_MEMORY,refuse", makes the call fail in this way.
bool IsFault(std::string_view text, const FailingWay& way) {
  const faults::FaultWords fault = faults::WordsOf(text);
  return fault.call == way.call && fault.code == way.code && fault.how == way.how;
}

// The innermost function of the program, as Tried::function has it. Empty: unknown.
std::string FunctionOf(const std::vector<report::Frame>& stack) {
  const auto found = std::find_if(stack.begin(), stack.end(), IsProgram);
  return found == stack.end() ? std::string() : std::string(PlainName(found->function));
}

bool SameFaults(const report::Run& one, const report::Run& other) {
  const auto same = [](const report::Replayed& a, const report::Replayed& b) { return a.text == b.text; };
  return std::equal(one.faults.begin(), one.faults.end(), other.faults.begin(), other.faults.end(), same);
}

// Where the first fault of the trial hit. Null: unknown.
const report::CallPlace* HitBy(const report::TriedCall& trial, const report::Sequence& sequence) {
  std::optional<std::uint32_t> at = trial.at;
  if (trial.call && *trial.call < sequence.calls.size()) at = sequence.calls[*trial.call].place;
  return at && *at < sequence.places.size() ? &sequence.places[*at] : nullptr;
}

// True when the first fault of a replay hit a call that `function` makes.
bool HitIn(const report::Sequence& sequence, const FailingWay& way) {
  return std::any_of(sequence.trials.begin(), sequence.trials.end(), [&](const report::TriedCall& trial) {
    const report::CallPlace* const place = HitBy(trial, sequence);
    return place != nullptr && place->call == way.call && place->at && PlainName(place->at->function) == way.function;
  });
}

}  // namespace

const report::Case* CaseOf(const report::Audit& audit, const std::string& name) {
  const auto found = std::find_if(audit.cases.begin(), audit.cases.end(), [&](const report::Case& one) { return one.name == name; });
  return found == audit.cases.end() ? nullptr : &*found;
}

const report::Run* RunOf(const report::Case* of, report::Mode mode) {
  if (of == nullptr) return nullptr;
  const auto found = std::find_if(of->runs.begin(), of->runs.end(), [mode](const report::Run& run) { return run.mode == mode; });
  return found == of->runs.end() ? nullptr : &*found;
}

std::string WhyNotThere(const report::Case* now, report::Mode mode) {
  if (now == nullptr) return words::Words({Detail::CaseGone});
  return words::Words({Detail::CaseHasNo, {std::string(report::Name(mode))}});
}

LookedFor::LookedFor(const report::Case* now, const report::Run* before, report::Mode mode) : run_(RunOf(now, mode)), before_(before) {
  if (now != nullptr && !now->not_run.empty()) why_ = now->not_run;
  else if (run_ == nullptr) why_ = WhyNotThere(now, mode);
  else why_ = report::WhyNothingProved(*run_);
  if (!why_.empty()) return;
  if (run_->coverage) tried_ = TriedIn(*run_->coverage);
  if (run_->coverage && before_ != nullptr && before_->coverage) {
    tried_before_ = TriedIn(*before_->coverage);
    for (const report::NotReached& row : run_->coverage->not_reached) ++more_not_reached_[KeyOf(row)];
    for (const report::NotReached& row : before_->coverage->not_reached) --more_not_reached_[KeyOf(row)];
  }
  names_now_ = NamesOf(*run_);
  if (before_ != nullptr) {
    names_before_ = NamesOf(*before_);
    why_ = Words(OtherCommand(*before_, *run_));
    renamed_ = Renamed(*before_, *run_);
  }
  if (!run_->sequence) return;
  for (const report::TriedCall& trial : run_->sequence->trials) most_faults_ = std::max<std::uint64_t>(most_faults_, trial.faults.size());
}

LookedFor::TriedPlaces LookedFor::TriedIn(const report::Coverage& coverage) {
  TriedPlaces tried;
  for (const report::Tried& one : coverage.tried) tried[{one.call, one.code, one.how, one.unwinding}][one.function] += one.places;
  return tried;
}

LookedFor::RowKey LookedFor::KeyOf(const report::NotReached& row) {
  std::vector<std::string> functions;
  for (const report::Frame& frame : row.stack) functions.emplace_back(PlainName(frame.function));
  return {row.call, row.code, row.how, row.phase, row.unwinding, row.why, row.missed, std::move(functions)};
}

LookedFor::NamesSeen LookedFor::NamesOf(const report::Run& run) {
  NamesSeen names;
  const auto add = [&names](bool named) {
    names.any = true;
    names.some = names.some || named;
  };
  for (const std::vector<report::Finding>* const list : {&run.findings, &run.notes}) {
    for (const report::Finding& one : *list) {
      if (!one.acquired.call.empty() || !one.where.empty()) add(IsNamed(one.acquired.stack) || IsNamed(one.where_stack));
      if (one.fault) add(IsNamed(one.fault->stack));
    }
  }
  for (const report::CycleRow& row : run.cycle_rows) add(IsNamed(row.acquired.stack));
  if (run.sequence) {
    for (const report::CallPlace& place : run.sequence->places) add(place.at && IsNamed({*place.at}));
  }
  if (run.coverage) {
    for (const report::Tried& one : run.coverage->tried) {
      if (!one.unwinding) add(!one.function.empty());
    }
  }
  return names;
}

std::string LookedFor::WhyNot(const KnownDefect& defect) const {
  if (!why_.empty()) return why_;
  for (const auto why : {&LookedFor::WhyNotSeen, &LookedFor::WhyTooFewCycles, &LookedFor::WhyNotNamed, &LookedFor::WhyNotTried,
                         &LookedFor::WhyNotReplayed, &LookedFor::WhyNotAcquired}) {
    if (const Details details = (this->*why)(defect); !details.empty()) return Words(details);
  }
  return {};
}

// Coverage tells the ways to fail on the way back, and not after which first fault. So it speaks for every pair of faults only when no
// trial was left out. What the base left out for the program's sake could not show the defect there either.
Details LookedFor::WhyPairsNotTried(const KnownDefect& defect) const {
  const words::DetailPart needs = {Detail::NeedsFaults, {std::to_string(defect.shown_by.faults)}};
  const auto left_out = [&needs](Reason why) { return Details{needs, {Detail::TrialsLeftOut}, {Detail::Namely, {Words(why)}}}; };
  for (const Reason why : kChoices) {
    if (report::Skipped(*run_, why) != 0) return left_out(why);
  }
  for (const Reason why : {Reason::SecondKilled, Reason::SecondNoStack}) {
    const std::uint64_t earlier = before_ == nullptr ? 0 : report::Skipped(*before_, why);
    if (report::Skipped(*run_, why) > earlier) return left_out(why);
  }
  if (run_->message.chosen) return {needs, {Detail::TrialsLeftOut}};
  if (defect.shown_by.faults <= 2 || most_faults_ >= defect.shown_by.faults) return {};
  return {needs, {Detail::DepthNotSaid}};
}

bool LookedFor::MayBe(const std::string& function, const std::string& before) const {
  if (function.empty() || before.empty() || function == before) return true;
  if (!renamed_.contains(before)) return false;
  const std::vector<report::Tried>& tried = before_->coverage->tried;  // of the functions in it some are renamed
  return std::none_of(tried.begin(), tried.end(), [&function](const report::Tried& one) { return one.function == function; });
}

// True when the base tried no more places of the way. A baseline file does not say.
bool LookedFor::TriesAsManyPlaces(const FailingWay& way) const {
  if (before_ == nullptr || !before_->coverage) return false;
  const auto places = [&way](const TriedPlaces& tried) -> std::uint64_t {
    const auto found = tried.find({way.call, way.code, way.how, way.unwinding});
    if (found == tried.end()) return 0;
    const auto same = found->second.find(way.function);
    return same == found->second.end() ? 0 : same->second;
  };
  return places(tried_) >= places(tried_before_);
}

// Places are counted, and nobody knows which of them is that of the base. So one that was left out, or whose fault never fired, may be it,
// unless the base could not try such a place either: then its own is among those that were tried.
Details LookedFor::WhyPlaceNotTried(const FailingWay& way) const {
  const bool as_many = TriesAsManyPlaces(way);
  for (const report::NotReached& row : run_->coverage->not_reached) {
    if (row.unwinding || row.call != way.call || row.code != way.code || row.how != way.how) continue;
    if (!MayBe(FunctionOf(row.stack), way.function)) continue;
    const bool chosen = std::find(kChoices.begin(), kChoices.end(), row.why) != kChoices.end();
    if (as_many && !chosen && more_not_reached_.at(KeyOf(row)) <= 0) continue;
    return {{Detail::NotAtEachPlace, {Describe(way), std::string(report::Words(row))}}};
  }
  return {};
}

// A trial that the program ended right after the fault shows no loss and nothing that was not put back, and where nobody looked at the
// heap it may have unwound nothing.
Details LookedFor::WhyGivenUp(const FailingWay& way) const {
  Details why = {{Detail::ExitsAtOnce, {Describe(way)}}};
  if (!run_->sequence || run_->sequence->more_trials != 0) return why;
  const report::Sequence& sequence = *run_->sequence;
  const auto may_be = [&](const report::TriedCall& trial) {
    if (trial.verdict != report::Verdict::AbandonedAtExit || trial.faults.empty() || !IsFault(trial.faults.front(), way)) return false;
    const report::CallPlace* const place = HitBy(trial, sequence);
    return place == nullptr || !place->at || MayBe(std::string(PlainName(place->at->function)), way.function);
  };
  return std::any_of(sequence.trials.begin(), sequence.trials.end(), may_be) ? why : Details();
}

// Why the failing calls of a defect were not all made to fail again. Empty: they were.
Details LookedFor::WhyNotTried(const KnownDefect& defect) const {
  if (defect.failing.empty() || run_->mode != report::Mode::Sweep) return {};
  if (!run_->coverage || run_->coverage->tried.empty()) return {{Detail::CallsNotSaid}};
  for (const FailingWay& way : defect.failing) {
    const auto found = tried_.find({way.call, way.code, way.how, way.unwinding});
    if (found == tried_.end()) return {{Detail::NotMadeToFail, {Describe(way)}}};
    const auto same = found->second.find(way.function);
    if (same == found->second.end()) {
      if (!renamed_.contains(way.function)) return {{Detail::NotMadeToFail, {Describe(way)}}};
      continue;
    }
    // How often a call is made on the way back depends on how the program unwinds.
    if (!way.unwinding && same->second < way.places) return {{Detail::FailedAtFewer, {Describe(way)}}};
  }
  for (const FailingWay& way : defect.failing) {
    if (way.unwinding) continue;
    if (Details why = WhyPlaceNotTried(way); !why.empty()) return why;
    const bool unseen = words::IsLoss(defect.rule) || words::IsUnsettled(defect.rule);
    if (!unseen || !run_->message.abandoned) continue;
    if (Details why = WhyGivenUp(way); !why.empty()) return why;
  }
  return defect.shown_by.faults > 1 ? WhyPairsNotTried(defect) : Details();
}

// Why an audit with other settings does not look at what the defect is about.
Details LookedFor::WhyNotSeen(const KnownDefect& defect) const {
  const report::Run& now = *run_;
  const ShownBy& shown = defect.shown_by;
  const auto differs = [](std::string_view one, std::string_view other) { return !one.empty() && !other.empty() && one != other; };
  const auto other = [](Detail what, std::string_view was, std::string_view is) -> Details {
    return {{what, {std::string(is), std::string(was)}}};
  };
  if (const std::string_view driver = driver::Name(now.driver.kind); differs(shown.driver, driver)) {
    return other(Detail::OtherDriver, shown.driver, driver);
  }
  if (differs(shown.world, now.driver.world)) return other(Detail::OtherWorld, shown.world, now.driver.world);
  if (now.scope == "pinned" && differs(shown.scope, now.scope)) return other(Detail::OtherScope, shown.scope, now.scope);
  for (const std::string& probe : shown.probes) {
    const std::vector<std::string>& probes = now.host.probes;
    if (std::find(probes.begin(), probes.end(), probe) == probes.end()) return {{Detail::NobodyLooked, {probe}}};
  }
  return HidingSetting(defect, now);
}

// A base goes on with more and more cycles while something grows, and a program that was repaired stops early. It has looked when it has
// made as many as the base had when it first saw the growth. One that grows again goes on by itself, or is undecided.
Details LookedFor::WhyTooFewCycles(const KnownDefect& defect) const {
  if (run_->mode != report::Mode::Cycles) return {};
  const ShownBy& shown = defect.shown_by;
  if (shown.cycles == 0) return {{Detail::CyclesNotSaid}};
  const std::vector<std::uint64_t>& counts = run_->cycle_counts;
  const auto most = std::max_element(counts.begin(), counts.end());
  const std::uint64_t cycles = most == counts.end() ? 0 : *most;
  const std::uint64_t needed = shown.grown == 0 ? shown.cycles : shown.grown;
  if (cycles < needed) return {{Detail::FewerCycles, {std::to_string(cycles), std::to_string(needed)}}};
  for (const report::Finding& note : run_->notes) {
    const bool same =
        note.acquired.call == defect.call && std::find(defect.kinds.begin(), defect.kinds.end(), note.kind) != defect.kinds.end();
    if (same && note.rule == report::Rule::Undecided) return {{Detail::GrowsMayLeak, {defect.call}}};
  }
  return {};
}

// A defect of a program without function names is not found again in one that has them, nor the other way round.
Details LookedFor::WhyNotNamed(const KnownDefect& defect) const {
  const auto no_name = [](const FailingWay& way) { return way.function.empty(); };
  const bool in_defect =
      !defect.stack.empty() || !defect.blame.empty() || !std::all_of(defect.failing.begin(), defect.failing.end(), no_name);
  const bool before = in_defect || names_before_.some;
  if (!before && names_now_.some && !defect.call.empty() && defect.call.front() != '(') return {{Detail::BaseHasNoNames}};
  if (in_defect && names_now_.any && !names_now_.some) return {{Detail::ReportHasNoNames}};
  return {};
}

// A replay looks for what its own faults can show.
Details LookedFor::WhyNotReplayed(const KnownDefect& defect) const {
  if (defect.failing.empty() || run_->mode != report::Mode::Replay) return {};
  const std::vector<report::Replayed>& faults = run_->faults;
  const bool same = before_ != nullptr && SameFaults(*before_, *run_);
  for (const FailingWay& way : defect.failing) {
    const auto begin = faults.begin() + (way.unwinding && !faults.empty() ? 1 : 0);
    const auto end = way.unwinding || faults.empty() ? faults.end() : begin + 1;
    bool made = std::any_of(begin, end, [&way](const report::Replayed& fault) { return IsFault(fault.text, way); });
    if (made && !way.unwinding) made = run_->sequence && !way.function.empty() ? HitIn(*run_->sequence, way) : same;
    if (!made) return {{Detail::NotMadeToFail, {Describe(way)}}};
  }
  if (faults.size() >= defect.shown_by.faults) return {};
  return {{Detail::NeedsFaults, {std::to_string(defect.shown_by.faults)}}};
}

// A program that does not come to the place where something was lost says nothing about it. What only a way back acquires is not in the
// fault-free run of the base either.
Details LookedFor::WhyNotAcquired(const KnownDefect& defect) const {
  using report::Rule;
  if (run_->mode == report::Mode::Run && defect.rule == Rule::LeftAtExit && !run_->live.empty()) {
    for (const std::string& kind : defect.kinds) {
      const auto acquired = [&kind](const report::LiveRow& row) { return row.kind == kind && row.acquired != 0; };
      if (std::none_of(run_->live.begin(), run_->live.end(), acquired)) return {{Detail::NoKindAcquired, {kind}}};
    }
  }
  if (!words::IsLoss(defect.rule) || !IsDriverCall(defect.call)) return {};
  const std::string_view call = WithoutVersion(defect.call);
  if (MakesCall(run_, call).value_or(true) || !MakesCall(before_, call).value_or(true)) return {};
  return {{Detail::CallNotMade, {defect.call}}};
}

}  // namespace cuaudit::harness
