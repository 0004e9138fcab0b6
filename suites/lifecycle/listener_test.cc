// SPDX-License-Identifier: MIT
// listener_test.cc: somebody else's test program, each of whose tests fails when it leaves something behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/lifecycle/subject.h"

namespace cuaudit::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(NeutralityListener, ATestThatLeavesNothingPasses) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Leaves.Nothing");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("neutrality: 1 tests checked, 0 made no driver call"));
}

TEST(NeutralityListener, ATestThatLeavesAStreamFails) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Leaves.AStream");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("Leaves.AStream: 1 finding"), HasSubstr("leak of 1 stream"), HasSubstr("listener_subject.cc:"),
                                  HasSubstr("--gtest_filter=Leaves.AStream"), HasSubstr("driver: simulated\n")));
}

TEST(NeutralityListener, MisuseIsFoundToo) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Leaves.NothingButReleasesTwice");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("double_release of 1 event"));
}

TEST(NeutralityListener, WhatTheSuiteLeavesIsNoTestsFault) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=SuiteLeaves.*");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("[       OK ] SuiteLeaves.NothingInItsTest"), HasSubstr("SuiteLeaves: 1 finding")));
}

TEST(NeutralityListener, NothingCheckedIsNoPass) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=WithoutDriver.*");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("neutrality of no test was checked"));
}

TEST(NeutralityListener, ACacheFailsOnlyWithoutWarmUp) {
  const Ended cold = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Keeps.AContextTheFirstTime --gtest_repeat=2");
  EXPECT_EQ(cold.status, 1) << cold.output;
  const Ended warm = RunSubject(CUAUDIT_WARM_SUBJECT, "--gtest_filter=Keeps.AContextTheFirstTime --gtest_repeat=2");
  EXPECT_EQ(warm.status, 0) << warm.output;
  const Ended leak = RunSubject(CUAUDIT_WARM_SUBJECT, "--gtest_filter=Leaves.AStream --gtest_repeat=2");
  EXPECT_EQ(leak.status, 1) << leak.output;
}

TEST(NeutralityListener, ToleratedKindsPass) {
  const Ended ended = RunSubject(CUAUDIT_WARM_SUBJECT, "--gtest_filter=SuiteLeaves.* --gtest_repeat=2");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, Not(HasSubstr("finding")));
}

}  // namespace
}  // namespace cuaudit::testing
