// SPDX-License-Identifier: MIT
#include "harness/lifecycle/trial_verdict.h"

#include <algorithm>
#include <iterator>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "harness/verdict/rehearsed.h"
#include "harness/verdict/said.h"
#include "harness/verdict/surplus.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordKind;

constexpr std::string_view kStepNames[kSteps] = {"init", "work", "teardown", "the second teardown", "the destructor"};

std::string CodeText(CUresult code) {
  return "CUDA_" + std::string(code == CUDA_SUCCESS ? "" : "ERROR_") + std::string(driver::ShortResultName(code));
}

// The first call that failed and whose failure is to be reported; when all faults are benign the first of them.
const Record* FirstToReport(const PlannedFaultList& faults, const faults::JournalView& journal) {
  const Record* first = nullptr;
  const auto benign = [&](const Record& record) { return record.fault <= faults.size() && faults[record.fault - 1U].benign; };
  for (const Record& record : journal.records()) {
    if (record.fault == 0 || record.begin == 0) continue;
    const bool earlier =
        first == nullptr || (benign(*first) && !benign(record)) || (benign(*first) == benign(record) && record.begin < first->begin);
    if (earlier) first = &record;
  }
  return first;
}

// The step that was running at ticket `when`: the last that had begun.
const StepTrace* StepAt(const CycleTrace& cycle, std::uint64_t when) {
  const StepTrace* at = nullptr;
  for (const StepTrace& step : cycle.step) {
    if (step.ran && step.begin < when && (at == nullptr || at->begin <= step.begin)) at = &step;
  }
  return at;
}

std::string_view NameOf(const CycleTrace& cycle, const StepTrace* step) { return kStepNames[static_cast<std::size_t>(step - cycle.step)]; }

std::string Answer(std::string_view name, const StepTrace& step) {
  std::string text(name);
  if (step.threw) return text + " threw" + (step.text[0] == '\0' ? "" : ": " + std::string(step.text));
  if (step.has_code) return text + " returned " + CodeText(step.code);
  return text + (step.failed ? " reported a failure" : " reported success");
}

bool IsOwed(const Object& object) {
  return object.cycle != 0 && !object.driver_owned && driver::DiesWithOf(object.kind) != driver::DiesWith::Parent;
}

bool IsHostFault(const PlannedFault& one) { return faults::HostFaultOf(one.fault.base) != nullptr; }

bool Contains(const PlannedFaultList& faults, CUresult code) {
  return std::any_of(faults.begin(), faults.end(), [code](const PlannedFault& one) {
    return IsHostFault(one) ? code == CUDA_ERROR_OUT_OF_MEMORY : one.fault.code == code;
  });
}

bool AllBenign(const PlannedFaultList& faults) {
  return std::all_of(faults.begin(), faults.end(), [](const PlannedFault& one) { return one.benign; });
}

bool IsLost(const PlannedFaultList& faults) {
  return std::any_of(faults.begin(), faults.end(), [](const PlannedFault& one) { return one.fault.how == faults::How::Sticky; });
}

// Why the cycle after a lost context says nothing of the program, None when it does: it may go on only in a context of its own, anew.
Reason WhyNoRecovery(const Lifecycle& lifecycle, const PlannedFaultList& faults, const faults::JournalView& journal,
                     const TrialTrace& trace) {
  if (!IsLost(faults)) return Reason::None;
  if (lifecycle.with_context()) return Reason::RecoveryGivenContext;
  const Ledger ledger = FoldObjects(journal.Part(0, trace.cycle[0].end_record).records());
  for (const Object& object : ledger.objects) {
    const driver::Family family = driver::FamilyOf(object.kind);
    const bool context =
        family == driver::Family::Context || family == driver::Family::PrimaryContext || family == driver::Family::GreenContext;
    if (!context) continue;
    if (object.state == State::ReleaseRefused) return Reason::RecoveryLostKept;
    if (object.cycle == 0 && object.state == State::Live) return Reason::RecoveryOlderContext;
  }
  return Reason::None;
}

void Append(std::vector<TrialFinding>* to, std::vector<TrialFinding> from) {
  to->insert(to->end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// In which step a process died, and the calls before that.
std::string LastCalls(const Evidence& trial, const TrialTrace& trace) {
  constexpr std::size_t kShown = 6;
  const bool second = trace.cycle[0].finished;
  const StepTrace* const step = StepAt(trace.cycle[second ? 1 : 0], ~std::uint64_t{0});
  std::string text = "died";
  if (step != nullptr) text.append(" in ").append(NameOf(trace.cycle[second ? 1 : 0], step));
  if (second) text += " of the clean cycle afterwards";
  const std::vector<std::uint32_t>& calls = trial.facts().calls;
  text += calls.empty() ? "" : "; last calls:";
  for (std::size_t i = calls.size() > kShown ? calls.size() - kShown : 0; i < calls.size(); ++i) {
    const Record& call = trial.record(calls[i]);
    text.append(" ").append(driver::Name(driver::BaseOf(static_cast<driver::CallId>(call.call))));
    text.append(call.end == 0 ? "=?" : "=").append(call.end == 0 ? "" : driver::ShortResultName(static_cast<CUresult>(call.result)));
  }
  return text;
}

// The ledger as if only the objects and violations of that cycle were in it.
Ledger OfCycle(Ledger ledger, std::uint32_t cycle, std::uint64_t begin, std::uint64_t end) {
  for (Object& object : ledger.objects) {
    if (object.cycle != cycle) object.state = State::Released;
  }
  std::erase_if(ledger.violations, [&](const Violation& one) { return one.where.begin <= begin || one.where.begin > end; });
  return ledger;
}

// A clean cycle in the same world: it succeeds, and lands where the rehearsal did.
void JudgeRecovery(const Lifecycle& lifecycle, const PlannedFaultList& faults, const Rehearsed& rehearsal,
                   const faults::JournalView& journal, const TrialTrace& trace, TrialVerdict* verdict) {
  const CycleTrace& again = trace.cycle[1];
  if (const Reason reason = WhyNoRecovery(lifecycle, faults, journal, trace); reason != Reason::None) {
    verdict->skipped.push_back(reason);
    return;
  }
  const std::string failure = FirstFailure(again);
  if (!failure.empty()) {
    verdict->step_findings.push_back({Rule::NotRecovered, "in a clean cycle afterwards " + failure});
    return;
  }
  const Ledger ledger = OfCycle(Fold(journal.records()), 2, again.begin, again.end);
  const Evidence after = {&ledger, &journal, {}};
  std::vector<TrialFinding> wrong = CompareViolations(&rehearsal, after);
  Leftovers left = CompareObjects(&rehearsal, after);
  if (wrong.empty() && left.leaks.empty()) return;
  verdict->step_findings.push_back({Rule::NotRecovered, "a clean cycle afterwards does not land where the rehearsal did"});
  Append(&verdict->findings, std::move(wrong));
  Append(&verdict->findings, std::move(left.leaks));
}

// What a second teardown gave back, the first having failed: its release was refused once, and nothing was lost.
std::vector<TrialFinding> Retained(const faults::JournalView& journal, const Ledger& ledger, std::uint64_t second) {
  std::vector<TrialFinding> retained;
  for (const Object& object : ledger.objects) {
    if (!IsOwed(object) || object.cycle != 1 || object.state != State::Released || object.released.begin < second) continue;
    TrialFinding finding;
    finding.rule = Rule::ReleaseRefused;
    finding.kind = object.kind;
    finding.count = 1;
    finding.bytes = object.bytes;
    finding.acquired = object.acquired;
    finding.acquired_key = SiteKey(journal, object.acquired);
    retained.push_back(finding);
  }
  return retained;
}

}  // namespace

std::string FirstFailure(const CycleTrace& cycle) {
  for (std::size_t i = 0; i < kSteps; ++i) {
    if (cycle.step[i].failed) return Answer(kStepNames[i], cycle.step[i]);
  }
  return {};
}

std::vector<TrialFinding> CompareFaultFree(const Observation& run) { return CompareViolations(nullptr, run.evidence()); }

Observation Observe(const faults::JournalView& journal, const TrialTrace& trace, const Ending& ending) {
  const CycleTrace& cycle = trace.cycle[0];
  // The last calls of a process that died are evidence wherever they were made.
  const bool died = ending.signal != 0 || ending.timed_out;
  const std::size_t end = cycle.finished && !died ? cycle.end_record : journal.records().size();
  const std::size_t first = std::min(cycle.first_record, end);
  Observation seen;
  seen.ledger = OfCycle(FoldObjects(journal.Part(0, end).records()), 1, cycle.begin, ~std::uint64_t{0});
  seen.journal = journal.Part(first, end - first);
  seen.ledger.facts = FactsOf(seen.journal.records());
  seen.ending = ending;
  if (!FirstFailure(cycle).empty()) seen.ending.exit_status = 1;
  return seen;
}

bool AllFired(const faults::JournalView& journal, std::size_t faults) {
  for (std::size_t i = 0; i < faults; ++i) {
    if (journal.header().fired[i].load(std::memory_order_relaxed) == 0) return false;
  }
  return true;
}

Balance BalanceOf(const faults::JournalView& journal, const TrialTrace& trace) {
  const Ledger ledger = FoldObjects(journal.records());
  const CycleTrace& cycle = trace.cycle[0];
  for (const Violation& violation : ledger.violations) {
    if (violation.where.begin > cycle.begin) return Balance::Upset;
  }
  const StepTrace& second = cycle.at(StepName::SecondTeardown);
  const std::uint64_t until = second.ran ? second.begin : cycle.end;  // what a second teardown gives back is for the full judgement
  Balance balance = Balance::Spotless;
  for (const Object& object : ledger.objects) {
    if (!IsOwed(object)) continue;
    if (object.state == State::ReleaseRefused && object.cycle == 1) {
      balance = Balance::ReleaseRefused;
      continue;
    }
    if (object.state != State::Released || (object.cycle == 1 && object.released.begin > until)) return Balance::Upset;
  }
  return balance;
}

std::vector<StepFinding> JudgeReporting(const Lifecycle& lifecycle, const PlannedFaultList& faults, const Rehearsed* rehearsal,
                                        const Evidence* trial, const faults::JournalView& journal, const TrialTrace& trace,
                                        std::vector<Reason>* skipped) {
  std::vector<StepFinding> findings;
  const CycleTrace& cycle = trace.cycle[0];
  const Record* const first = FirstToReport(faults, journal);
  const StepTrace* const step = first == nullptr ? nullptr : StepAt(cycle, first->begin);
  if (step == nullptr) return findings;
  const std::string in_step = " in " + std::string(NameOf(cycle, step));
  const std::string failure = FirstFailure(cycle);
  if (AllBenign(faults)) {
    if (!failure.empty()) findings.push_back({Rule::BenignFailed, "the fault" + in_step + " is declared benign, but " + failure});
  } else if (failure.empty()) {
    if (step->can_report && (rehearsal == nullptr || !MadeGood(*rehearsal, *trial, 1))) {
      findings.push_back({Rule::Swallowed, "the fault" + in_step + " was reported by no step: " + Answer(NameOf(cycle, step), *step)});
    } else if (!step->can_report) {
      skipped->push_back(Reason::StepSilent);
    }
  }
  for (std::size_t i = 0; i < kSteps; ++i) {
    const StepTrace& one = cycle.step[i];
    if (!one.failed) continue;
    if (one.written_output[0] != '\0')
      findings.push_back({Rule::OutputWritten, Answer(kStepNames[i], one) + " and wrote its output '" + one.written_output + "'"});
    const bool of_host = std::any_of(faults.begin(), faults.end(), IsHostFault);
    if (!one.has_code || lifecycle.any_code() || (of_host && !Contains(faults, one.code))) {
      skipped->push_back(Reason::CodesDiffer);
    } else if (!Contains(faults, one.code)) {
      findings.push_back(
          {Rule::WrongCode, Answer(kStepNames[i], one) + "; the driver had answered " + CodeText(static_cast<CUresult>(first->result))});
    }
    break;  // later steps may answer what follows from the first failure
  }
  return findings;
}

std::optional<Verdict> Screen(const Lifecycle& lifecycle, const PlannedFaultList& faults, const faults::JournalView& journal,
                              const TrialTrace& trace, std::vector<Reason>* skipped) {
  if (!trace.cycle[1].finished || trace.unguarded != 0 || !AllFired(journal, faults.size())) return {};
  if (!FirstFailure(trace.cycle[1]).empty()) return {};
  if (WhyNoRecovery(lifecycle, faults, journal, trace) != Reason::None) return {};
  const Balance balance = BalanceOf(journal, trace);
  if (balance == Balance::Upset || !JudgeReporting(lifecycle, faults, nullptr, nullptr, journal, trace, skipped).empty()) return {};
  if (balance == Balance::ReleaseRefused) return Verdict::ReleaseRefused;
  if (!FirstFailure(trace.cycle[0]).empty()) return Verdict::Pass;
  return AllBenign(faults) ? Verdict::Benign : Verdict::Absorbed;
}

TrialVerdict JudgeTrial(const Lifecycle& lifecycle, const PlannedFaultList& faults, const Rehearsed& rehearsal,
                        const faults::JournalView& journal, const TrialTrace& trace, const Ending& ending) {
  TrialVerdict verdict;
  const Observation trial = Observe(journal, trace, ending);
  JudgeOptions options;
  options.abandoned_is_leak = true;
  Judgement judgement = Judge(&rehearsal, trial.evidence(), options);
  verdict.fault_site = judgement.fault_site;
  verdict.fault_key = judgement.fault_key;
  verdict.fired = AllFired(journal, faults.size());
  verdict.findings = std::move(judgement.findings);
  verdict.notes = std::move(judgement.notes);
  verdict.verdict = judgement.verdict;
  verdict.skipped.insert(verdict.skipped.end(), trace.unguarded, Reason::Unguarded);
  if (!verdict.fired) {
    verdict.verdict = Verdict::NotExercised;
    const std::string failure = FirstFailure(trace.cycle[0]);
    if (!judgement.fired && !failure.empty()) verdict.step_findings.push_back({Rule::Spurious, failure + "; no fault had fired"});
    return verdict;
  }
  if (ending.signal != 0 || ending.timed_out) {
    verdict.details.push_back(LastCalls(trial.evidence(), trace));
    return verdict;
  }
  const Evidence seen = trial.evidence();
  verdict.step_findings = JudgeReporting(lifecycle, faults, &rehearsal, &seen, journal, trace, &verdict.skipped);
  JudgeRecovery(lifecycle, faults, rehearsal, journal, trace, &verdict);

  const bool balanced = verdict.verdict == Verdict::Pass || verdict.verdict == Verdict::Absorbed;
  const StepTrace& second = trace.cycle[0].at(StepName::SecondTeardown);
  if (balanced && second.ran) {
    std::vector<TrialFinding> retained = Retained(trial.journal, trial.ledger, second.begin);
    if (!retained.empty()) verdict.verdict = Verdict::RetainedForRetry;
    Append(&verdict.notes, std::move(retained));
  }
  const bool quiet = balanced || verdict.verdict == Verdict::ReleaseRefused;
  if (quiet && !verdict.step_findings.empty()) {
    const bool recovers = verdict.step_findings.front().rule != Rule::NotRecovered;
    verdict.verdict = recovers ? Verdict::Misreported : Verdict::NotRecovered;
  } else if (verdict.verdict == Verdict::Absorbed && AllBenign(faults)) {
    verdict.verdict = Verdict::Benign;
  }
  return verdict;
}

}  // namespace cuaudit::harness
