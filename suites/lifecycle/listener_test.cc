// SPDX-License-Identifier: MIT
// listener_test.cc: somebody else's test program, each of whose tests fails when it leaves something behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace cuaudit::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  int status = -1;
  std::string output;
};

Ended RunSubject(const std::string& subject, const std::string& arguments) {
  Ended ended;
  // Neither this test's own filter nor its shard is the subject's.
  const std::string line = "unset GTEST_FILTER GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX GTEST_OUTPUT XML_OUTPUT_FILE; CUAUDIT_OPTIONS=driver=sim '" +
                           subject + "' " + arguments + " 2>&1";
  FILE* const pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return ended;
  char block[4096];
  for (std::size_t got = 0; (got = fread(block, 1, sizeof(block), pipe)) != 0;) ended.output.append(block, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  return ended;
}

TEST(NeutralityListener, ATestThatLeavesNothingPasses) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Leaves.Nothing");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("neutrality: 1 tests checked, 0 made no driver call"));
}

TEST(NeutralityListener, ATestThatLeavesAStreamFails) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Leaves.AStream");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("Leaves.AStream: 1 finding"), HasSubstr("leak of 1 stream"), HasSubstr("listener_subject.cc:"),
                                  HasSubstr("--gtest_filter=Leaves.AStream")));
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
