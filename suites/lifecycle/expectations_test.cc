// SPDX-License-Identifier: MIT
// expectations_test.cc: what a person sees when EXPECT_UNWINDS_CLEANLY or EXPECT_ALLOCATION_NEUTRAL fails, and that its replay line works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "suites/lifecycle/subject.h"

namespace cuaudit::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> LinesWith(const std::string& output, const std::string& word) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string line = output.substr(at, end - at);
    if (line.find(word) != std::string::npos) lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

TEST(Expectation, ShowsBothStacksAndAReplayLine) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Sizes/Pool.*/0");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("replay_subject.cc:"), HasSubstr("leak of 1 stream"), HasSubstr("acquired by cuStreamCreate"),
                    HasSubstr("fault cuEventCreate#1=OUT_OF_MEMORY,refuse"),
                    ContainsRegex("Init(\\(.*\\))? replay_subject.cc:")));  // with its parameters where only lines are described

  EXPECT_THAT(LinesWith(ended.output, "    replay "), SizeIs(2));
}

TEST(Expectation, TheReplayLineRunsThatTrialOnly) {
  const Ended first = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Sizes/Pool.*/1 --gtest_color=no");
  const std::vector<std::string> replays = LinesWith(first.output, "    replay ");
  ASSERT_THAT(replays, SizeIs(2)) << first.output;
  const std::string line = replays.front().substr(replays.front().find("replay ") + 7);
  EXPECT_THAT(line, HasSubstr("--gtest_filter=Sizes/Pool.UnwindsCleanly/1"));
  const Ended again = RunLine(line);
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr("1 trials, 1 fired, 1 leak"), HasSubstr("acquired by cuStreamCreate"),
                                  HasSubstr("[==========] 1 test from 1 test suite ran")));
  EXPECT_THAT(LinesWith(again.output, "another: "), Each(HasSubstr("another: not run: CUAUDIT_CASE is")));
}

TEST(Expectation, AReplayThatFiresNothingFails) {
  const Ended ended = RunLine("CUAUDIT_CASE=another CUAUDIT_FAULT='cuEventCreate#9=OUT_OF_MEMORY,refuse' '" + std::string(CUAUDIT_SUBJECT) +
                              "' --gtest_filter=Sizes/Pool.*/0");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("another: not exercised: 1 of 1 planned faults did not fire"));
}

TEST(Expectation, ACaseThatNobodyHasIsASkipAndNoPass) {
  const Ended ended = RunLine("CUAUDIT_CASE=nobodys '" + std::string(CUAUDIT_SUBJECT) + "' --gtest_color=no --gtest_filter=-Device.*");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("not run: CUAUDIT_CASE is 'nobodys'"), HasSubstr("[  PASSED  ] 0 tests."),
                                  HasSubstr("[  SKIPPED ] 3 tests")));
}

TEST(Expectation, ABadFaultIsOneClearLine) {
  const Ended ended =
      RunLine("CUAUDIT_FAULT='cuEventMake#1=OUT_OF_MEMORY' '" + std::string(CUAUDIT_SUBJECT) + "' --gtest_filter=Sizes/Pool.*/0");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("fault 'cuEventMake#1=OUT_OF_MEMORY': column 1: expected a driver entry point"));
}

TEST(Expectation, GrowthIsShownCycleByCycle) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Neutral.Grows");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("growth of 4 stream"), HasSubstr("alive after each cycle: 1 2 3 4 5")));
}

TEST(Expectation, ShardsAreGoogleTestsOwn) {
  std::size_t tests = 0;
  for (const char* const shard : {"0", "1"}) {
    const Ended ended =
        RunLine("GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=" + std::string(shard) + " '" CUAUDIT_SUBJECT "' --gtest_filter=-Device.*");
    tests += LinesWith(ended.output, "[ RUN      ]").size();
  }
  EXPECT_EQ(tests, 3U);
}

}  // namespace
}  // namespace cuaudit::testing
