// SPDX-License-Identifier: MIT
#include "harness/verdict/judge.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <span>

#include "faults/driver/effects.h"
#include "harness/verdict/driver_owned.h"
#include "harness/verdict/recovery.h"
#include "harness/verdict/said.h"
#include "harness/verdict/surplus.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordKind;

Site SiteOfRecord(const Record& record) { return {record.kind, record.call, record.stack, record.begin}; }

// The first record that the plan touched, null when no fault fired.
const Record* FirstFault(const faults::JournalView& journal) {
  const Record* first = nullptr;
  for (const Record& record : journal.own_records()) {
    if (record.begin == 0 || record.fault == 0) continue;
    if (first == nullptr || record.begin < first->begin) first = &record;
  }
  return first;
}

// The process whose ending we were told is the one that wrote first.
const Record* FirstRecord(const faults::JournalView& journal) {
  const Record* first = nullptr;
  for (const Record& record : journal.records()) {
    if (record.begin == 0 || record.kind == RecordKind::Empty || record.kind == RecordKind::Argument) continue;
    if (first == nullptr || record.begin < first->begin) first = &record;
  }
  return first;
}

// Its last driver calls, the very last one first: that is where it died.
std::vector<const Record*> LastCalls(const faults::JournalView& journal, std::size_t most) {
  const Record* first = FirstRecord(journal);
  std::vector<const Record*> calls;
  for (const std::span<const Record> records : {journal.own_records(), journal.records()}) {
    calls.clear();
    for (const Record& record : records) {
      if (record.begin == 0 || record.kind != RecordKind::Call || record.pid != first->pid) continue;
      if ((record.flags & faults::kNested) != 0 || record.call >= driver::kCallCount) continue;
      calls.push_back(&record);
    }
    if (calls.size() >= most) break;
  }
  const auto kept = calls.begin() + static_cast<std::ptrdiff_t>(std::min(most, calls.size()));
  std::partial_sort(calls.begin(), kept, calls.end(), [](const Record* a, const Record* b) { return a->begin > b->begin; });
  calls.erase(kept, calls.end());
  return calls;
}

bool Settles(const Record& record) {
  if (record.kind == RecordKind::Mark) return record.call == static_cast<std::uint16_t>(faults::MarkKind::CycleEnd);
  if (record.kind != RecordKind::Call || record.call >= driver::kCallCount || (record.flags & faults::kNested) != 0) return false;
  const driver::Effect effect = driver::EffectOf(driver::BaseOf(static_cast<driver::CallId>(record.call))).effect;
  return driver::IsAcquire(effect) || driver::IsRelease(effect);
}

// A block, descriptor, library or mutex that the program held at the fault and gave back before it left: it unwound. What it took later, to
// say what went wrong for one, and what the driver holds for itself, says nothing. Nor does a mapping: an allocator gives its pools back
// when it likes.
bool Unwinds(const Object& object, const Record& fault, std::uint64_t exit) {
  return object.pid == fault.pid && object.released.record_kind == RecordKind::Host && !object.driver_owned &&
         object.kind != driver::Kind::HostMapping && object.acquired.begin < fault.begin && object.released.begin > fault.begin &&
         object.released.begin < exit;
}

// The process left by itself, and between the fault and the begin of its exit neither took nor gave anything.
bool Abandoned(const Evidence& trial, const Record& fault) {
  const faults::JournalView& journal = *trial.journal;
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  std::uint64_t exit = kNever;
  for (const Record& record : journal.own_records()) {
    const bool leaves = record.kind == RecordKind::Process && record.call == static_cast<std::uint16_t>(faults::ProcessEvent::Exit);
    if (leaves && record.pid == fault.pid && record.begin > fault.begin) exit = std::min(exit, record.begin);
  }
  // Of a child that wrote no exit we do not know whether it left or was killed.
  if (exit == kNever && fault.pid != FirstRecord(journal)->pid) return false;
  const std::vector<Object>& objects = trial.ledger->objects;
  if (!OnlyShowsHost(journal) &&
      std::any_of(objects.begin(), objects.end(), [&](const Object& object) { return Unwinds(object, fault, exit); }))
    return false;
  const std::span<const Record> own = journal.own_records();
  return std::none_of(own.begin(), own.end(), [&](const Record& record) {
    return record.pid == fault.pid && record.begin > fault.begin && record.begin < exit && Settles(record);
  });
}

void Append(std::vector<TrialFinding>* to, std::vector<TrialFinding> from) {
  to->insert(to->end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

std::vector<TrialFinding> WithRule(std::vector<TrialFinding> findings, Rule rule) {
  for (TrialFinding& finding : findings) finding.rule = rule;
  return findings;
}

bool IsStack(const TrialFinding& finding) { return finding.rule == Rule::ContextStack; }

bool IsWait(const Record& record) {
  switch (driver::BaseOf(static_cast<driver::CallId>(record.call))) {
    case driver::BaseId::CtxSynchronize:
    case driver::BaseId::StreamSynchronize:
    case driver::BaseId::EventSynchronize:
    case driver::BaseId::StreamQuery:
    case driver::BaseId::EventQuery:
    case driver::BaseId::EventRecord:
      return true;
    default:
      return false;
  }
}

// A program whose wait was refused has asked for all that a free of host memory needs, and can do no more than free it.
void ForgiveRefusedWaits(const faults::JournalView& journal, std::vector<TrialFinding>* violations) {
  const auto frees = [](const TrialFinding& finding) { return finding.rule == Rule::HostFreedInUse; };
  if (std::none_of(violations->begin(), violations->end(), frees)) return;
  const std::span<const Record> own = journal.own_records();
  const bool refused = std::any_of(own.begin(), own.end(), [](const Record& record) {
    return record.kind == RecordKind::Call && (record.flags & faults::kInjected) != 0 && IsWait(record);
  });
  if (refused) violations->erase(std::remove_if(violations->begin(), violations->end(), frees), violations->end());
}

// Hang, crash or abort; Pass when the process exited by itself.
Verdict Death(const Ending& ending) {
  if (ending.timed_out) return Verdict::Hang;
  if (ending.signal == SIGABRT) return Verdict::Abort;
  return ending.signal != 0 ? Verdict::Crash : Verdict::Pass;
}

TrialFinding DeathFinding(Verdict verdict, const Evidence& trial) {
  TrialFinding finding;
  finding.rule = verdict == Verdict::Hang ? Rule::Hang : verdict == Verdict::Abort ? Rule::Abort : Rule::Crash;
  finding.count = 1;
  constexpr std::size_t kTold = 5;
  const std::vector<const Record*> last = LastCalls(*trial.journal, kTold);
  if (last.empty()) return finding;
  finding.where = SiteOfRecord(*last.front());
  finding.where_key = SiteKey(*trial.journal, finding.where);
  finding.detail = "its last calls were";
  for (auto call = last.rbegin(); call != last.rend(); ++call) {
    finding.detail.append(call == last.rbegin() ? " " : ", ")
        .append(driver::Name(driver::BaseOf(static_cast<driver::CallId>((*call)->call))));
  }
  return finding;
}

}  // namespace

std::string_view Name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::Pass:
      return "pass";
    case Verdict::Absorbed:
      return "absorbed";
    case Verdict::Leak:
      return "leak";
    case Verdict::Misuse:
      return "misuse";
    case Verdict::Crash:
      return "crash";
    case Verdict::Abort:
      return "abort";
    case Verdict::Hang:
      return "hang";
    case Verdict::NotRecovered:
      return "not_recovered";
    case Verdict::Misreported:
      return "misreported";
    case Verdict::ReleaseRefused:
      return "release_refused";
    case Verdict::RetainedForRetry:
      return "retained_for_retry";
    case Verdict::AbandonedAtExit:
      return "abandoned_at_exit";
    case Verdict::NotExercised:
      return "not_exercised";
    case Verdict::Benign:
      return "benign";
  }
  return "unknown";
}

Judgement Judge(const Evidence& rehearsal, const Evidence& trial, bool faulted, const JudgeOptions& options) {
  Judgement judgement;
  const Record* fault = FirstFault(*trial.journal);
  if (fault != nullptr) {
    judgement.fired = true;
    judgement.fault_site = SiteOfRecord(*fault);
    judgement.fault_key = SiteKey(*trial.journal, judgement.fault_site);
  } else if (faulted) {
    return judgement;  // not exercised: whatever happened, the fault has no part in it
  }
  const Evidence* beside = faulted ? &rehearsal : nullptr;
  std::vector<TrialFinding> violations = CompareViolations(beside, trial);
  if (faulted) ForgiveRefusedWaits(*trial.journal, &violations);

  std::vector<TrialFinding> shown = TakeShown(*trial.journal, &violations);
  if (!faulted) Append(&violations, SpuriousFailures(trial));

  const Verdict death = Death(trial.ending);
  if (death != Verdict::Pass) {
    // A process that died had no chance to release anything or to restore a context stack.
    judgement.verdict = death;
    judgement.recovery = faulted ? Recovery::Died : Recovery::NoFault;
    judgement.findings.push_back(DeathFinding(death, trial));
    violations.erase(std::remove_if(violations.begin(), violations.end(), IsStack), violations.end());
    Append(&judgement.findings, std::move(violations));
    Append(&judgement.notes, std::move(shown));
    return judgement;
  }

  Leftovers left = CompareObjects(beside, trial);
  Reporting reporting;
  RecoveryCheck recovery;
  if (faulted) {
    reporting = JudgeReporting(rehearsal, trial, options);
    recovery = CheckRecovery(rehearsal, trial);
  }
  // Who ends with success after the fault gave nothing up. Of a child we are not told with what it ended.
  const bool claims = faulted && reporting.said == Said::Success && fault->pid == FirstRecord(*trial.journal)->pid;
  const bool abandoned = faulted && !claims && !options.abandoned_is_leak && Abandoned(trial, *fault);
  bool anything_abandoned = false;
  if (abandoned) {
    const auto stacks = std::stable_partition(violations.begin(), violations.end(), [](const TrialFinding& f) { return !IsStack(f); });
    Append(&left.leaks, {stacks, violations.end()});
    violations.erase(stacks, violations.end());
    anything_abandoned = !left.leaks.empty();
    Append(&judgement.notes, WithRule(std::move(left.leaks), Rule::AbandonedAtExit));
    left.leaks.clear();
  }
  judgement.said = reporting.said;
  judgement.recovery = recovery.recovery;
  if (!violations.empty()) {
    judgement.verdict = Verdict::Misuse;
  } else if (!left.leaks.empty()) {
    judgement.verdict = Verdict::Leak;
  } else if (!recovery.findings.empty()) {
    judgement.verdict = Verdict::NotRecovered;
  } else if (!reporting.findings.empty()) {
    judgement.verdict = Verdict::Misreported;
  } else if (!left.refused.empty()) {
    judgement.verdict = Verdict::ReleaseRefused;
  } else if (!left.retried.empty()) {
    judgement.verdict = Verdict::RetainedForRetry;
  } else if (anything_abandoned) {
    judgement.verdict = Verdict::AbandonedAtExit;
  } else if (faulted && reporting.said == Said::Success) {
    judgement.verdict = Verdict::Absorbed;
  } else {
    judgement.verdict = Verdict::Pass;
  }
  judgement.unjudged = !left.unjudged.empty();
  if (judgement.unjudged && violations.empty() && left.leaks.empty() && recovery.findings.empty() && reporting.findings.empty()) {
    judgement.verdict = Verdict::NotExercised;
  }
  Append(&judgement.findings, std::move(violations));
  Append(&judgement.findings, std::move(left.leaks));
  Append(&judgement.findings, std::move(recovery.findings));
  Append(&judgement.findings, std::move(reporting.findings));
  Append(&judgement.notes, std::move(left.refused));
  Append(&judgement.notes, std::move(left.retried));
  Append(&judgement.notes, std::move(shown));
  // Beside objects of the driver that were given up, what the host lost was given up too.
  Append(&judgement.notes, anything_abandoned ? WithRule(std::move(left.shown), Rule::AbandonedAtExit) : std::move(left.shown));
  Append(&judgement.notes, std::move(left.process_lifetime));
  Append(&judgement.notes, std::move(left.unjudged));
  return judgement;
}

}  // namespace cuaudit::harness
