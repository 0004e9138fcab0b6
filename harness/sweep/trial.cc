// SPDX-License-Identifier: MIT
#include "harness/sweep/trial.h"

namespace cuaudit::harness {

std::vector<TrialFindingText> Texts(const std::vector<TrialFinding>& findings, const faults::JournalView& journal, SiteTexts* sites) {
  std::vector<TrialFindingText> texts;
  texts.reserve(findings.size());
  for (const TrialFinding& finding : findings) {
    TrialFindingText text;
    text.rule = std::string(Name(finding.rule));
    text.kind = std::string(driver::Name(finding.kind));
    text.count = finding.count;
    text.bytes = finding.bytes;
    text.acquired_key = finding.acquired_key;
    text.where_key = finding.where_key;
    text.acquired = sites->Text(journal, finding.acquired, finding.acquired_key);
    text.where = sites->Text(journal, finding.where, finding.where_key);
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<TrialResult> JudgeTrial(std::size_t index, const std::vector<std::string>& faults, const Observation& rehearsal,
                               const Observation& trial, const JudgeOptions& options, SiteTexts* sites) {
  if ((trial.flags() & faults::kRecordsDropped) != 0 && !trial.ending.timed_out) {
    return Status(Exit::Failure, faults.front() + ": the journal overflowed after " +
                                     std::to_string(trial.journal.header().record_capacity) + " records: give it more with --records");
  }
  const Judgement judgement = Judge(rehearsal.evidence(), trial.evidence(), true, options);
  TrialResult result;
  result.index = index;
  result.faults = faults;
  result.verdict = std::string(Name(judgement.verdict));
  result.fired = judgement.fired;
  result.ending = trial.ending;
  result.fault_key = judgement.fault_key;
  result.fault_site = sites->Text(trial.journal, judgement.fault_site, judgement.fault_key);
  result.findings = Texts(judgement.findings, trial.journal, sites);
  result.notes = Texts(judgement.notes, trial.journal, sites);
  return result;
}

}  // namespace cuaudit::harness
