// SPDX-License-Identifier: MIT
// declared.h: trials of programs with an optional feature whose failure is declared benign (harness/sweep/findings/benign.h).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/sweep/findings/benign.h"
#include "suites/support/seen.h"

namespace cuaudit::testing {

inline std::vector<harness::Benign> Declarations(const std::vector<std::string>& texts) {
  std::vector<harness::Benign> declared;
  for (const std::string& text : texts) {
    const harness::Result<harness::Benign> one = harness::ParseBenign(text);
    EXPECT_TRUE(one.ok()) << text;
    if (one.ok()) declared.push_back(*one);
  }
  return declared;
}

// A trial in which cuMemPoolCreate, called by make_pool, was refused. The program ended with `said` and lost nothing.
inline harness::TrialResult Declared(const std::string& declaration, harness::Said said) {
  harness::TrialResult trial;
  trial.fired = true;
  trial.said = said;
  trial.faults = {"cuMemPoolCreate#1=OUT_OF_MEMORY,refuse"};
  trial.verdict = said == harness::Said::Success ? harness::Verdict::Absorbed : harness::Verdict::Pass;
  report::Frame frame;
  frame.function = "make_pool";
  trial.fault_site = {"cuMemPoolCreate", {frame}};
  harness::ApplyBenign(Declarations({declaration}), &trial);
  for (const harness::TrialFindingText& finding : trial.findings) Saw(Name(finding.rule), driver::Name(finding.kind));
  SawDefects(trial.findings.size());
  return trial;
}

// The declarations whose calls no trial made fail. There is one trial for each of `hit`; `fired` says whether its fault fired.
inline std::vector<harness::TrialFindingText> NeverHit(const std::vector<std::string>& declared, const std::vector<std::string>& hit,
                                                       bool fired = true) {
  std::map<std::size_t, harness::TrialResult> results;
  for (const std::string& text : hit) {
    harness::TrialResult trial;
    trial.fired = fired;
    const auto at = std::find(declared.begin(), declared.end(), text);
    if (at != declared.end()) trial.benign = {static_cast<std::size_t>(at - declared.begin())};
    results[results.size()] = trial;
  }
  std::vector<harness::TrialFindingText> never = harness::NeverFired(Declarations(declared), results);
  for (const harness::TrialFindingText& finding : never) Saw(Name(finding.rule), "none");
  SawDefects(never.size());
  return never;
}

}  // namespace cuaudit::testing
