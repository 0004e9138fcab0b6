// SPDX-License-Identifier: MIT
// small_audits.h: audits of one case with one defect, as small as a comparison needs them; the same as bases, and what it says of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/compare/baseline.h"
#include "harness/compare/compare.h"
#include "harness/defect/defects.h"
#include "reports/audit.h"

namespace cuaudit::harness::small_audits {

struct Leak {
  std::string function = "open_device";
  std::string kind = "stream";
  std::vector<std::string> failing = {"cuEventCreate"};  // calls, made by `function`
  std::string caller = "main";
  std::string call = "cuStreamCreate";
};

inline report::Frame At(const std::string& function, int line) {
  return {"player", function, "src/player.c", line, static_cast<std::uint64_t>(line)};
}

inline void AddLeak(const Leak& leak, report::Run* run) {
  int line = 100;
  for (const std::string& call : leak.failing) {
    report::Finding finding;
    finding.rule = report::Rule::Leak;
    finding.title = "acquired and never released";
    finding.kind = leak.kind;
    finding.count = 1;
    finding.acquired = {leak.call, {At(leak.function, 10), At(leak.caller, 5)}};
    const std::string text = call + "#1=OUT_OF_MEMORY,refuse";
    finding.fault = report::Fault{call, 1, "refuse", "OUT_OF_MEMORY", text, {At(leak.function, ++line), At(leak.caller, 5)}};
    finding.fingerprint = "leak-" + std::to_string(run->findings.size());
    finding.reproduce = "cuaudit replay --fault " + text + " -- ./player";
    run->findings.push_back(std::move(finding));
    run->coverage->tried.push_back({call, "OUT_OF_MEMORY", "refuse", false, leak.function, 1});
  }
}

inline report::Run Sweep(const std::vector<Leak>& leaks, const std::vector<report::Tried>& tried = {}) {
  report::Run run = {.mode = report::Mode::Sweep, .coverage = report::Coverage()};
  for (const Leak& leak : leaks) AddLeak(leak, &run);
  run.coverage->tried.insert(run.coverage->tried.end(), tried.begin(), tried.end());
  run.outcome = run.findings.empty() ? report::Outcome::Clean : report::Outcome::Findings;
  FindDefects(&run);
  return run;
}

inline report::Audit AuditOf(std::vector<report::Run> runs, const std::string& name = "player") {
  report::Audit audit;
  report::Case& one = audit.cases.emplace_back();
  one.name = name;
  one.runs = std::move(runs);
  return audit;
}

// A replay of `fault`, which hit a call of `function`.
inline report::Run Replay(const std::vector<Leak>& leaks, const std::string& fault, const std::string& call, const std::string& function) {
  report::Run run = Sweep(leaks);
  run.mode = report::Mode::Replay;
  run.coverage.reset();
  run.faults = {{fault, false}};
  report::Sequence& sequence = run.sequence.emplace();
  sequence.places = {{call, At(function, 101)}, {"cuStreamCreate", At("main", 5)}};
  sequence.calls = {{0, "", 0}};
  sequence.trials.emplace_back().call = 0;
  return run;
}

// The fault of a Leak, tried without finding anything.
inline report::Tried Tried(const std::string& function, const std::string& call = "cuEventCreate") {
  return {call, "OUT_OF_MEMORY", "refuse", false, function, 1};
}

// Bases of a comparison.

using report::Audit;
using report::Change;

inline Base BaseOf(Audit audit) { return harness::BaseOf("base", std::move(audit)); }

// The same, as a baseline file has it.
inline Base FileOf(const Audit& audit) {
  Baseline known = *ParseBaseline(BaselineText(BaselineOf(audit)), "base.txt");
  return {"base.txt", std::move(known.defects), std::move(known.runs), {}};
}

inline std::vector<Change> ChangesOf(const Audit& audit) {
  std::vector<Change> changes;
  for (const report::Case& one : audit.cases) {
    for (const report::Run& run : one.runs) {
      for (const report::Defect& defect : run.defects) changes.push_back(defect.change);
    }
  }
  return changes;
}

// Why the only defect of `before` was not run; "fixed" when it is fixed.
inline std::string Fate(const Base& base, Audit head) {
  CompareWith(base, &head);
  if (head.comparison->gone.size() != 1) return std::to_string(head.comparison->gone.size()) + " are gone";
  const report::Gone& gone = head.comparison->gone[0];
  return gone.change == Change::Fixed ? "fixed" + gone.because : gone.because;
}

}  // namespace cuaudit::harness::small_audits
