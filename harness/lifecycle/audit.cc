// SPDX-License-Identifier: MIT
// audit.cc: the public questions of cuaudit/lifecycle.h, and their answers as text.
#include <unistd.h>

#include <cstdlib>

#include "faults/driver/find_driver.h"
#include "harness/lifecycle/command_line.h"
#include "harness/lifecycle/lifecycle_cycles.h"
#include "harness/lifecycle/lifecycle_sweep.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool IsChosen(const Lifecycle& lifecycle, Audit* audit) {
  const std::string chosen = Variable("CUAUDIT_CASE");
  if (chosen.empty() || chosen == lifecycle.name()) return true;
  audit->lifecycle = lifecycle.name();
  audit->outcome = AuditOutcome::NotRun;
  audit->message = "not run: CUAUDIT_CASE is '" + chosen + "'";
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

void AddFinding(const Finding& finding, std::string* text) {
  *text += "  " + finding.rule;
  if (!finding.kind.empty()) *text += " of " + std::to_string(finding.count) + " " + finding.kind;
  if (finding.bytes != 0) *text += " (" + std::to_string(finding.bytes) + " bytes)";
  *text += ": " + finding.title + "\n";
  if (!finding.detail.empty()) *text += "    " + finding.detail + "\n";
  AddStack("acquired by", finding.acquired, finding.acquired_stack, text);
  AddStack("seen at", finding.where, finding.where_stack, text);
  for (std::size_t i = 0; i < finding.faults.size(); ++i) {
    AddStack(i == 0 ? "fault" : "then", finding.faults[i], i == 0 ? finding.fault_stack : std::vector<std::string>(), text);
  }
  if (finding.trials > 1) *text += "    in " + std::to_string(finding.trials) + " trials\n";
  if (!finding.replay.empty()) *text += "    replay " + finding.replay + "\n";
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
    case AuditOutcome::NotExercised:
      text += "not exercised: " + message;
      break;
    case AuditOutcome::Findings:
      text += std::to_string(findings.size()) + (findings.size() == 1 ? " finding" : " findings");
      break;
  }
  text += "\n";
  if (trials != 0) {
    text += "  " + std::to_string(calls) + " driver calls, " + std::to_string(trials) + " trials, " + std::to_string(fired) + " fired";
    for (const auto& [verdict, count] : verdicts) text += ", " + std::to_string(count) + " " + verdict;
    text += "\n";
  }
  for (const auto& [reason, count] : skipped) text += "  left out: " + std::to_string(count) + " " + reason + "\n";
  for (const auto& [reason, count] : pruned) text += "  pruned: " + std::to_string(count) + " " + reason + "\n";
  if (!drift.empty()) text += "  drifting: two fault-free runs differ: " + drift + "\n";
  for (const Finding& finding : findings) AddFinding(finding, &text);
  return text;
}

Audit Sweep(const Lifecycle& lifecycle, const SweepOptions& options) {
  Audit audit;
  if (!IsChosen(lifecycle, &audit)) return audit;
  harness::LifecycleSweep(lifecycle, options, &audit).Run(ChosenFaults());
  return audit;
}

Audit RunCycles(const Lifecycle& lifecycle, const CycleOptions& options) {
  Audit audit;
  if (IsChosen(lifecycle, &audit)) harness::CheckCycles(lifecycle, options, &audit);
  return audit;
}

void SetRunningTest(const std::string& name) { harness::SetTestFilter(name); }

const char* WhyNoDevice() noexcept {
  static char path[4096];
  if (!driver::FindGenuineDriver(nullptr, path, sizeof(path))) return "no genuine libcuda.so.1 on this machine";
  for (const char* const node : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"}) {
    if (access(node, F_OK) == 0) return nullptr;
  }
  return "no device node (/dev/nvidiactl, /dev/nvidia0 or /dev/dxg)";
}

}  // namespace cuaudit
