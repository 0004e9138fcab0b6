// SPDX-License-Identifier: MIT
// benign_test.cc: a benign declaration excuses the call that it names, and nothing else.
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cuaudit/lifecycle.h"
#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::benign_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::StartsWith;

// The first event is optional; the second one is not.
TEST(Swallowed, OneOptionalCallExcusesNoOther) {
  CUevent event[2] = {};
  const auto lifecycle = Lifecycle("two_events")
                             .WithCurrentContext()
                             .Init([&](DriverRef driver) {
                               for (CUevent& one : event) {
                                 if (driver.EventCreate(&one, 0) != CUDA_SUCCESS) one = nullptr;
                               }
                               return CUDA_SUCCESS;
                             })
                             .Teardown([&](DriverRef driver) {
                               for (CUevent& one : event) {
                                 if (one != nullptr && driver.EventDestroy(one) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
                               }
                               return CUDA_SUCCESS;
                             })
                             .AnyCode()
                             .Benign("cuEventCreate#1");
  const Audit audit = Sweep(lifecycle, {.calls = {"cuEventCreate"}});
  EXPECT_THAT(Texts(audit), ElementsAre("swallowed after cuEventCreate#2=OUT_OF_MEMORY,refuse")) << audit.Text();
}

// The stream is optional, an event stands in for it, and nobody hears that the event could not be destroyed.
TEST(Swallowed, AReleaseAfterABenignFault) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  const auto lifecycle = Lifecycle("falls_back")
                             .WithCurrentContext()
                             .Init([&](DriverRef driver) {
                               stream = nullptr;
                               event = nullptr;
                               if (driver.StreamCreate(&stream, 0) == CUDA_SUCCESS) return CUDA_SUCCESS;
                               stream = nullptr;
                               return driver.EventCreate(&event, 0);
                             })
                             .Teardown([&](DriverRef driver) {
                               if (event != nullptr) (void)driver.EventDestroy(event);
                               return stream == nullptr ? CUDA_SUCCESS : driver.StreamDestroy(stream);
                             })
                             .Benign("cuStreamCreate");
  const Audit audit = Replay(lifecycle, {"cuStreamCreate#1=OUT_OF_MEMORY,refuse", "cuEventDestroy#1=INVALID_CONTEXT,refuse"});
  EXPECT_THAT(Texts(audit), Contains(StartsWith("swallowed after cuStreamCreate#1"))) << audit.Text();
}

}  // namespace
}  // namespace cuaudit::testing::benign_test

// Defects that hang on data which is in no call stack and in no ledger, and what is said of faults that were not tried.
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
