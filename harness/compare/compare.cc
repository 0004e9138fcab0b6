// SPDX-License-Identifier: MIT
#include "harness/compare/compare.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "harness/compare/similarity.h"
#include "reports/comparison_text.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

using report::Change;

const report::Case* CaseOf(const report::Audit& audit, const std::string& name) {
  const auto found = std::find_if(audit.cases.begin(), audit.cases.end(), [&](const report::Case& one) { return one.name == name; });
  return found == audit.cases.end() ? nullptr : &*found;
}

const report::Run* RunOf(const report::Case* of, report::Mode mode) {
  if (of == nullptr) return nullptr;
  const auto found = std::find_if(of->runs.begin(), of->runs.end(), [mode](const report::Run& run) { return run.mode == mode; });
  return found == of->runs.end() ? nullptr : &*found;
}

// A way to fail, wherever it is -> functions in which it was tried, and at how many places.
using WayKey = std::tuple<std::string, std::string, std::string, bool>;
using TriedWays = std::map<WayKey, std::map<std::string, std::uint64_t>>;

WayKey KeyOf(const FailingWay& way) { return {way.call, way.code, way.how, way.unwinding}; }

TriedWays TriedOf(const report::Run& run) {
  TriedWays tried;
  for (const report::Tried& one : run.coverage->tried) tried[{one.call, one.code, one.how, one.unwinding}][one.function] = one.places;
  return tried;
}

// Functions that only the new report has are the renamed ones of the old report, if there are enough of them.
bool AllRenamed(const std::map<std::string, std::uint64_t>& before, const std::map<std::string, std::uint64_t>& after) {
  std::size_t gone = 0;
  std::size_t fresh = 0;
  for (const auto& [function, places] : before) gone += after.contains(function) ? 0 : 1;
  for (const auto& [function, places] : after) fresh += before.contains(function) ? 0 : 1;
  return gone != 0 && fresh >= gone;
}

std::uint64_t CountOf(const report::Run& run, report::Reason why) {
  std::uint64_t count = 0;
  for (const auto& [because, number] : run.totals.skipped) count += because.reason == why ? number : 0;
  return count;
}

// Coverage tells the ways to fail on the way back, and not after which first fault. So it speaks for every pair of faults only when no
// trial was left out. What the base left out for the program's sake could not show the defect there either.
std::string WhyPairsNotTried(const KnownDefect& defect, const report::Run& now, const report::Run* before) {
  const std::string pairs = "it needs " + std::to_string(defect.shown_by.faults) + " faults in one trial, and ";
  using report::Reason;
  for (const Reason why : {Reason::NotChosen, Reason::SecondNotChosen, Reason::BeyondLimit, Reason::OverBudget, Reason::Interrupted}) {
    if (CountOf(now, why) != 0) return pairs + "trials were left out: " + words::Words(why);
  }
  for (const Reason why : {Reason::SecondKilled, Reason::SecondNoStack}) {
    const std::uint64_t earlier = before == nullptr ? 0 : CountOf(*before, why);
    if (CountOf(now, why) > earlier) return pairs + "trials were left out: " + words::Words(why);
  }
  if (now.message.chosen) return pairs + "trials were left out";
  if (defect.shown_by.faults <= 2) return {};
  const auto many = [&](const report::TriedCall& trial) { return trial.faults.size() >= defect.shown_by.faults; };
  const bool tried = now.sequence && std::any_of(now.sequence->trials.begin(), now.sequence->trials.end(), many);
  return tried ? std::string() : pairs + "the report does not say that there were as many (--depth)";
}

// Why the failing calls of a defect were not all made to fail again. Empty: they were.
std::string WhyNotTried(const KnownDefect& defect, const report::Run& now, const report::Run* before) {
  if (defect.failing.empty() || now.mode != report::Mode::Sweep) return {};
  if (!now.coverage || now.coverage->tried.empty()) return "the report does not say which calls were made to fail";
  const TriedWays after = TriedOf(now);
  const TriedWays earlier = before != nullptr && before->coverage ? TriedOf(*before) : TriedWays();
  for (const FailingWay& way : defect.failing) {
    const auto functions = after.find(KeyOf(way));
    if (functions == after.end()) return Describe(way) + " was not made to fail";
    const auto same = functions->second.find(way.function);
    if (same != functions->second.end()) {
      // How often a call is made on the way back depends on how the program unwinds.
      if (way.unwinding || same->second >= way.places) continue;
      return Describe(way) + " was made to fail at fewer places";
    }
    const auto had = earlier.find(KeyOf(way));
    if (had == earlier.end() || !AllRenamed(had->second, functions->second)) return Describe(way) + " was not made to fail";
  }
  return defect.shown_by.faults > 1 ? WhyPairsNotTried(defect, now, before) : std::string();
}

// Why an audit with other settings does not look at what the defect is about.
std::string WhyNotSeen(const KnownDefect& defect, const report::Run& now) {
  const ShownBy& shown = defect.shown_by;
  const auto differs = [](std::string_view one, std::string_view other) { return !one.empty() && !other.empty() && one != other; };
  const auto other = [](const std::string& what, std::string_view was, std::string_view is) {
    return what + " is another one: " + std::string(is) + ", and the base has " + std::string(was);
  };
  if (const std::string_view driver = report::Name(now.driver.kind); differs(shown.driver, driver)) {
    return other("the driver", shown.driver, driver);
  }
  if (differs(shown.world, now.driver.world)) return other("the simulated driver", shown.world, now.driver.world);
  if (now.scope == "pinned" && differs(shown.scope, now.scope)) return other("the scope", shown.scope, now.scope);
  for (const std::string& probe : shown.probes) {
    const std::vector<std::string>& probes = now.host.probes;
    if (std::find(probes.begin(), probes.end(), probe) == probes.end()) return "nobody looked at " + probe + " (--host)";
  }
  if (now.mode != report::Mode::Cycles) return {};
  if (shown.cycles == 0) return "the baseline does not say how many cycles showed it";
  const auto most = std::max_element(now.cycle_counts.begin(), now.cycle_counts.end());
  const std::uint64_t cycles = most == now.cycle_counts.end() ? 0 : *most;
  if (cycles >= shown.cycles) return {};
  return "fewer cycles were run: " + std::to_string(cycles) + ", and the base has " + std::to_string(shown.cycles);
}

std::string WhyNotThere(const report::Case* now, report::Mode mode) {
  return now == nullptr ? "the case is gone" : "the case has no " + std::string(report::Name(mode));
}

std::string WhyNotLookedFor(const KnownDefect& defect, const report::Case* now, const report::Run* before) {
  if (now != nullptr && !now->not_run.empty()) return now->not_run;
  const report::Run* const run = RunOf(now, defect.mode);
  if (run == nullptr) return WhyNotThere(now, defect.mode);
  if (const std::string why = report::WhyNothingProved(*run); !why.empty()) return why;
  if (const std::string why = WhyNotSeen(defect, *run); !why.empty()) return why;
  return WhyNotTried(defect, *run, before);
}

struct Failing {
  Names calls;           // of first faults, or of those on the way back
  std::uint64_t places;  // of first faults
};

Failing FailingOf(const KnownDefect& defect) {
  Failing failing{{}, 0};
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> places;  // by call and function, whichever errors were tried
  for (const FailingWay& way : defect.failing) {
    failing.calls.insert(std::string(WithoutVersion(way.call)));
    std::uint64_t& most = places[{way.call, way.function}];
    if (!way.unwinding) most = std::max(most, way.places);
  }
  for (const auto& [place, count] : places) failing.places += count;
  return failing;
}

// More objects of a kind, or at least twice the bytes. How many are left after so many cycles says nothing when other cycles were run.
bool LosesMore(const KnownDefect& before, const KnownDefect& after) {
  if (before.shown_by.cycles != after.shown_by.cycles || before.shown_by.faults > 1 || after.shown_by.faults > 1) return false;
  return std::any_of(before.lost.begin(), before.lost.end(), [&](const auto& was) {
    const auto is = after.lost.find(was.first);
    if (is == after.lost.end()) return false;
    return is->second.count > was.second.count || (was.second.bytes != 0 && is->second.bytes / 2 >= was.second.bytes);
  });
}

bool MoreThan(const KnownDefect& before, const KnownDefect& after) {
  if (!std::includes(before.kinds.begin(), before.kinds.end(), after.kinds.begin(), after.kinds.end())) return true;
  if (LosesMore(before, after)) return true;
  const auto second = [](const FailingWay& way) { return way.unwinding; };
  if (before.failing.empty() || after.failing.empty() || std::any_of(before.failing.begin(), before.failing.end(), second) ||
      std::any_of(after.failing.begin(), after.failing.end(), second)) {
    return false;
  }
  const Failing was = FailingOf(before);
  const Failing is = FailingOf(after);
  return !std::includes(was.calls.begin(), was.calls.end(), is.calls.begin(), is.calls.end()) || is.places > was.places;
}

std::string Joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "1 stream, 2 device_memory of 8192 bytes"
std::string AmountsOf(const KnownDefect& defect) {
  std::string text;
  for (const auto& [kind, amount] : defect.lost) {
    text += (text.empty() ? "" : ", ") + std::to_string(amount.count) + " " + kind;
    if (amount.bytes != 0) text += " of " + std::to_string(amount.bytes) + " bytes";
  }
  return text;
}

// "stream; calls fail at 2 places: cuEventCreate, cuMemAlloc"
std::string Was(const KnownDefect& before, const KnownDefect& after) {
  const Failing failing = FailingOf(before);
  std::string text = LosesMore(before, after) ? AmountsOf(before) : Joined(Names(before.kinds.begin(), before.kinds.end()));
  if (failing.calls.empty()) return text;
  const std::string places = failing.places == 1 ? "1 place" : std::to_string(failing.places) + " places";
  return text + (text.empty() ? "" : "; ") + "calls fail at " + places + ": " + Joined(failing.calls);
}

report::Gone GoneOf(const KnownDefect& defect, std::string because) {
  report::Gone gone;
  gone.change = because.empty() ? Change::Fixed : Change::NotRun;
  gone.because = std::move(because);
  gone.case_name = defect.case_name;
  gone.mode = defect.mode;
  gone.fingerprint = defect.fingerprint;
  gone.rule = defect.rule;
  gone.title = defect.title;
  return gone;
}

// A report of one program has a case without a name. It is compared with the only case of the other side.
void NameTheOnlyCase(Base* base, const report::Audit& head) {
  if (head.cases.size() != 1) return;
  const std::string& name = head.cases.front().name;
  std::set<std::string_view> before;
  for (const KnownDefect& defect : base->defects) before.insert(defect.case_name);
  for (const KnownRun& run : base->runs) before.insert(run.case_name);
  if (before.size() != 1 || *before.begin() == name || (!name.empty() && !before.begin()->empty())) return;
  for (KnownDefect& defect : base->defects) defect.case_name = name;
  std::set<KnownRun> runs;
  for (const KnownRun& run : base->runs) runs.insert({name, run.mode});
  base->runs = std::move(runs);
  if (base->audit && base->audit->cases.size() == 1) base->audit->cases.front().name = name;
}

// Runs of the base that the head does not have. Those that it has and that prove nothing, and cases that say why they were not carried out,
// are named by the head itself.
std::vector<report::NotProved> NotRun(const std::set<KnownRun>& before, const report::Audit& head) {
  std::vector<report::NotProved> missing;
  for (const KnownRun& run : before) {
    const report::Case* const now = CaseOf(head, run.case_name);
    if (now != nullptr && (!now->not_run.empty() || RunOf(now, run.mode) != nullptr)) continue;
    missing.push_back({run.case_name, run.mode, WhyNotThere(now, run.mode)});
  }
  return missing;
}

// Whose defect it is: the blamed function, or the acquiring one.
std::string FunctionOf(const KnownDefect& defect) {
  if (!defect.blame.empty()) return defect.blame;
  return defect.stack.empty() ? std::string() : defect.stack.front();
}

using Group = std::pair<std::string, report::Mode>;

}  // namespace

Base BaseOf(std::string name, report::Audit audit) {
  Base base;
  base.name = std::move(name);
  base.defects = KnownDefects(audit);
  base.runs = KnownRuns(audit);
  base.audit = std::move(audit);
  return base;
}

void CompareWith(Base base, report::Audit* head) {
  NameTheOnlyCase(&base, *head);
  const report::Audit earlier = base.audit ? std::move(*base.audit) : report::Audit();
  std::map<Group, std::vector<KnownDefect>> before;
  for (KnownDefect& defect : base.defects) {
    Group group{defect.case_name, defect.mode};
    before[std::move(group)].push_back(std::move(defect));
  }
  report::Comparison comparison;
  comparison.base = base.name;
  comparison.not_run = NotRun(base.runs, *head);
  std::set<std::pair<Group, std::size_t>> paired;
  for (report::Case& one : head->cases) {
    for (report::Run& run : one.runs) {
      const Group group{one.name, run.mode};
      const std::vector<KnownDefect> now = KnownDefects(one.name, run);
      const std::vector<KnownDefect>& then = before[group];
      FunctionNames names;
      AddFunctions(run, &names.after);
      for (const KnownDefect& defect : then) AddFunctions(defect, &names.before);
      const report::Run* const run_before = RunOf(CaseOf(earlier, one.name), run.mode);
      if (run_before != nullptr) AddFunctions(*run_before, &names.before);
      for (report::Defect& defect : run.defects) {
        defect.change = Change::New;
        defect.was.clear();
        defect.taken_for.clear();
      }
      std::vector<bool> taken(now.size());
      for (const auto& [old, fresh] : PairDefects(then, now, names)) {
        paired.insert({group, old});
        taken[fresh] = true;
        const bool more = MoreThan(then[old], now[fresh]);
        run.defects[fresh].change = more ? Change::Changed : Change::Unchanged;
        if (more) run.defects[fresh].was = Was(then[old], now[fresh]);
        if (then[old].fingerprint != now[fresh].fingerprint) {
          run.defects[fresh].taken_for.push_back(WhyTaken(then[old], now[fresh], names));
        }
      }
      // Only what is left over can be a part of another one, so that many renamed defects take no time here.
      for (std::size_t i = 0; i < now.size(); ++i) {
        const auto whole = [&](const KnownDefect& old) { return IsPartOf(now[i], old, false, names); };
        const auto found = taken[i] ? then.end() : std::find_if(then.begin(), then.end(), whole);
        if (found == then.end()) continue;
        run.defects[i].change = Change::Unchanged;
        run.defects[i].taken_for.push_back({report::Taken::Part, FunctionOf(*found), found->fingerprint});
      }
      for (std::size_t i = 0; i < then.size(); ++i) {
        const auto whole = [&](const KnownDefect& fresh) { return IsPartOf(then[i], fresh, true, names); };
        const auto found = paired.contains({group, i}) ? now.end() : std::find_if(now.begin(), now.end(), whole);
        if (found == now.end()) continue;
        paired.insert({group, i});
        run.defects[static_cast<std::size_t>(found - now.begin())].taken_for.push_back(
            {report::Taken::Whole, FunctionOf(then[i]), then[i].fingerprint});
      }
    }
  }
  for (const auto& [group, defects] : before) {
    for (std::size_t i = 0; i < defects.size(); ++i) {
      if (paired.contains({group, i})) continue;
      const report::Run* const run_before = RunOf(CaseOf(earlier, group.first), group.second);
      comparison.gone.push_back(GoneOf(defects[i], WhyNotLookedFor(defects[i], CaseOf(*head, group.first), run_before)));
    }
  }
  // What nobody looked for comes first.
  std::stable_sort(comparison.gone.begin(), comparison.gone.end(),
                   [](const report::Gone& a, const report::Gone& b) { return a.change > b.change; });
  head->comparison = std::move(comparison);
}

}  // namespace cuaudit::harness
