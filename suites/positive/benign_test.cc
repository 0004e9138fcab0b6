// SPDX-License-Identifier: MIT
// Declarations that hold: an optional feature is lost, and the program goes on without it.
#include "suites/support/cases/case.h"
#include "suites/support/cases/declared.h"

namespace cuaudit::testing::benign_test {
namespace {

using ::testing::IsEmpty;

CUAUDIT_CASE(BenignFailed, AnOptionalFeatureIsLeftOut) {
  for (const char* const declaration : {"cuMemPoolCreate", "cuMemPoolCreate@make_pool"}) {
    const harness::TrialResult trial = Declared(declaration, harness::Said::Success);
    EXPECT_EQ(trial.verdict, harness::Verdict::Benign);
    EXPECT_THAT(trial.findings, IsEmpty());
  }
}

CUAUDIT_CASE(BenignFailed, AFailureAtACallThatIsNotDeclared) {
  const harness::TrialResult trial = Declared("cuMemPoolCreate@somewhere_else", harness::Said::Failure);
  EXPECT_EQ(trial.verdict, harness::Verdict::Pass);
  EXPECT_THAT(trial.findings, IsEmpty());
}

CUAUDIT_CASE(BenignNeverFired, EveryDeclarationWasHit) {
  EXPECT_THAT(NeverHit({"cuMemPoolCreate", "cuMemAlloc"}, {"cuMemAlloc", "cuMemPoolCreate"}), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::benign_test
