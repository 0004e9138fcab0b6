// SPDX-License-Identifier: MIT
#include "harness/lifecycle/trial_evidence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "harness/verdict/context/put_back.h"
#include "harness/verdict/context/restored_settings.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using faults::Record;

// The ledger as if it had only the objects and violations of one cycle.
Ledger OfCycle(Ledger ledger, std::uint32_t cycle, std::uint64_t begin, std::uint64_t end) {
  for (Object& object : ledger.objects) {
    if (object.cycle != cycle) object.state = State::Released;
  }
  std::erase_if(ledger.violations, [&](const Violation& one) { return one.where.begin <= begin || one.where.begin > end; });
  return ledger;
}

// Of the clean cycle after the faulted one.
Recovery RecoveryOf(const Lifecycle& lifecycle, std::span<const faults::Fault> faults, const faults::JournalView& journal,
                    const TrialTrace& trace) {
  return RecoveryAfter(faults, lifecycle.with_context(), journal.Part(0, trace.cycle[0].end_record).records());
}

}  // namespace

Details FailedWithoutFault(const TrialTrace& trace, const Details& where) {
  Details why = {{Detail::WithoutFault}};
  for (words::DetailPart& part : trace.failed.FirstFailure()) why.push_back(std::move(part));
  why.insert(why.end(), where.begin(), where.end());
  return why;
}

Observation ObserveCycle(const faults::JournalView& journal, const TrialTrace& trace, const Ending& ending) {
  const CycleTrace& cycle = trace.cycle[0];
  // For a process that died the last calls are evidence, whichever cycle they belong to.
  const std::size_t end = cycle.finished && DeathOf(ending) == Verdict::Pass ? cycle.end_record : journal.records().size();
  const std::size_t first = std::min(cycle.first_record, end);
  Observation seen;
  seen.ledger = OfCycle(FoldObjects(journal.Part(0, end).records()), 1, cycle.begin, ~std::uint64_t{0});
  seen.journal = journal.Part(first, end - first);
  seen.ledger.facts = FactsOf(seen.journal.records());
  seen.ending = ending;
  if (const StepTrace& second = cycle.at(StepName::SecondTeardown); second.ran) seen.armed_until = second.begin;
  return seen;
}

Observation Observe(const Lifecycle& lifecycle, std::span<const faults::Fault> faults, const faults::JournalView& journal,
                    const TrialTrace& trace, const Ending& ending) {
  Observation seen = ObserveCycle(journal, trace, ending);
  seen.steps = trace.cycle[0];
  const bool second = trace.cycle[0].finished;
  if (DeathOf(ending) != Verdict::Pass) {
    seen.ending.step = trace.cycle[second ? 1 : 0].RunningAt(~std::uint64_t{0});
    if (second) seen.ending.step = Words({Detail::OfCleanCycle, {seen.ending.step}});
    return seen;
  }
  if (!second) return seen;
  const CycleTrace& again = trace.cycle[1];
  NextCycle& next = seen.next.emplace();
  next.recovery = RecoveryOf(lifecycle, faults, journal, trace);
  next.steps = again;
  next.journal = journal;
  if (next.recovery == Recovery::Checked) next.ledger = OfCycle(Fold(journal.records()), 2, again.begin, again.end);
  return seen;
}

bool AllFired(const faults::JournalView& journal, std::size_t faults) {
  for (std::size_t i = 0; i < faults; ++i) {
    if (journal.header().fired[i].load(std::memory_order_relaxed) == 0) return false;
  }
  return true;
}

Balance BalanceOf(const faults::JournalView& journal, const TrialTrace& trace) {
  Ledger ledger = FoldObjects(journal.records());
  const CycleTrace& cycle = trace.cycle[0];
  for (const Violation& violation : ledger.violations) {
    if (violation.where.begin > cycle.begin) return Balance::Upset;
  }
  const faults::JournalView of_cycle = journal.Part(cycle.first_record, cycle.end_record - cycle.first_record);
  ledger.facts = FactsOf(of_cycle.records());
  const Evidence seen = {&ledger, &of_cycle, {}};
  if (MayGiveTooMuch(seen) || MayLeaveChanged(seen) || MayLeaveSettings(seen)) return Balance::Upset;
  const StepTrace& second = cycle.at(StepName::SecondTeardown);
  const std::uint64_t until = second.ran ? second.begin : cycle.end;  // releases by a second tear-down are left to the judge
  Balance balance = Balance::Spotless;
  for (const Object& object : ledger.objects) {
    if (object.cycle == 0 || !IsOwed(object)) continue;
    if (object.state == State::ReleaseRefused && object.cycle == 1) {
      balance = Balance::ReleaseRefused;
      continue;
    }
    if (object.state != State::Released || (object.cycle == 1 && object.released.begin > until)) return Balance::Upset;
  }
  return balance;
}

std::optional<Settled> Settle(const Lifecycle& lifecycle, const DeclaredFaults& declared, std::span<const faults::Fault> faults,
                              const faults::JournalView& journal, const TrialTrace& trace) {
  if (!trace.cycle[1].finished || trace.unguarded != 0 || !AllFired(journal, faults.size())) return {};
  if ((journal.header().flags.load(std::memory_order_relaxed) & faults::kRecordsDropped) != 0) return {};
  if (trace.cycle[1].failed() || RecoveryOf(lifecycle, faults, journal, trace) != Recovery::Checked) return {};
  const Balance balance = BalanceOf(journal, trace);
  if (balance == Balance::Upset) return {};
  std::vector<const Record*> refused;
  for (const Record& record : journal.records()) {
    if (record.fault != 0 && record.begin != 0) refused.push_back(&record);
  }
  std::sort(refused.begin(), refused.end(), [](const Record* a, const Record* b) { return a->begin < b->begin; });
  // Only a full judgement knows whether a refused call was made good later. Here every refused call counts as lost.
  Reporting reporting = JudgeSteps(trace.cycle[0], refused, {}, refused, journal, lifecycle.any_code());
  const bool all_declared = declared.surely == (std::uint64_t{1} << faults.size()) - 1;
  if (declared.perhaps != 0 || (all_declared ? reporting.said != Said::Success : !reporting.findings.empty())) return {};
  Settled settled = {.said = reporting.said};
  settled.verdict = balance == Balance::ReleaseRefused ? Verdict::ReleaseRefused : VerdictOf(settled.said);
  settled.skipped = std::move(reporting.skipped);
  return settled;
}

}  // namespace cuaudit::harness
