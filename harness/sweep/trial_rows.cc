// SPDX-License-Identifier: MIT
#include "harness/sweep/trial_rows.h"

#include <algorithm>
#include <sstream>

#include "harness/process/files.h"
#include "harness/verdict/death.h"
#include "reports/audit.h"

namespace cuaudit::harness {
namespace {

void AddDifference(const TrialFindingText& finding, std::vector<report::Difference>* to) {
  const std::string_view kind = KindName(finding);
  const auto same =
      std::find_if(to->begin(), to->end(), [&](const report::Difference& one) { return one.rule == finding.rule && one.kind == kind; });
  report::Difference& one = same == to->end() ? to->emplace_back() : *same;
  one.rule = finding.rule;
  one.kind = kind;
  one.count = report::Plus(one.count, finding.count);
  one.bytes = report::Plus(one.bytes, finding.bytes);
}

bool IsDeath(const TrialResult& trial) { return trial.ending.timed_out || trial.ending.signal != 0; }

report::TrialRow RowOf(const TrialResult& trial) {
  report::TrialRow row;
  row.number = trial.index;
  row.faults = trial.faults;
  row.fired = trial.fired;
  row.verdict = trial.verdict;
  row.missed = trial.missed;
  row.attempts = trial.attempt;
  for (const TrialFindingText& finding : trial.findings) AddDifference(finding, &row.differs);
  if (trial.isolation == Isolation::InProcess && !IsDeath(trial)) return row;
  row.end = report::TrialEnd{trial.ending.exit_status, {}, trial.ending.timed_out};
  if (trial.ending.signal != 0) row.end->signal = SignalName(trial.ending.signal);
  return row;
}

}  // namespace

std::vector<report::TrialRow> TrialRows(const SweepEngine& engine) {
  std::vector<report::TrialRow> rows;
  rows.reserve(engine.results().size());
  for (const auto& [index, trial] : engine.results()) {
    if (!engine.OnlyShrinks(index)) rows.push_back(RowOf(trial));
  }
  return rows;
}

Status WriteTrialRows(const std::vector<report::TrialRow>& trials, const report::Run& run, const std::string& file) {
  std::ostringstream text;
  if (!report::WriteTrials(run, trials, text)) return {Exit::Failure, "--trials: " + file + ": the lines could not be written"};
  const Status written = WriteFile(file, text.view(), Exit::Failure);
  return written.ok() ? written : Status(written.exit(), "--trials: " + written.message());
}

}  // namespace cuaudit::harness
