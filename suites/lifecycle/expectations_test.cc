// SPDX-License-Identifier: MIT
// expectations_test.cc: what a person sees when EXPECT_UNWINDS_CLEANLY or EXPECT_ALLOCATION_NEUTRAL fails, and that its replay line works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "suites/lifecycle/subject.h"

namespace cuaudit::testing::expectations_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::Not;
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

// The call stacks that stand under lines with that word, innermost frame first.
std::vector<std::vector<std::string>> StacksUnder(const std::string& output, const std::string& word) {
  std::vector<std::vector<std::string>> stacks;
  bool inside = false;
  for (const std::string& line : LinesWith(output, "")) {
    const bool frame = line.starts_with("       ");
    if (frame && inside) stacks.back().push_back(line.substr(7));
    if (!frame) inside = line.find(word) != std::string::npos;
    if (!frame && inside) stacks.emplace_back();
  }
  return stacks;
}

// A frame of the program itself, in a function of that name, with its parameters where only lines are described.
Matcher<std::string> FrameOf(const std::string& function) {
  return ContainsRegex(function + "(\\(.*\\))?( const)? ([^ ]*/)?replay_subject.cc:[0-9]+$");
}

TEST(Expectation, ShowsBothStacksAndAReplayLine) {
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Sizes/Pool.*/0");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(LinesWith(ended.output, "leak: 1 stream"), SizeIs(2));
  const auto acquired = StacksUnder(ended.output, "     acquired by cuStreamCreate");
  const auto fault = StacksUnder(ended.output, "     lost when cuEventCreate#1=OUT_OF_MEMORY,refuse failed");
  ASSERT_THAT(acquired, SizeIs(2)) << ended.output;
  ASSERT_THAT(fault, SizeIs(2)) << ended.output;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_THAT(acquired[i], ElementsAre(FrameOf("Init"))) << ended.output;
    ASSERT_THAT(fault[i], ElementsAre(FrameOf("Init"))) << ended.output;
    EXPECT_NE(acquired[i], fault[i]) << "each has the line of its own call";
  }
  EXPECT_THAT(LinesWith(ended.output, "     reproduce "),
              AllOf(SizeIs(2), Each(HasSubstr("CUAUDIT_FAULT='cuEventCreate#1=OUT_OF_MEMORY,refuse' "))));
}

class Compiled : public ::testing::TestWithParam<const char*> {};

TEST_P(Compiled, StacksShowFramesOfTheProgramOnly) {
  const Ended leaks = RunSubject(GetParam(), "--gtest_filter=Sizes/Pool.*/0");
  const auto acquired = StacksUnder(leaks.output, "     acquired by cuStreamCreate");
  const auto fault = StacksUnder(leaks.output, "     lost when cuEventCreate#1=OUT_OF_MEMORY,refuse failed");
  EXPECT_THAT(acquired, AllOf(SizeIs(2), Each(ElementsAre(FrameOf("Init"))))) << leaks.output;
  EXPECT_THAT(fault, AllOf(SizeIs(2), Each(ElementsAre(FrameOf("Init"))))) << leaks.output;
  const Ended grows = RunSubject(GetParam(), "--gtest_filter=Neutral.Grows");
  EXPECT_THAT(StacksUnder(grows.output, "     acquired by cuStreamCreate"),
              ElementsAre(ElementsAre(FrameOf("(Neutral_Grows_Test.*)?operator\\(\\)"))))
      << grows.output;
}

INSTANTIATE_TEST_SUITE_P(At, Compiled, ::testing::Values(CUAUDIT_COMPILED), [](const auto& test) {
  return "level_" + std::string(test.param).substr(std::string(test.param).rfind('_') + 1);
});

TEST(Expectation, TheReplayLineRunsThatTrialOnly) {
  const Ended first = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Sizes/Pool.*/1 --gtest_color=no");
  const std::vector<std::string> replays = LinesWith(first.output, "     reproduce ");
  ASSERT_THAT(replays, SizeIs(2)) << first.output;
  const std::string line = replays.front().substr(replays.front().find("reproduce ") + 10);
  EXPECT_THAT(line, HasSubstr("--gtest_filter=Sizes/Pool.UnwindsCleanly/1"));
  const Ended again = RunLine(line);
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr("1 trial, 1 fired\n  verdicts 1 leak\n"), HasSubstr("acquired by cuStreamCreate"),
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
  EXPECT_THAT(ended.output, AllOf(HasSubstr("growth: 4 stream"), HasSubstr("alive after each cycle: 1 2 3 4 5")));
  EXPECT_THAT(StacksUnder(ended.output, "     acquired by cuStreamCreate"),
              ElementsAre(ElementsAre(FrameOf("(Neutral_Grows_Test.*)?operator\\(\\)")  // bare where the compiler inlined it
                                      )))
      << ended.output;
  const std::vector<std::string> replays = LinesWith(ended.output, "     reproduce ");
  ASSERT_THAT(replays, SizeIs(1)) << ended.output;
  const std::string line = replays.front().substr(replays.front().find("reproduce ") + 10);
  EXPECT_THAT(line, AllOf(HasSubstr("CUAUDIT_CASE=grows "), HasSubstr("--gtest_filter=Neutral.Grows"), Not(HasSubstr("CUAUDIT_FAULT"))));
  const Ended again = RunLine(line);
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_THAT(again.output, HasSubstr("growth: 4 stream"));
}

TEST(Expectation, WithoutADeviceATestThatNeedsOneIsSkippedWithTheReason) {
  for (const char* const node : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"}) {
    if (std::filesystem::exists(node)) GTEST_SKIP() << node << " is here";
  }
  const Ended ended = RunSubject(CUAUDIT_SUBJECT, "--gtest_filter=Device.IsNeeded --gtest_color=no");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(ContainsRegex("replay_subject.cc:[0-9]+: Skipped\nno (device node|genuine libcuda.so.1)"),
                                  HasSubstr("[  SKIPPED ] Device.IsNeeded"), HasSubstr("[  PASSED  ] 0 tests."),
                                  HasSubstr("[  SKIPPED ] 1 test, listed below:"), Not(HasSubstr("[       OK ]"))));
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
}  // namespace cuaudit::testing::expectations_test
