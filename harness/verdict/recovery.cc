// SPDX-License-Identifier: MIT
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "faults/driver/result.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/in_the_way.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"
#include "harness/verdict/steps.h"

namespace cuaudit::harness {
namespace {

using faults::MarkKind;
using faults::Record;

// What the journal shows of the clean cycle of a trial.
struct CycleSeen : CycleMarks {
  const Record* failing = nullptr;  // the first call that failed more often than allowed
  bool second_release = false;      // of what was told to be alive, which must fail
};

CycleSeen Look(const Evidence& trial, std::uint32_t cycle, const RehearsedCycle& allowed, const InTheWay& in_the_way) {
  CycleSeen seen = {MarksOf(trial, cycle)};
  Remainder failures(&allowed.failures);
  for (const std::uint32_t index : trial.own_calls()) {
    const Record& record = trial.record(index);
    if (record.cycle != cycle || record.end == 0 || record.result == CUDA_SUCCESS) continue;
    std::uint64_t& left = failures[SiteKey(*trial.journal, SiteOf(record))];
    if (left == 0) {
      if (in_the_way.IsSecondRelease(record)) {
        seen.second_release = true;
        continue;
      }
      seen.failing = &record;
      break;
    }
    --left;
  }
  return seen;
}

// An object acquired in `cycle` and still held at its end, beyond what the rehearsal holds there; null for none.
const Object* Surplus(const Rehearsed& rehearsal, const Evidence& trial, std::uint32_t cycle, std::uint64_t end,
                      const InTheWay& in_the_way) {
  Remainder allowed(&rehearsal.cycle(cycle).held);
  for (const Object& object : trial.ledger->objects) {
    if (!IsLoneDriverObject(object) || object.cycle != cycle || !IsHeldAt(object, end)) continue;
    const std::pair place(object.kind, SiteKey(*trial.journal, object.acquired));
    std::uint64_t& left = allowed[place];
    if (left == 0 && !in_the_way.Explains(object, rehearsal.releases().count(place) != 0)) return &object;
    if (left != 0) --left;
  }
  return nullptr;
}

TrialFinding NotRecovered(Details detail) { return {.rule = Rule::NotRecovered, .count = 1, .detail = std::move(detail)}; }

RecoveryCheck CheckNextCycle(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options, Excuse excuse) {
  const NextCycle& next = *trial.next;
  RecoveryCheck check;
  check.recovery = next.recovery;
  if (next.recovery != Recovery::Checked) return check;
  if (Details failure = next.steps.FirstFailure(); !failure.empty()) {
    failure.insert(failure.begin(), {Detail::Afterwards});
    check.findings.push_back(NotRecovered(std::move(failure)));
    return check;
  }
  const Evidence after = {&next.ledger, &next.journal, {}};
  std::vector<TrialFinding> wrong = CompareViolations(&rehearsal, after);
  // The wait was refused in the cycle before.
  check.excused = TakeIf(&wrong, [&](const TrialFinding& one) { return excuse != nullptr && excuse(trial, one); });
  Leftovers left = CompareObjects(&rehearsal, after, options);
  if (wrong.empty() && left.leaks.empty()) return check;
  check.findings.push_back(NotRecovered({{Detail::LandsElsewhere}}));
  Append(&check.findings, std::move(wrong));
  Append(&check.findings, std::move(left.leaks));
  return check;
}

}  // namespace

Recovery RecoveryAfter(std::span<const faults::Fault> faults, bool given, std::span<const Record> records) {
  const bool lost = std::any_of(faults.begin(), faults.end(), [](const faults::Fault& one) { return one.how == faults::How::Sticky; });
  if (!lost) return Recovery::Checked;
  if (given) return Recovery::GivenContext;
  const Ledger ledger = FoldObjects(records);
  for (const Object& object : ledger.objects) {
    const driver::Family family = driver::FamilyOf(object.kind);
    const bool context =
        family == driver::Family::Context || family == driver::Family::PrimaryContext || family == driver::Family::GreenContext;
    if (!context) continue;
    if (object.state == State::ReleaseRefused) return Recovery::LostKept;
    if (object.cycle == 0 && object.state == State::Live) return Recovery::OlderContext;
  }
  return Recovery::Checked;
}

RecoveryCheck CheckRecovery(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options, Excuse excuse) {
  if (trial.next != nullptr) return CheckNextCycle(rehearsal, trial, options, excuse);
  RecoveryCheck check;
  if (trial.steps != nullptr) return check;
  const std::span<const std::uint32_t> calls = trial.own_calls();
  const auto injected =
      std::find_if(calls.rbegin(), calls.rend(), [&](std::uint32_t call) { return (trial.record(call).flags & faults::kInjected) != 0; });
  if (injected == calls.rend()) return check;
  const Record* const last = &trial.record(*injected);
  const std::uint32_t cycle = last->cycle + 1;
  const bool died = trial.ending.timed_out || trial.ending.signal != 0;
  const std::vector<std::uint32_t>& all = trial.facts().marks;
  const bool marks = last->cycle != 0 && std::any_of(all.begin(), all.end(),
                                                     [&](std::uint32_t mark) { return IsMark(trial.record(mark), MarkKind::CycleBegin); });
  if (died || !marks) {
    check.recovery = died ? Recovery::Died : Recovery::NoMarks;
    return check;
  }
  const RehearsedCycle& rehearsed = rehearsal.cycle(cycle);
  const InTheWay in_the_way(trial);
  const CycleSeen tried = Look(trial, cycle, rehearsed, in_the_way);
  const bool says_failed = tried.said != 0 && rehearsed.said == 0;
  const bool disturbed = tried.failing != nullptr ? in_the_way.Explains(*tried.failing)
                                                  : (tried.end == 0 || says_failed) && (in_the_way.any() || tried.second_release);
  check.recovery = !rehearsed.begun || !rehearsed.end ? Recovery::NoCycleAfter
                   : !tried.begun                     ? Recovery::GaveUp
                   : disturbed                        ? Recovery::Refused
                                                      : Recovery::Checked;
  if (check.recovery != Recovery::Checked) return check;

  if (tried.failing != nullptr) {
    const auto result = static_cast<CUresult>(tried.failing->result);
    check.findings.push_back(FindingAt(Rule::NotRecovered, SiteOf(*tried.failing), *trial.journal,
                                       {{Detail::CleanCycleAnswered, {std::string(driver::ShortResultName(result))}}}));
  } else if (tried.end == 0) {
    check.findings.push_back(NotRecovered({{Detail::CleanCycleOpen}}));
  } else if (says_failed) {
    check.findings.push_back(NotRecovered({{Detail::CleanCycleReported, {SaidCode(tried.said)}}}));
  } else if (const Object* const left = Surplus(rehearsal, trial, cycle, tried.end, in_the_way)) {
    check.findings.push_back(FindingOf(Rule::NotRecovered, *left, *trial.journal));
    check.findings.back().detail = {{Detail::CleanCycleLeft}};
  }
  return check;
}

}  // namespace cuaudit::harness
