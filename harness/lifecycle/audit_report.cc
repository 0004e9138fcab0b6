// SPDX-License-Identifier: MIT
#include "harness/lifecycle/audit_report.h"

#include <cstdio>

#include "harness/lifecycle/command_line.h"
#include "reports/defect_words.h"

namespace cuaudit::harness {
namespace {

std::vector<std::string> Lines(const std::vector<report::Frame>& frames) {
  std::vector<std::string> lines;
  for (const report::Frame& frame : frames) {
    std::string line = frame.function;
    if (line.empty()) {
      char offset[32];
      std::snprintf(offset, sizeof(offset), "+0x%llx", static_cast<unsigned long long>(frame.offset));
      line = frame.module + offset;
    }
    if (!frame.file.empty()) {
      line.append(" ").append(frame.file, frame.file.rfind('/') + 1).append(":").append(std::to_string(frame.line));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Finding ToFinding(const report::Finding& from) {
  Finding finding;
  finding.rule = Name(from.rule);
  finding.title = from.title;
  finding.kind = from.kind;
  finding.count = from.count;
  finding.bytes = from.bytes;
  finding.detail = from.other.call.empty() ? from.detail : std::string(report::OtherIs(from.rule)) + " " + from.other.call;
  if (from.fault) {
    finding.faults.push_back(from.fault->text);
    finding.fault_stack = Lines(from.fault->stack);
  }
  for (const report::Fault& then : from.then) finding.faults.push_back(then.text);
  finding.acquired = from.acquired.call;
  finding.acquired_stack = Lines(from.acquired.stack);
  finding.where = from.where;
  finding.where_stack = Lines(from.where_stack);
  finding.fingerprint = from.fingerprint;
  finding.replay = from.reproduce;
  finding.trials = from.trials;
  return finding;
}

Defect ToDefect(const report::Run& run, const report::Defect& from, std::size_t first) {
  Defect defect;
  defect.rules = report::RulesOf(run, from);
  defect.amount = report::AmountOf(run, from);
  defect.blame = report::BlameOf(run, from);
  defect.released = from.released.call;
  defect.released_stack = Lines(from.released.stack);
  for (const report::Member& member : from.members) {
    for (const std::size_t finding : member.findings) defect.findings.push_back(first + finding);
  }
  defect.trials = from.trials;
  defect.fingerprint = from.fingerprint;
  return defect;
}

void Add(const Counted& from, TallyInWords* to) {
  for (const auto& [reason, count] : from) (*to)[Words(reason)] += count;
}

}  // namespace

SiteTexts* SitesOfThread() {
  thread_local SiteTexts sites;
  return &sites;
}

Reproduction ReproductionOf(const std::string& lifecycle) { return {"", "", CommandLine(), true, lifecycle}; }

void AddReport(const report::Run& run, Audit* audit) {
  audit->trials += run.totals.trials;
  audit->fired += run.totals.fired;
  if (run.coverage) audit->reachable = run.coverage->reachable;
  if (run.coverage) audit->reached = run.coverage->reached;
  for (const auto& [verdict, count] : run.totals.verdicts) audit->verdicts[std::string(Name(verdict))] += count;
  Add(run.totals.skipped, &audit->skipped);
  Add(run.totals.pruned, &audit->pruned);
  for (const report::Defect& defect : run.defects) audit->defects.push_back(ToDefect(run, defect, audit->findings.size()));
  std::transform(run.findings.begin(), run.findings.end(), std::back_inserter(audit->findings), ToFinding);
  std::transform(run.notes.begin(), run.notes.end(), std::back_inserter(audit->notes), ToFinding);
}

void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes, const std::string& lifecycle,
                  Audit* audit) {
  Groups groups;
  report::Run run;
  AddFaultFree(findings, notes, ReproductionOf(lifecycle), &groups, &run);
  FindDefects(&run);
  AddReport(run, audit);
}

}  // namespace cuaudit::harness
