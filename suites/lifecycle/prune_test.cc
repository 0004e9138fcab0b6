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

// Forty turns of a stream, three events and work; one place gives all back. On the way back the events are lost when the stream's release
// is refused and, with `late`, the turn is one of the last twenty.
Lifecycle ManyTurns(bool careless, bool late) {
  struct Held {
    CUstream stream = nullptr;
    CUevent event[3] = {};
  };
  static Held held;
  return Lifecycle("many_turns").WithCurrentContext().Init([careless, late](DriverRef driver) {
    held = Held();
    CUresult code = driver.StreamCreate(&held.stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    for (CUevent& event : held.event) {
      if (code == CUDA_SUCCESS) code = driver.EventCreate(&event, 0);
    }
    volatile int turns = 40;
    int turn = 0;
    for (; turn < turns && code == CUDA_SUCCESS; ++turn) {
      code = driver.EventRecord(held.event[0], held.stream);
      if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(held.stream);
    }
    const bool failed = code != CUDA_SUCCESS;
    const CUresult back = held.stream == nullptr ? CUDA_SUCCESS : driver.StreamDestroy(held.stream);
    if (failed && back != CUDA_SUCCESS && careless && (!late || turn > 20)) return code;
    for (const CUevent event : held.event) {
      const CUresult one = event == nullptr ? CUDA_SUCCESS : driver.EventDestroy(event);
      if (code == CUDA_SUCCESS) code = one;
    }
    return code == CUDA_SUCCESS ? back : code;
  });
}

TEST(Prune, EqualUnwindingsStandForEachOther) {
  const Audit sound = Sweep(ManyTurns(false, false));
  EXPECT_EQ(sound.outcome, AuditOutcome::Clean) << sound.Text();
  EXPECT_THAT(sound.message, HasSubstr("pruned as equal"));
  EXPECT_THAT(sound.Text(), HasSubstr("same step of an unwinding"));
  const Audit all = Sweep(ManyTurns(true, false), {.prune = Prune::None});
  const Audit pruned = Sweep(ManyTurns(true, false));
  EXPECT_EQ(pruned.outcome, AuditOutcome::Findings) << pruned.Text();
  EXPECT_EQ(pruned.defects.size(), all.defects.size());
  EXPECT_LT(pruned.trials, all.trials / 2);
}

TEST(Prune, AnUnwindingThatOnlyLooksEqualIsNoticed) {
  const Audit sound = Sweep(ManyTurns(false, false));
  const Audit late = Sweep(ManyTurns(true, true));
  EXPECT_EQ(late.outcome, AuditOutcome::Findings) << late.Text();
  EXPECT_GT(late.trials, sound.trials);
}

}  // namespace
}  // namespace cuaudit::testing::prune_test
