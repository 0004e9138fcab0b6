// SPDX-License-Identifier: MIT
// small_audits.h: audits of one case with one defect, as small as a comparison needs them.
#pragma once

#include <string>
#include <utility>
#include <vector>

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
  report::Run run;
  run.mode = report::Mode::Sweep;
  run.coverage = report::Coverage();
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

// The fault of a Leak, tried without finding anything.
inline report::Tried Tried(const std::string& function, const std::string& call = "cuEventCreate") {
  return {call, "OUT_OF_MEMORY", "refuse", false, function, 1};
}

}  // namespace cuaudit::harness::small_audits
