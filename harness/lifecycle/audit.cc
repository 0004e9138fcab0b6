// SPDX-License-Identifier: MIT
// The public functions of cuaudit/lifecycle.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/isolation.h"
#include "harness/lifecycle/sweep_lifecycle.h"
#include "include/cuaudit/lifecycle.h"
#include "reports/defect_words.h"
#include "reports/writers.h"

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
  audit->message = harness::Words({harness::Detail::OtherCaseChosen, {chosen}});
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

// Why that driver cannot answer; empty: it may. Of a choice that is no driver the audit says what is wrong.
std::string WhyNot(AuditedDriver wished) {
  const Result<harness::LifecycleDriver> chosen = harness::ChooseDriver(wished);
  if (chosen.ok()) return chosen->why_not;
  return wished == AuditedDriver::Genuine ? chosen.status().message() : std::string();
}

std::vector<std::string> ChosenFaults() {
  std::vector<std::string> faults;
  std::istringstream text(Variable("CUAUDIT_FAULT"));
  for (std::string fault; std::getline(text, fault, ';');) {
    if (!fault.empty()) faults.push_back(fault);
  }
  return faults;
}

constexpr std::size_t kGone = ~std::size_t{0};

// Removes the findings that are `gone`. Returns for each old index the new one, or kGone.
template <typename One>
std::vector<std::size_t> Remove(const std::vector<bool>& gone, std::vector<One>* findings) {
  std::vector<std::size_t> now(gone.size(), kGone);
  std::vector<One> kept;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (gone[i]) continue;
    now[i] = kept.size();
    kept.push_back(std::move((*findings)[i]));
  }
  *findings = std::move(kept);
  return now;
}

void Renumber(const std::vector<std::size_t>& now, std::vector<std::size_t>* findings) {
  for (std::size_t& finding : *findings) finding = now[finding];
  std::erase(*findings, kGone);
}

}  // namespace

std::string Audit::Text() const {
  report::Run told = run == nullptr ? report::Run() : *run;
  told.outcome = harness::ReportedOutcome(outcome);
  return report::LifecycleText(told, {lifecycle, message, driver, drift, skipped, unmetered});
}

void Audit::Tolerate(const std::function<bool(const Finding&)>& tolerated) {
  std::vector<bool> gone;
  for (const Finding& finding : findings) gone.push_back(tolerated(finding));
  std::vector<std::size_t> now = Remove(gone, &findings);
  for (Defect& defect : defects) Renumber(now, &defect.findings);
  std::erase_if(defects, [](const Defect& defect) { return defect.findings.empty(); });
  if (run == nullptr) return;
  report::Run left = *run;
  // The report has the suppressed findings, too.
  std::vector<bool> gone_there = report::SuppressedFindings(left);
  auto next = gone.begin();
  for (std::size_t i = 0; i < gone_there.size(); ++i) gone_there[i] = !gone_there[i] && next != gone.end() && *next++;
  now = Remove(gone_there, &left.findings);
  for (report::Defect& defect : left.defects) {
    for (report::Member& member : defect.members) Renumber(now, &member.findings);
    std::erase_if(defect.members, [](const report::Member& member) { return member.findings.empty(); });
  }
  std::erase_if(left.defects, [](const report::Defect& defect) { return defect.members.empty(); });
  run = std::make_shared<const report::Run>(std::move(left));
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
  static const auto* const why = new std::string(WhyNot(AuditedDriver::Genuine));  // never destroyed
  return why->empty() ? nullptr : why->c_str();
}

bool GenuineDriverIsChosen() noexcept { return harness::IsGenuine(AuditedDriver::Chosen); }

const char* WhyNoDriver() noexcept {
  static const auto* const why = new std::string(WhyNot(AuditedDriver::Chosen));  // never destroyed
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
    finding.detail += (from.detail.empty() ? "" : "; ") + std::string(words::OtherCallOf(from.rule).is) + " " + from.other.call;
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

std::optional<words::Outcome> ReportedOutcome(AuditOutcome outcome) {
  switch (outcome) {
    case AuditOutcome::Clean:
      return words::Outcome::Clean;
    case AuditOutcome::Findings:
      return words::Outcome::Findings;
    case AuditOutcome::NotExercised:
      return words::Outcome::NotExercised;
    case AuditOutcome::Error:
      return words::Outcome::Error;
    case AuditOutcome::NoDevice:
    case AuditOutcome::NotRun:
      break;
  }
  return {};
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
  audit->run = std::make_shared<const report::Run>(std::move(run));
}

}  // namespace cuaudit::harness
