// SPDX-License-Identifier: MIT
// Declarations that do not hold: what is declared benign is not absorbed, or never hit.
#include "suites/support/cases/case.h"
#include "suites/support/cases/declared.h"

namespace cuaudit::testing::benign_test {
namespace {

using ::testing::SizeIs;

CUAUDIT_CASE(BenignFailed, TheProgramFailsAllTheSame) {
  const harness::TrialResult trial = Declared("cuMemPoolCreate", harness::Said::Failure);
  EXPECT_EQ(trial.verdict, harness::Verdict::Misreported);
  ASSERT_THAT(trial.findings, SizeIs(1));
  EXPECT_EQ(trial.findings[0].detail, "cuMemPoolCreate");
  EXPECT_EQ(trial.findings[0].where->call, "cuMemPoolCreate");
}

CUAUDIT_CASE(BenignFailed, DeclaredForTheFunctionThatCallsIt) {
  const harness::TrialResult trial = Declared("cuMemPoolCreate@make_pool", harness::Said::Failure);
  EXPECT_THAT(trial.findings, SizeIs(1));
}

CUAUDIT_CASE(BenignNeverFired, NoFaultHitTheDeclaredCall) {
  EXPECT_THAT(NeverHit({"cuMemPoolCreate", "cuMemAlloc"}, {"cuMemAlloc"}), SizeIs(1));
}

CUAUDIT_CASE(BenignNeverFired, ATrialThatMissedHitsNothing) {
  EXPECT_THAT(NeverHit({"cuMemPoolCreate"}, {"cuMemPoolCreate"}, false), SizeIs(1));
}

}  // namespace
}  // namespace cuaudit::testing::benign_test
