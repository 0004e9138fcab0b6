// SPDX-License-Identifier: MIT
#include "harness/verdict/judge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/context/put_back.h"
#include "harness/verdict/context/restored_settings.h"
#include "harness/verdict/context/work_contexts.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/driver_owned.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"
#include "harness/verdict/steps.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordKind;

bool Settles(const Record& call) {
  const driver::Effect effect = driver::EffectOf(BaseOf(call)).effect;
  return driver::IsAcquire(effect) || driver::IsRelease(effect);
}

// True for a host resource that shows unwinding: the program held it at the fault and released it before its exit. Resources acquired
// after the fault prove nothing (an error message may need them), nor do the driver's own. Mappings prove nothing, because an allocator
// returns its pools at any time.
bool Unwinds(const Object& object, const Record& fault, std::uint64_t exit) {
  return object.pid == fault.pid && object.released.record_kind == RecordKind::Host && !object.driver_owned &&
         object.kind != driver::Kind::HostMapping && object.acquired.begin < fault.begin && object.released.begin > fault.begin &&
         object.released.begin < exit;
}

// A program that marks its phases may give up while it starts. What it leaves by exiting later, it left without its tear-down.
bool MayGiveUp(const Record& fault) { return fault.phase == faults::Phase::Any || fault.phase == faults::Phase::Init; }

// True for a call by which an error handler ends all that a device has before it exits, as cudaDeviceReset does: a reset, and the release
// of the reference right behind it. A program that resets in its fault-free run, too, tears down by that, and exits from its tear-down.
bool EndsDevice(const Evidence& rehearsal, const Record& call, const Record* before) {
  if (driver::EffectOf(BaseOf(call)).effect == driver::Effect::ReleasesPrimary)
    return before != nullptr && ResetsPrimary(*before) && before->argument[0] == call.argument[0];
  const std::span<const std::uint32_t> calls = rehearsal.own_calls();
  return ResetsPrimary(call) &&
         std::none_of(calls.begin(), calls.end(), [&](std::uint32_t made) { return ResetsPrimary(rehearsal.record(made)); });
}

// True when the process ended by itself, and between the fault and the begin of its exit neither acquired nor released anything but all
// that a device has.
bool Abandoned(const Rehearsed& rehearsal, const Evidence& trial, const Record& fault) {
  if (!MayGiveUp(fault)) return false;
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  const ProcessFacts* const process = trial.facts().Process(fault.pid);
  const std::uint64_t exit = process != nullptr && process->exit > fault.begin ? process->exit : kNever;
  // Without an exit event it is unknown whether a child ended by itself or was killed.
  if (exit == kNever && !trial.facts().IsFirst(fault.pid)) return false;
  const std::vector<Object>& objects = trial.ledger->objects;
  if (!OnlyShowsHost(*trial.journal) &&
      std::any_of(objects.begin(), objects.end(), [&](const Object& object) { return Unwinds(object, fault, exit); }))
    return false;
  const auto between = [&](const Record& record) { return record.pid == fault.pid && record.begin > fault.begin && record.begin < exit; };
  std::map<std::uint32_t, const Record*> before;  // the last call of each thread
  for (const std::uint32_t index : trial.own_calls()) {
    const Record& call = trial.record(index);
    if (!between(call)) continue;
    const Record*& last = before[call.tid];
    if (Settles(call) && !EndsDevice(rehearsal.run(), call, last)) return false;
    last = &call;
  }
  const std::span<const std::uint32_t> marks = trial.own_marks();
  return std::none_of(marks.begin(), marks.end(), [&](std::uint32_t mark) {
    return between(trial.record(mark)) && IsMark(trial.record(mark), faults::MarkKind::CycleEnd);
  });
}

std::vector<TrialFinding> WithRule(std::vector<TrialFinding> findings, Rule rule) {
  for (TrialFinding& finding : findings) finding.rule = rule;
  return findings;
}

bool IsRefusedWait(const Record& call) {
  using driver::BaseId;
  const BaseId base = BaseOf(call);
  const bool waits = base == BaseId::CtxSynchronize || base == BaseId::StreamSynchronize || base == BaseId::EventSynchronize ||
                     base == BaseId::StreamQuery || base == BaseId::EventQuery;
  return waits && (call.flags & faults::kInjected) != 0;
}

// True when only a refused wait made it a misuse, by the word of the simulated world. Other refused calls excuse nothing: who cannot record
// an event can wait for the stream.
bool IsExcused(const Evidence& trial, const TrialFinding& finding) {
  if (!finding.refused_wait) return false;
  const std::span<const std::uint32_t> own = trial.own_calls();
  return std::any_of(own.begin(), own.end(), [&](std::uint32_t call) { return IsRefusedWait(trial.record(call)); });
}

// True when the call was carried out under `after`, so that the program was told that it had failed and had queued nothing.
bool WasDenied(const Evidence& trial, const Site& call) {
  const Record* const made = trial.call_at(call.begin);
  constexpr unsigned kAfter = faults::kInjected | faults::kForwarded;
  return made != nullptr && (made->flags & kAfter) == kAfter;
}

// True when the program waited between the two calls and was told that the context of the earlier one is lost. The work of a lost context
// has ended, and every wait answers the same, so the world cannot say which one the program lacked.
bool WasLostBefore(const Evidence& trial, const TrialFinding& finding) {
  const bool in_use = finding.rule == Rule::FreedInUse || finding.rule == Rule::HostFreedInUse || finding.rule == Rule::UnorderedAccess;
  const Record* const earlier = in_use ? trial.call_at(finding.other.begin) : nullptr;
  if (earlier == nullptr) return false;
  std::optional<WorkContexts> contexts;  // made when it is needed
  const std::span<const std::uint32_t> own = trial.own_calls();
  return std::any_of(own.begin(), own.end(), [&](std::uint32_t index) {
    const Record& call = trial.record(index);
    const bool between = call.pid == earlier->pid && call.begin > finding.other.begin && call.begin < finding.where.begin;
    if (!between || !IsRefusedWait(call) || !driver::IsSticky(static_cast<CUresult>(call.result))) return false;
    if (!contexts) contexts.emplace(trial);
    return !contexts->Differ(call, *earlier);
  });
}

std::vector<TrialFinding> AsNotes(std::vector<TrialFinding> excused) {
  for (TrialFinding& note : excused) {
    note.detail = {WouldBe(note.rule)};
    note.rule = Rule::CouldNotKnow;
  }
  return excused;
}

// Removes the misuse that exists only because of what the program was told, and returns it as notes. The simulated world has marked
// misuse that a refused wait would have prevented; of a lost context any wait would do. With `claims` the program reported success, so it
// treated the work as done, and such misuse stays a finding. The ledger has marked what comes of trying a release again that was said to
// have failed.
std::vector<TrialFinding> TakeExcused(const Evidence& trial, bool claims, std::vector<TrialFinding>* violations) {
  const auto waited = [&](const TrialFinding& finding) { return IsExcused(trial, finding) || WasLostBefore(trial, finding); };
  for (TrialFinding& finding : *violations) {
    if (claims && waited(finding)) finding.detail.push_back({Detail::WaitFailed});
  }
  return AsNotes(TakeIf(violations, [&](const TrialFinding& finding) {
    return (!claims && waited(finding)) || finding.believed || (IsProved(finding.rule) && WasDenied(trial, finding.other));
  }));
}

}  // namespace

Judgement Judge(const Evidence& rehearsal, const Evidence& trial, bool faulted, const JudgeOptions& options) {
  if (!faulted) return Judge(nullptr, trial, options);
  const Rehearsed beside(rehearsal);
  return Judge(&beside, trial, options);
}

Judgement Judge(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options) {
  Judgement judgement;
  const bool faulted = rehearsal != nullptr;
  const Record* const fault = trial.first_hit();
  if (fault != nullptr) {
    judgement.fired = true;
    judgement.fault_site = SiteOf(*fault);
    judgement.fault_key = SiteKey(*trial.journal, judgement.fault_site);
  } else if (faulted) {
    // The fault had no effect, so nothing can be blamed on it.
    if (trial.steps != nullptr) judgement.findings = SpuriousFailure(*trial.steps);
    return judgement;
  }
  std::vector<TrialFinding> violations = CompareViolations(rehearsal, trial);
  const Verdict death = DeathOf(trial.ending);
  Reporting reporting;
  if (faulted && death == Verdict::Pass)
    reporting = trial.steps != nullptr ? JudgeSteps(*rehearsal, trial, options) : JudgeReporting(*rehearsal, trial, options);
  std::vector<TrialFinding> shown;
  if (faulted) shown = TakeExcused(trial, reporting.said == Said::Success, &violations);
  if (faulted) AddDeficits(*rehearsal, trial, &violations);
  // The journal of a lifecycle goes on in the next cycle, which begins in the caller's context again.
  if (faulted && (trial.steps != nullptr || MayLeaveChanged(trial))) Append(&violations, rehearsal->put_back().Missing(trial));
  if (faulted) Append(&violations, rehearsal->restored_settings().Missing(trial));

  Append(&shown, TakeShown(*trial.journal, &violations));
  if (!faulted) Append(&violations, SpuriousFailures(trial));

  if (death != Verdict::Pass) {
    // A process that died could neither release objects nor restore a context stack.
    std::erase_if(violations, [](const TrialFinding& finding) { return IsUnsettled(finding.rule); });
    judgement.verdict = death;
    judgement.recovery = faulted ? Recovery::Died : Recovery::NoFault;
    if (faulted && death == Verdict::Hang && LacksDestructor(trial)) {
      Append(&shown, AsNotes({DeathFinding(death, trial)}));
      judgement.skipped.push_back(Reason::DestructorKept);
    } else {
      judgement.findings.push_back(DeathFinding(death, trial));
    }
    Append(&judgement.findings, std::move(violations));
    Append(&judgement.notes, std::move(shown));
    return judgement;
  }

  Leftovers left = CompareObjects(rehearsal, trial, options);
  if (faulted) DropTaken(trial, violations, &left.leaks);
  if (faulted) Append(&left.refused, WithRule(TakeLost(trial, &left.leaks), Rule::ReleaseRefused));
  RecoveryCheck recovery;
  if (faulted) recovery = CheckRecovery(*rehearsal, trial, options, reporting.said == Said::Success ? nullptr : &IsExcused);
  if (faulted && trial.steps != nullptr) Append(&left.retried, GivenBackByRetry(trial));
  // A program that ends with success after the fault did not give up. The exit status of a child process is unknown.
  const bool claims = faulted && reporting.said == Said::Success && trial.facts().IsFirst(fault->pid);
  const bool abandoned = faulted && !claims && !options.abandoned_is_leak && Abandoned(*rehearsal, trial, *fault);
  const Rule giving_up = abandoned && fault->phase == faults::Phase::Init ? Rule::AbandonedInInit : Rule::AbandonedAtExit;
  bool anything_abandoned = false;
  if (abandoned) {
    Append(&left.leaks, TakeIf(&violations, [](const TrialFinding& finding) { return IsUnsettled(finding.rule); }));
    anything_abandoned = !left.leaks.empty();
    Append(&judgement.notes, WithRule(std::move(left.leaks), giving_up));
    left.leaks.clear();
  }
  judgement.said = reporting.said;
  judgement.recovery = recovery.recovery;
  judgement.skipped = std::move(reporting.skipped);
  judgement.unjudged = !left.unjudged.empty();
  judgement.verdict = VerdictOf(reporting.said);
  const std::pair<bool, Verdict> shows[] = {
      {!violations.empty(), Verdict::Misuse},
      {!left.leaks.empty(), Verdict::Leak},
      {!recovery.findings.empty(), Verdict::NotRecovered},
      {!reporting.findings.empty(), Verdict::Misreported},
      {!left.unjudged.empty(), Verdict::NotExercised},
      {!left.refused.empty(), Verdict::ReleaseRefused},
      {!left.retried.empty(), Verdict::RetainedForRetry},
      {anything_abandoned, Verdict::AbandonedAtExit},
  };
  for (const auto& [is_shown, verdict] : shows) {
    if (is_shown) judgement.verdict = Graver(judgement.verdict, verdict);
  }
  Append(&judgement.findings, std::move(violations));
  Append(&judgement.findings, std::move(left.leaks));
  Append(&judgement.findings, std::move(recovery.findings));
  Append(&judgement.findings, std::move(reporting.findings));
  Append(&judgement.notes, std::move(left.refused));
  Append(&judgement.notes, std::move(left.retried));
  Append(&judgement.notes, std::move(left.relied));
  Append(&judgement.notes, std::move(shown));
  Append(&judgement.notes, AsNotes(std::move(recovery.excused)));
  // When driver objects were abandoned, the host resources beside them were abandoned, too.
  Append(&judgement.notes, anything_abandoned ? WithRule(std::move(left.shown), giving_up) : std::move(left.shown));
  Append(&judgement.notes, std::move(left.process_lifetime));
  Append(&judgement.notes, std::move(left.unjudged));
  return judgement;
}

}  // namespace cuaudit::harness
