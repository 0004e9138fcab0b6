// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using faults::MarkKind;
using faults::Record;

// Of what a run called and marked (Facts).
bool IsCall(const Record& record) { return record.kind == faults::RecordKind::Call; }

bool Injected(const Record& record) { return IsCall(record) && (record.flags & faults::kInjected) != 0; }

std::int32_t CodeOf(const Record& report) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(report.argument[0])); }

bool IsResult(std::int32_t code) { return code > 0 && !driver::ShortResultName(static_cast<CUresult>(code)).empty(); }

// Calls and marks in the order in which they began.
std::vector<const Record*> Merged(const Evidence& run) {
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  const std::vector<std::uint32_t>& marks = run.facts().marks;
  std::vector<const Record*> records;
  records.reserve(calls.size() + marks.size());
  auto mark = marks.begin();
  for (const std::uint32_t call : calls) {
    for (; mark != marks.end() && run.record(*mark).begin < run.record(call).begin; ++mark) records.push_back(&run.record(*mark));
    records.push_back(&run.record(call));
  }
  for (; mark != marks.end(); ++mark) records.push_back(&run.record(*mark));
  return records;
}

// The records of one cycle, by one process or by any.
std::vector<const Record*> CycleOf(const Evidence& run, std::uint32_t cycle, std::optional<std::uint32_t> pid) {
  std::vector<const Record*> records = Merged(run);
  std::erase_if(records, [&](const Record* one) { return one->cycle != cycle || one->pid != pid.value_or(one->pid); });
  return records;
}

bool IsReport(const Evidence& run, std::uint32_t mark) { return IsMark(run.record(mark), MarkKind::Report); }

// The refused calls of `tried` whose work was never done: fewer calls of the entry point succeeded than in the rehearsal's cycle.
std::vector<const Record*> LostCalls(const RehearsedCycle& rehearsed, const std::vector<const Record*>& tried) {
  std::map<driver::BaseId, std::uint64_t> got;
  for (const Record* record : tried) {
    if (IsCall(*record) && record->end != 0 && record->result == CUDA_SUCCESS) ++got[BaseOf(*record)];
  }
  std::vector<const Record*> lost;
  std::copy_if(tried.begin(), tried.end(), std::back_inserter(lost), [&](const Record* record) {
    if (!Injected(*record)) return false;
    const auto need = rehearsed.successes.find(BaseOf(*record));
    const auto have = got.find(BaseOf(*record));
    return need == rehearsed.successes.end() || have == got.end() || have->second < need->second;
  });
  return lost;
}

// Judges the reports and outputs of the faulted cycle after the fault.
void JudgeReports(const std::vector<const Record*>& cycle, const Record& fault, const faults::JournalView& journal, Reporting* reporting) {
  std::set<std::int32_t> answered;
  bool written = false;
  bool output_found = false;
  bool code_found = false;
  for (const Record* record : cycle) {
    if (IsCall(*record) && record->result != CUDA_SUCCESS) answered.insert(record->result);
    if (IsMark(*record, MarkKind::Output)) written = record->argument[0] != 0;
    if (!IsMark(*record, MarkKind::Report) || record->begin < fault.begin) continue;
    const std::int32_t code = CodeOf(*record);
    if (code == 0) {
      if (reporting->said == Said::Nothing) reporting->said = Said::Success;
      continue;
    }
    reporting->said = Said::Failure;
    if (IsResult(code) && !answered.contains(code) && !code_found) {
      code_found = true;
      reporting->findings.push_back(
          FindingAt(Rule::WrongCode, SiteOf(fault), journal, {{Detail::Reported, {SaidCode(record->argument[0])}}}));
    }
    if (written && !output_found) {
      output_found = true;
      reporting->findings.push_back(FindingAt(Rule::OutputWritten, SiteOf(fault), journal));
    }
  }
}

}  // namespace

void Reporting::AddAtNewPlace(TrialFinding finding) {
  const auto same = [&](const TrialFinding& known) { return known.where_key == finding.where_key; };
  if (std::none_of(findings.begin(), findings.end(), same)) findings.push_back(std::move(finding));
}

std::string SaidCode(std::uint64_t argument) {
  const auto code = static_cast<std::int32_t>(static_cast<std::uint32_t>(argument));
  return IsResult(code) ? std::string(driver::ShortResultName(static_cast<CUresult>(code))) : std::to_string(code);
}

std::vector<const Record*> NeverDone(const Rehearsed& rehearsal, const Evidence& trial, std::uint32_t cycle) {
  return LostCalls(rehearsal.cycle(cycle), CycleOf(trial, cycle, std::nullopt));
}

Reporting JudgeReporting(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options) {
  Reporting reporting;
  const faults::JournalView& journal = *trial.journal;
  const std::span<const std::uint32_t> calls = trial.own_calls();
  const auto injected = std::find_if(calls.begin(), calls.end(), [&](std::uint32_t call) { return Injected(trial.record(call)); });
  if (injected == calls.end()) return reporting;
  const Record* const fault = &trial.record(*injected);
  const std::span<const std::uint32_t> marks = trial.own_marks();
  const bool reports = std::any_of(marks.begin(), marks.end(),
                                   [&](std::uint32_t mark) { return IsReport(trial, mark) && trial.record(mark).begin >= fault->begin; });
  std::vector<const Record*> tried;
  if (reports || options.exit_is_said) tried = CycleOf(trial, fault->cycle, fault->pid);
  JudgeReports(tried, *fault, journal, &reporting);
  const bool declared = reporting.said != Said::Nothing;
  if (!declared) reporting.said = trial.ending.exit_status == rehearsal.run().ending.exit_status ? Said::Success : Said::Failure;
  // A program that reports, but not in this cycle, is judged by its exit status.
  if (reporting.said != Said::Success || !(declared || options.exit_is_said)) return reporting;
  for (const Record* const lost : LostCalls(rehearsal.cycle(fault->cycle), tried)) {
    if (driver::IsRelease(driver::EffectOf(BaseOf(*lost)).effect)) continue;  // teardown often has nobody to tell
    reporting.AddAtNewPlace(FindingAt(Rule::Swallowed, SiteOf(*lost), journal));
  }
  return reporting;
}

std::vector<TrialFinding> SpuriousFailures(const Evidence& run) {
  std::vector<TrialFinding> findings;
  const std::vector<std::uint32_t>& marks = run.facts().marks;
  if (std::none_of(marks.begin(), marks.end(), [&](std::uint32_t mark) { return IsReport(run, mark); })) return findings;
  std::set<std::pair<std::uint32_t, std::uint32_t>> failed;  // process and cycle of each failed call
  for (const Record* record : Merged(run)) {
    if (IsCall(*record) && record->result != CUDA_SUCCESS) failed.emplace(record->pid, record->cycle);
    if (!IsMark(*record, MarkKind::Report) || CodeOf(*record) == 0 || failed.contains({record->pid, record->cycle})) continue;
    if (!findings.empty()) {
      ++findings.front().count;
      continue;
    }
    Details detail = {{Detail::Reported, {SaidCode(record->argument[0])}}};
    if (record->cycle != 0) detail.push_back({Detail::InCycle, {std::to_string(record->cycle)}});
    findings.push_back({.rule = Rule::Spurious, .count = 1, .detail = std::move(detail)});
  }
  return findings;
}

}  // namespace cuaudit::harness
