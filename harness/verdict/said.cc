// SPDX-License-Identifier: MIT
#include "harness/verdict/said.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"

namespace cuaudit::harness {
namespace {

using faults::MarkKind;
using faults::Record;
using faults::RecordKind;

bool IsMark(const Record& record, MarkKind kind) {
  return record.kind == RecordKind::Mark && record.call == static_cast<std::uint16_t>(kind);
}

bool IsCall(const Record& record) {
  return record.kind == RecordKind::Call && record.call < driver::kCallCount && (record.flags & faults::kNested) == 0;
}

bool Injected(const Record& record) { return IsCall(record) && (record.flags & faults::kInjected) != 0; }

driver::BaseId BaseOf(const Record& record) { return driver::BaseOf(static_cast<driver::CallId>(record.call)); }

std::int32_t CodeOf(const Record& report) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(report.argument[0])); }

bool IsResult(std::int32_t code) { return code > 0 && !driver::ShortResultName(static_cast<CUresult>(code)).empty(); }

// What one process wrote in one cycle, as it began.
std::vector<const Record*> CycleOf(const faults::JournalView& journal, std::uint32_t cycle, std::uint32_t pid, bool any_process) {
  std::vector<const Record*> records;
  for (const Record& record : journal.records()) {
    if (record.begin != 0 && record.kind != RecordKind::Empty && record.cycle == cycle && (any_process || record.pid == pid))
      records.push_back(&record);
  }
  std::sort(records.begin(), records.end(), [](const Record* a, const Record* b) { return a->begin < b->begin; });
  return records;
}

std::map<driver::BaseId, std::uint64_t> Successes(const std::vector<const Record*>& records) {
  std::map<driver::BaseId, std::uint64_t> counts;
  for (const Record* record : records) {
    if (IsCall(*record) && record->end != 0 && record->result == CUDA_SUCCESS) ++counts[BaseOf(*record)];
  }
  return counts;
}

bool Declares(const faults::JournalView& journal) {
  return std::any_of(journal.records().begin(), journal.records().end(),
                     [](const Record& record) { return IsMark(record, MarkKind::Report); });
}

// What a cycle did and what it was to do.
class Work {
 public:
  Work(const std::vector<const Record*>& rehearsed, const std::vector<const Record*>& tried)
      : wanted_(Successes(rehearsed)), got_(Successes(tried)) {}
  bool WasNeverDone(const Record& refused) const {
    const auto need = wanted_.find(BaseOf(refused));
    const auto have = got_.find(BaseOf(refused));
    return need == wanted_.end() || have == got_.end() || have->second < need->second;
  }

 private:
  std::map<driver::BaseId, std::uint64_t> wanted_;
  std::map<driver::BaseId, std::uint64_t> got_;
};

// The refused calls whose work was never done after all.
std::vector<const Record*> NeverDone(const std::vector<const Record*>& rehearsed, const std::vector<const Record*>& tried) {
  const Work work(rehearsed, tried);
  std::vector<const Record*> lost;
  for (const Record* record : tried) {
    if (!Injected(*record) || driver::IsRelease(driver::EffectOf(BaseOf(*record)).effect)) continue;
    if (work.WasNeverDone(*record)) lost.push_back(record);
  }
  return lost;
}

TrialFinding FindingAt(Rule rule, const faults::JournalView& journal, const Record* call, std::string detail) {
  TrialFinding finding;
  finding.rule = rule;
  finding.count = 1;
  finding.detail = std::move(detail);
  if (call != nullptr) {
    finding.where = {call->kind, call->call, call->stack, call->begin};
    finding.where_key = SiteKey(journal, finding.where);
  }
  return finding;
}

// What was said of the faulted cycle after the fault.
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
      reporting->findings.push_back(FindingAt(Rule::WrongCode, journal, &fault, "it reported " + SaidCode(record->argument[0])));
    }
    if (written && !output_found) {
      output_found = true;
      reporting->findings.push_back(FindingAt(Rule::OutputWritten, journal, &fault, {}));
    }
  }
}

}  // namespace

std::string SaidCode(std::uint64_t argument) {
  const auto code = static_cast<std::int32_t>(static_cast<std::uint32_t>(argument));
  return IsResult(code) ? std::string(driver::ShortResultName(static_cast<CUresult>(code))) : std::to_string(code);
}

bool MadeGood(const faults::JournalView& rehearsal, const faults::JournalView& trial, std::uint32_t cycle) {
  const std::vector<const Record*> tried = CycleOf(trial, cycle, 0, true);
  const Work work(CycleOf(rehearsal, cycle, 0, true), tried);
  return std::none_of(tried.begin(), tried.end(), [&](const Record* record) { return Injected(*record) && work.WasNeverDone(*record); });
}

Reporting JudgeReporting(const Evidence& rehearsal, const Evidence& trial, const JudgeOptions& options) {
  Reporting reporting;
  const faults::JournalView& journal = *trial.journal;
  const Record* fault = nullptr;
  for (const Record& record : journal.own_records()) {
    if (Injected(record) && (fault == nullptr || record.begin < fault->begin)) fault = &record;
  }
  if (fault == nullptr) return reporting;
  const std::span<const Record> own = journal.own_records();
  const bool reports = std::any_of(own.begin(), own.end(),
                                   [&](const Record& record) { return IsMark(record, MarkKind::Report) && record.begin >= fault->begin; });
  std::vector<const Record*> tried;
  if (reports || options.exit_is_said) tried = CycleOf(journal, fault->cycle, fault->pid, false);
  JudgeReports(tried, *fault, journal, &reporting);
  const bool declared = reporting.said != Said::Nothing;
  if (!declared) reporting.said = trial.ending.exit_status == rehearsal.ending.exit_status ? Said::Success : Said::Failure;
  // A program that reports and did not come to it this time has said nothing of this cycle; its exit status is the second best.
  if (reporting.said != Said::Success || !(declared || options.exit_is_said)) return reporting;
  const std::vector<const Record*> rehearsed = CycleOf(*rehearsal.journal, fault->cycle, 0, true);
  for (const Record* const lost : NeverDone(rehearsed, tried)) {
    TrialFinding finding = FindingAt(Rule::Swallowed, journal, lost, {});
    const auto same = std::find_if(reporting.findings.begin(), reporting.findings.end(),
                                   [&](const TrialFinding& known) { return known.where_key == finding.where_key; });
    if (same == reporting.findings.end()) reporting.findings.push_back(std::move(finding));
  }
  return reporting;
}

std::vector<TrialFinding> SpuriousFailures(const Evidence& run) {
  std::vector<TrialFinding> findings;
  const faults::JournalView& journal = *run.journal;
  if (!Declares(journal)) return findings;
  std::vector<const Record*> records;
  for (const Record& record : journal.records()) {
    if (record.begin != 0) records.push_back(&record);
  }
  std::sort(records.begin(), records.end(), [](const Record* a, const Record* b) { return a->begin < b->begin; });
  std::set<std::pair<std::uint32_t, std::uint32_t>> failed;  // process and cycle in which some call failed
  for (const Record* record : records) {
    if (IsCall(*record) && record->result != CUDA_SUCCESS) failed.emplace(record->pid, record->cycle);
    if (!IsMark(*record, MarkKind::Report) || CodeOf(*record) == 0 || failed.contains({record->pid, record->cycle})) continue;
    if (!findings.empty()) {
      ++findings.front().count;
      continue;
    }
    std::string detail = "it reported " + SaidCode(record->argument[0]);
    if (record->cycle != 0) detail += " in cycle " + std::to_string(record->cycle);
    findings.push_back(FindingAt(Rule::Spurious, journal, nullptr, std::move(detail)));
  }
  return findings;
}

}  // namespace cuaudit::harness
