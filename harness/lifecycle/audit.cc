// SPDX-License-Identifier: MIT
// The public functions of cuaudit/lifecycle.h, and their results as text.
#include <cstdio>
#include <cstdlib>

#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/isolation.h"
#include "harness/lifecycle/sweep_lifecycle.h"
#include "include/cuaudit/lifecycle.h"
#include "reports/defect_words.h"

namespace cuaudit {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

using harness::Result;

bool IsChosen(const Lifecycle& lifecycle, Audit* audit) {
  const std::string chosen = Variable("CUAUDIT_CASE");
  if (chosen.empty() || chosen == lifecycle.name()) return true;
  audit->lifecycle = lifecycle.name();
  audit->outcome = AuditOutcome::NotRun;
  audit->message = "not run: CUAUDIT_CASE is '" + chosen + "'";
  return false;
}

bool CanSweep(const Lifecycle& lifecycle, const SweepOptions& options, Audit* audit) {
  if (!IsChosen(lifecycle, audit)) return false;
  audit->lifecycle = lifecycle.name();
  // A wrong choice in the code is an error on any machine; a choice in CUAUDIT_OPTIONS only where such a driver is present.
  const bool said = options.driver == AuditedDriver::Genuine;
  if (!(options.isolate && said) && !harness::DriverIsHere(options.driver, audit)) return false;
  if (!options.isolate || !harness::IsGenuine(options.driver)) return true;
  audit->message = "isolate: expected the simulated driver: a genuine one does not survive fork";
  return false;
}

std::vector<std::string> ChosenFaults() {
  std::vector<std::string> faults;
  std::string rest = Variable("CUAUDIT_FAULT");
  while (!rest.empty()) {
    const std::size_t end = rest.find(';');
    if (end != 0) faults.push_back(rest.substr(0, end));
    rest = end == std::string::npos ? std::string() : rest.substr(end + 1);
  }
  return faults;
}

void AddStack(const char* title, const std::string& call, const std::vector<std::string>& stack, std::string* text) {
  if (call.empty() && stack.empty()) return;
  *text += std::string("    ") + title + (call.empty() ? "" : " " + call) + "\n";
  for (const std::string& line : stack) *text += "        " + line + "\n";
}

std::string Counted(std::size_t count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); }

// "leak of 1 stream (64 bytes)"
std::string What(const Finding& finding) {
  std::string text = finding.rule;
  if (!finding.kind.empty()) text += " of " + std::to_string(finding.count) + " " + finding.kind;
  if (finding.bytes != 0) text += " (" + std::to_string(finding.bytes) + " bytes)";
  return text;
}

void AddFinding(const Finding& finding, std::string* text) {
  *text += "  " + What(finding) + ": " + finding.title + "\n";
  if (!finding.detail.empty()) *text += "    " + finding.detail + "\n";
  AddStack("acquired by", finding.acquired, finding.acquired_stack, text);
  AddStack("seen at", finding.where, finding.where_stack, text);
  for (std::size_t i = 0; i < finding.faults.size(); ++i) {
    AddStack(i == 0 ? "fault" : "then", finding.faults[i], i == 0 ? finding.fault_stack : std::vector<std::string>(), text);
  }
  if (finding.trials > 1) *text += "    in " + std::to_string(finding.trials) + " trials\n";
  if (!finding.replay.empty()) *text += "    replay " + finding.replay + "\n";
}

constexpr std::size_t kShownFindings = 10;  // of one defect, a line each

// The finding that shows the defect, and a line for each other one.
void AddDefect(const Defect& defect, const std::vector<Finding>& findings, std::string* text) {
  AddFinding(findings[defect.findings.front()], text);
  if (!defect.blame.empty()) *text += "    " + defect.blame + "\n";
  AddStack("without the fault", defect.released, defect.released_stack, text);
  for (std::size_t i = 1; i < defect.findings.size() && i <= kShownFindings; ++i) {
    const Finding& finding = findings[defect.findings[i]];
    *text += "    with it " + What(finding);
    for (const std::string& fault : finding.faults) *text += ", fault " + fault;
    *text += "\n";
  }
  if (defect.findings.size() > kShownFindings + 1)
    *text += "    and " + std::to_string(defect.findings.size() - kShownFindings - 1) + " more findings\n";
  if (!defect.fingerprint.empty()) *text += "    fingerprint " + defect.fingerprint + "\n";
}

}  // namespace

std::string Audit::Text() const {
  std::string text = lifecycle + ": ";
  switch (outcome) {
    case AuditOutcome::Clean:
    case AuditOutcome::NotRun:
    case AuditOutcome::Error:
      text += message;
      break;
    case AuditOutcome::NoDevice:
      text += "not run: " + message;
      break;
    case AuditOutcome::NotExercised:
      text += "not exercised: " + message;
      break;
    case AuditOutcome::Findings:
      text += Counted(defects.size(), "defect");
      if (findings.size() != defects.size()) text += ", " + Counted(findings.size(), "finding");
      break;
  }
  text += "\n";
  if (!driver.empty()) text += "  driver: " + driver + "\n";
  if (trials != 0) {
    text += "  " + std::to_string(calls) + " driver calls, " + std::to_string(trials) + " trials, " + std::to_string(fired) + " fired";
    for (const auto& [verdict, count] : verdicts) text += ", " + std::to_string(count) + " " + verdict;
    text += "\n";
  }
  for (const auto& [reason, count] : skipped) text += "  left out: " + std::to_string(count) + " " + reason + "\n";
  for (const auto& [reason, count] : pruned) text += "  pruned: " + std::to_string(count) + " " + reason + "\n";
  for (const std::string& reason : unmetered) text += "  not metered: " + reason + "\n";
  if (!drift.empty()) text += "  drifting: two fault-free runs differ: " + drift + "\n";
  for (const Defect& defect : defects) AddDefect(defect, findings, &text);
  return text;
}

void Audit::Tolerate(const std::function<bool(const Finding&)>& tolerated) {
  constexpr std::size_t kGone = ~std::size_t{0};
  std::vector<std::size_t> now(findings.size(), kGone);
  std::vector<Finding> kept;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (tolerated(findings[i])) continue;
    now[i] = kept.size();
    kept.push_back(std::move(findings[i]));
  }
  findings = std::move(kept);
  for (Defect& defect : defects) {
    for (std::size_t& finding : defect.findings) finding = now[finding];
    std::erase(defect.findings, kGone);
  }
  std::erase_if(defects, [](const Defect& defect) { return defect.findings.empty(); });
}

Audit Sweep(const Lifecycle& lifecycle, const SweepOptions& options) {
  Audit audit;
  if (CanSweep(lifecycle, options, &audit)) harness::SweepLifecycle(lifecycle, options, ChosenFaults(), &audit);
  return audit;
}

Audit Replay(const Lifecycle& lifecycle, const std::vector<std::string>& faults, const SweepOptions& options) {
  Audit audit;
  if (faults.empty()) {
    audit.lifecycle = lifecycle.name();
    audit.message = "expected at least one fault to replay";
  } else if (CanSweep(lifecycle, options, &audit)) {
    harness::SweepLifecycle(lifecycle, options, faults, &audit);
  }
  return audit;
}

Audit RunCycles(const Lifecycle& lifecycle, const CycleOptions& options) {
  Audit audit;
  if (!IsChosen(lifecycle, &audit)) return audit;
  audit.lifecycle = lifecycle.name();
  if (harness::DriverIsHere(options.driver, &audit)) harness::CheckCycles(lifecycle, options, &audit);
  return audit;
}

void SetRunningTest(const std::string& name) { harness::SetTestFilter(name); }

const char* WhyNoDevice() noexcept {
  static const auto* const why = [] {
    const Result<harness::LifecycleDriver> chosen = harness::ChooseDriver(AuditedDriver::Genuine);
    return new std::string(chosen.ok() ? chosen->why_not : chosen.status().message());
  }();
  return why->empty() ? nullptr : why->c_str();
}

bool GenuineDriverIsChosen() noexcept {
  const Result<harness::LifecycleDriver> chosen = harness::ChooseDriver(AuditedDriver::Chosen);
  return chosen.ok() && chosen->driver == AuditedDriver::Genuine;
}

const char* WhyNoDriver() noexcept {
  static const auto* const why = [] {
    const Result<harness::LifecycleDriver> chosen = harness::ChooseDriver(AuditedDriver::Chosen);
    return new std::string(chosen.ok() ? chosen->why_not : std::string());
  }();
  return why->empty() ? nullptr : why->c_str();
}

}  // namespace cuaudit

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
  finding.detail = from.detail;
  if (!from.other.call.empty())
    finding.detail += (from.detail.empty() ? "" : "; ") + std::string(report::OtherIs(from.rule)) + " " + from.other.call;
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
