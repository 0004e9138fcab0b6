// SPDX-License-Identifier: MIT
// prune_test.cc: defects that hang on data which is in no call stack and in no ledger, and what is said of faults that were not tried.
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>

#include <string>

namespace cuaudit::testing::prune_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// An event and a stream, twice from one line. Where the second turn is careless its error path loses the event.
[[gnu::noinline]] CUresult Turn(DriverRef driver, bool careless) {
  CUevent event = nullptr;
  CUstream stream = nullptr;
  CUresult code = driver.EventCreate(&event, 0);
  if (code != CUDA_SUCCESS) return code;
  code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (code == CUDA_SUCCESS) code = driver.StreamDestroy(stream);
  if (code != CUDA_SUCCESS && careless) return code;
  const CUresult back = driver.EventDestroy(event);
  return code == CUDA_SUCCESS ? back : code;
}

Lifecycle TwoTurns(bool careless) {
  return Lifecycle("two_turns").WithCurrentContext().Init([careless](DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    volatile int turns = 2;
    for (int i = 0; i < turns && code == CUDA_SUCCESS; ++i) code = Turn(driver, careless && i == 1);
    return code;
  });
}

TEST(Prune, FirstFaultsInEqualStatesAreAllTried) {
  const Audit audit = Sweep(TwoTurns(true), {.depth = 1});
  EXPECT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text();
  EXPECT_EQ(audit.trials, audit.calls);
  EXPECT_THAT(audit.pruned, IsEmpty());
  const Audit careful = Sweep(TwoTurns(false), {.depth = 1});
  EXPECT_EQ(careful.outcome, AuditOutcome::Clean) << careful.Text();
  EXPECT_THAT(careful.message, Not(HasSubstr("pruned")));
}

TEST(Prune, WhatIsPrunedIsSaid) {
  const Audit audit = Sweep(TwoTurns(true), {.depth = 1, .prune = Prune::All});
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_LT(audit.trials, audit.calls);
  EXPECT_THAT(audit.message, HasSubstr("4 pruned as equal (SweepOptions::prune = Prune::None tries them)"));
  EXPECT_THAT(audit.Text(), HasSubstr("pruned as equal"));
}

}  // namespace
}  // namespace cuaudit::testing::prune_test
