// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/benign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/ledger/rules.h"

namespace cuaudit::harness::benign_test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const std::string kPool = "cuMemPoolCreate#1=OUT_OF_MEMORY,refuse";

PlaceText At(const std::string& call) {
  report::Acquired site;
  site.call = call;
  return PlaceText(site);
}

TrialFindingText Told(Rule rule, const std::string& call) {
  TrialFindingText text;
  text.rule = rule;
  text.where = At(call);
  return text;
}

// A pool that is declared benign fails, then another call; the caller was told of success.
TrialResult Swallowed() {
  TrialResult trial;
  trial.faults = {kPool, "cuStreamDestroy#1=INVALID_VALUE,refuse"};
  trial.fired = true;
  trial.verdict = Verdict::Misreported;
  trial.said = Said::Success;
  trial.fault_site = At("cuMemPoolCreate");
  trial.later_sites = {At("cuStreamDestroy")};
  trial.findings = {Told(Rule::Swallowed, "cuMemPoolCreate")};
  return trial;
}

std::vector<Benign> Declared() { return {*ParseBenign("cuMemPoolCreate")}; }

TEST(Benign, OfAFindingThatIsDeclaredTheNotesAreLeft) {
  for (const Rule rule : {Rule::ReleaseRefused, Rule::RetainedForRetry, Rule::AbandonedAtExit}) {
    TrialResult trial = Swallowed();
    trial.notes = {Told(Rule::ProcessLifetime, "cuStreamCreate"), Told(rule, "cuStreamCreate")};
    ApplyBenign(Declared(), &trial);
    EXPECT_THAT(trial.findings, IsEmpty());
    EXPECT_EQ(trial.verdict, *VerdictOf(rule));
  }
  TrialResult trial = Swallowed();
  ApplyBenign(Declared(), &trial);
  EXPECT_EQ(trial.verdict, Verdict::Absorbed);
  trial = Swallowed();
  trial.said = Said::Failure;
  ApplyBenign(Declared(), &trial);
  EXPECT_EQ(trial.verdict, Verdict::Pass);
}

TEST(Benign, WhatIsNotDeclaredStays) {
  TrialResult trial = Swallowed();
  trial.findings[0].where = At("cuStreamDestroy");
  ApplyBenign(Declared(), &trial);
  EXPECT_THAT(trial.findings, SizeIs(1));
  EXPECT_EQ(trial.verdict, Verdict::Misreported);
}

TEST(Benign, ADeclaredFaultAloneIsAbsorbedOrNot) {
  TrialResult trial = Swallowed();
  trial.faults.pop_back();
  trial.later_sites.clear();
  ApplyBenign(Declared(), &trial);
  EXPECT_EQ(trial.verdict, Verdict::Benign);
  trial = Swallowed();
  trial.faults.pop_back();
  trial.later_sites.clear();
  trial.findings.clear();
  trial.said = Said::Failure;
  ApplyBenign(Declared(), &trial);
  ASSERT_THAT(trial.findings, SizeIs(1));
  EXPECT_EQ(trial.findings[0].rule, Rule::BenignFailed);
  EXPECT_EQ(trial.verdict, Verdict::Misreported);
}

TEST(Benign, ADeclarationThatNoFaultHitIsAFinding) {
  TrialResult trial = Swallowed();
  std::map<std::size_t, TrialResult> results = {{0, trial}};
  EXPECT_THAT(NeverFired(Declared(), results), SizeIs(1));
  ApplyBenign(Declared(), &trial);
  results[0] = trial;
  EXPECT_THAT(NeverFired(Declared(), results), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::harness::benign_test
