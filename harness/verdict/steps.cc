// SPDX-License-Identifier: MIT
#include "harness/verdict/steps.h"

#include <string_view>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordKind;

constexpr std::string_view kStepNames[kSteps] = {"init", "work", "teardown", "the second teardown", "the destructor"};

std::string CodeText(CUresult code) {
  return "CUDA_" + std::string(code == CUDA_SUCCESS ? "" : "ERROR_") + std::string(driver::ShortResultName(code));
}

// The last step that had begun by ticket `when`; kSteps when none had.
std::size_t StepAt(const CycleSteps& steps, std::uint64_t when) {
  std::size_t at = kSteps;
  for (std::size_t i = 0; i < kSteps; ++i) {
    const StepTrace& step = steps.step[i];
    if (step.ran && step.begin < when && (at == kSteps || steps.step[at].begin <= step.begin)) at = i;
  }
  return at;
}

words::DetailPart StepAnswer(const CycleSteps& steps, std::size_t at) {
  const StepTrace& step = steps.step[at];
  const std::string name(kStepNames[at]);
  if (step.threw && step.text[0] == '\0') return {Detail::StepThrew, {name}};
  if (step.threw) return {Detail::StepThrewText, {name, step.text}};
  if (step.has_code) return {Detail::StepReturned, {name, CodeText(step.code)}};
  return {step.failed ? Detail::StepFailed : Detail::StepSucceeded, {name}};
}

bool IsOfHost(const Record* record) { return record->kind == RecordKind::Host; }

// `failed` holds what the driver itself answered, too: the code of any call that failed until the step's end is right.
void JudgeCode(const CycleSteps& steps, std::size_t at, std::span<const Record* const> refused, std::span<const Record* const> failed,
               const faults::JournalView& journal, bool any_code, Reporting* reporting) {
  const StepTrace& step = steps.step[at];
  const auto answered = [&](const Record* record) {
    const std::size_t in = StepAt(steps, record->begin);
    if (in != kSteps && steps.step[in].begin > step.begin) return false;
    return (IsOfHost(record) ? CUDA_ERROR_OUT_OF_MEMORY : static_cast<CUresult>(record->result)) == step.code;
  };
  const bool known = std::any_of(refused.begin(), refused.end(), answered) || std::any_of(failed.begin(), failed.end(), answered);
  const bool of_host = std::any_of(refused.begin(), refused.end(), IsOfHost);
  if (!step.has_code || any_code || (of_host && !known)) {
    reporting->skipped.push_back(Reason::CodesDiffer);
  } else if (!known) {
    const auto hit = std::find_if(refused.begin(), refused.end(), [&](const Record* one) { return StepAt(steps, one->begin) == at; });
    const Record& call = hit == refused.end() ? *refused.front() : **hit;
    const std::string code = CodeText(static_cast<CUresult>(call.result));
    reporting->findings.push_back(
        FindingAt(Rule::WrongCode, SiteOf(call), journal, {StepAnswer(steps, at), {Detail::DriverAnswered, {code}}}));
  }
}

bool Pops(const Site& released) { return driver::EffectOf(BaseOf(released)).effect == driver::Effect::PopsContext; }

}  // namespace

Details CycleSteps::FirstFailure() const {
  for (std::size_t i = 0; i < kSteps; ++i) {
    if (step[i].failed) return {StepAnswer(*this, i)};
  }
  return {};
}

std::string CycleSteps::RunningAt(std::uint64_t when) const {
  const std::size_t at = StepAt(*this, when);
  return at == kSteps ? std::string() : std::string(kStepNames[at]);
}

Reporting JudgeSteps(const CycleSteps& steps, std::span<const Record* const> refused, std::span<const Record* const> failed,
                     std::span<const Record* const> lost, const faults::JournalView& journal, bool any_code) {
  Reporting reporting;
  const std::size_t first = refused.empty() ? kSteps : StepAt(steps, refused.front()->begin);
  if (first == kSteps) return reporting;
  const auto ended = std::find_if(std::begin(steps.step), std::end(steps.step), [](const StepTrace& one) { return one.failed; });
  if (ended != std::end(steps.step)) {
    reporting.said = Said::Failure;
    const auto at = static_cast<std::size_t>(ended - std::begin(steps.step));
    if (ended->written_output[0] != '\0') {
      reporting.findings.push_back(FindingAt(Rule::OutputWritten, SiteOf(*refused.front()), journal,
                                             {StepAnswer(steps, at), {Detail::WroteOutput, {ended->written_output}}}));
    }
    // Only the first failing step is judged: later steps may return errors that follow from it.
    JudgeCode(steps, at, refused, failed, journal, any_code, &reporting);
    return reporting;
  }
  reporting.said = Said::Success;
  // A benign fault starts no way back: the lifecycle goes on.
  const auto is_benign = [&](const Record* call) { return call->fault != 0 && (steps.benign_faults >> (call->fault - 1U) & 1U) != 0; };
  const auto first_failure = std::find_if_not(refused.begin(), refused.end(), is_benign);
  const Record* const failure = first_failure == refused.end() ? refused.back() : *first_failure;
  if (!steps.step[first].can_report) reporting.skipped.push_back(Reason::StepSilent);
  for (const Record* const call : lost) {
    const std::size_t at = StepAt(steps, call->begin);
    if (at == kSteps || !steps.step[at].can_report) continue;
    // While the program unwinds from another failure, a failed release cannot be reported.
    const bool on_the_way_back = call->begin > failure->begin;
    if (on_the_way_back && driver::IsRelease(driver::EffectOf(BaseOf(*call)).effect)) continue;
    reporting.AddAtNewPlace(FindingAt(Rule::Swallowed, SiteOf(*call), journal,
                                      {{Detail::ReportedByNone, {std::string(kStepNames[at])}}, StepAnswer(steps, at)}));
  }
  return reporting;
}

Reporting JudgeSteps(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options) {
  std::vector<const Record*> refused;
  std::vector<const Record*> failed;
  for (const std::uint32_t call : trial.own_calls()) {
    const Record& record = trial.record(call);
    if ((record.flags & faults::kInjected) != 0) refused.push_back(&record);
    if (record.cycle == 1 && record.result != CUDA_SUCCESS) failed.push_back(&record);
  }
  for (const Hit& hit : trial.facts().hits) {
    if (hit.begin != 0 && IsOfHost(&trial.record(hit.record))) refused.push_back(&trial.record(hit.record));
  }
  std::stable_sort(refused.begin(), refused.end(), [](const Record* a, const Record* b) { return a->begin < b->begin; });
  return JudgeSteps(*trial.steps, refused, failed, NeverDone(rehearsal, trial, 1), *trial.journal, options.any_code);
}

std::vector<TrialFinding> SpuriousFailure(const CycleSteps& steps) {
  Details failure = steps.FirstFailure();
  if (failure.empty()) return {};
  failure.push_back({Detail::NoFaultFired});
  return {{.rule = Rule::Spurious, .count = 1, .detail = std::move(failure)}};
}

std::vector<TrialFinding> GivenBackByRetry(const Evidence& trial) {
  std::vector<TrialFinding> given;
  const StepTrace& second = trial.steps->at(StepName::SecondTeardown);
  if (!second.ran) return given;
  for (const Object& object : trial.ledger->objects) {
    const bool told = object.retried.record_kind != RecordKind::Empty;
    if (told || object.cycle != 1 || !IsOwed(object) || object.state != State::Released || object.released.begin < second.begin) continue;
    if (object.released.record_kind == RecordKind::Empty) continue;                          // nobody released it
    if (object.kind == driver::Kind::ContextStackEntry && !Pops(object.released)) continue;  // it went with its context
    given.push_back(FindingOf(Rule::RetainedForRetry, object, *trial.journal));
  }
  return given;
}

}  // namespace cuaudit::harness
