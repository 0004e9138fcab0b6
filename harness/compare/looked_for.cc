// SPDX-License-Identifier: MIT
#include "harness/compare/looked_for.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/comparison_text.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

// There are as many functions that only the new report has as the old one has that are gone.
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
  return now == nullptr ? "the case is gone" : "the case has no " + std::string(report::Name(mode));
}

LookedFor::LookedFor(const report::Case* now, const report::Run* before, report::Mode mode) : run_(RunOf(now, mode)), before_(before) {
  if (now != nullptr && !now->not_run.empty()) why_ = now->not_run;
  else if (run_ == nullptr) why_ = WhyNotThere(now, mode);
  else why_ = report::WhyNothingProved(*run_);
  if (!why_.empty()) return;
  const auto key = [](const report::Tried& one) { return WayKey{one.call, one.code, one.how, one.unwinding}; };
  if (run_->coverage) {
    for (const report::Tried& one : run_->coverage->tried) tried_[key(one)].after[one.function] = one.places;
  }
  if (before_ != nullptr && before_->coverage) {
    for (const report::Tried& one : before_->coverage->tried) tried_[key(one)].before[one.function] = one.places;
  }
  for (auto& [way, tried] : tried_) tried.renamed = AllRenamed(tried.before, tried.after);
  if (!run_->sequence) return;
  for (const report::TriedCall& trial : run_->sequence->trials) most_faults_ = std::max<std::uint64_t>(most_faults_, trial.faults.size());
}

std::string LookedFor::WhyNot(const KnownDefect& defect) const {
  if (!why_.empty()) return why_;
  if (std::string why = WhyNotSeen(defect); !why.empty()) return why;
  return WhyNotTried(defect);
}

// Coverage tells the ways to fail on the way back, and not after which first fault. So it speaks for every pair of faults only when no
// trial was left out. What the base left out for the program's sake could not show the defect there either.
std::string LookedFor::WhyPairsNotTried(const KnownDefect& defect) const {
  const std::string pairs = "it needs " + std::to_string(defect.shown_by.faults) + " faults in one trial, and ";
  using report::Reason;
  for (const Reason why :
       {Reason::NotChosen, Reason::SecondNotChosen, Reason::BeyondLimit, Reason::OverBudget, Reason::ShardMissing, Reason::Interrupted}) {
    if (CountOf(*run_, why) != 0) return pairs + "trials were left out: " + words::Words(why);
  }
  for (const Reason why : {Reason::SecondKilled, Reason::SecondNoStack}) {
    const std::uint64_t earlier = before_ == nullptr ? 0 : CountOf(*before_, why);
    if (CountOf(*run_, why) > earlier) return pairs + "trials were left out: " + words::Words(why);
  }
  if (run_->message.chosen) return pairs + "trials were left out";
  if (defect.shown_by.faults <= 2 || most_faults_ >= defect.shown_by.faults) return {};
  return pairs + "the report does not say that there were as many (--depth)";
}

// Why the failing calls of a defect were not all made to fail again. Empty: they were.
std::string LookedFor::WhyNotTried(const KnownDefect& defect) const {
  if (defect.failing.empty() || run_->mode != report::Mode::Sweep) return {};
  if (!run_->coverage || run_->coverage->tried.empty()) return "the report does not say which calls were made to fail";
  for (const FailingWay& way : defect.failing) {
    const auto found = tried_.find({way.call, way.code, way.how, way.unwinding});
    if (found == tried_.end() || found->second.after.empty()) return Describe(way) + " was not made to fail";
    const auto same = found->second.after.find(way.function);
    if (same != found->second.after.end()) {
      // How often a call is made on the way back depends on how the program unwinds.
      if (way.unwinding || same->second >= way.places) continue;
      return Describe(way) + " was made to fail at fewer places";
    }
    if (found->second.before.empty() || !found->second.renamed) return Describe(way) + " was not made to fail";
  }
  return defect.shown_by.faults > 1 ? WhyPairsNotTried(defect) : std::string();
}

// Why an audit with other settings does not look at what the defect is about.
std::string LookedFor::WhyNotSeen(const KnownDefect& defect) const {
  const report::Run& now = *run_;
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

}  // namespace cuaudit::harness
