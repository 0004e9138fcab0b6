// SPDX-License-Identifier: MIT
#include "suites/contract/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>

namespace cuaudit::contract {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

constexpr Difference kCrash[] = {{"stream.garbage", "INVALID_HANDLE", "an error instead of a crash"}};

TEST(Comparison, EqualAnswersAreAsExpected) { EXPECT_THAT(Compare({{"a", "SUCCESS"}}, {{"a", "SUCCESS"}}, {}, true), IsEmpty()); }

TEST(Comparison, ANewDifferenceIsBroken) {
  EXPECT_THAT(Compare({{"a", "INVALID_VALUE"}}, {{"a", "SUCCESS"}}, {}, true), ElementsAre("a: expected SUCCESS, answered INVALID_VALUE"));
}

TEST(Comparison, AnAcceptedDifferenceIsAsExpected) {
  EXPECT_THAT(Compare({{"stream.garbage", "INVALID_HANDLE"}}, {{"stream.garbage", "crash"}}, kCrash, true), IsEmpty());
}

TEST(Comparison, EvidenceIsWhatWasRecorded) {
  const auto compare = [](Evidence evidence, const char* recorded) {
    const Difference row[] = {{"a", "INVALID_HANDLE", "why", evidence}};
    return Compare({{"a", "INVALID_HANDLE"}}, {{"a", recorded}}, row, true);
  };
  EXPECT_THAT(compare(Evidence::Crashes, "SUCCESS crash"), IsEmpty());
  EXPECT_THAT(compare(Evidence::Steady, "SUCCESS"), IsEmpty());
  for (const char* const recorded : {"SUCCESS", "crash"}) EXPECT_THAT(compare(Evidence::Varies, recorded), IsEmpty());
  EXPECT_THAT(compare(Evidence::Crashes, "SUCCESS"), ElementsAre("a: the evidence is not what was recorded, SUCCESS"));
  EXPECT_THAT(compare(Evidence::Steady, "crash"), ElementsAre("a: the evidence is not what was recorded, crash"));
}

TEST(Comparison, ADriverThatCrashesHasNoCrashToBeForgiven) {
  const auto crashes = [](const Difference& row) { return row.evidence == Evidence::Crashes; };
  const std::vector<Difference> errors = AcceptedDifferences(false), dead = AcceptedDifferences(true);
  EXPECT_EQ(std::count_if(dead.begin(), dead.end(), crashes), 0);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(errors.size() - dead.size()), std::count_if(errors.begin(), errors.end(), crashes));
  EXPECT_GT(errors.size(), dead.size());
  EXPECT_FALSE(dead.empty());
}

TEST(Comparison, AnAcceptedDifferenceThatIsGoneIsBroken) {
  EXPECT_THAT(Compare({{"stream.garbage", "INVALID_HANDLE"}}, {{"stream.garbage", "INVALID_HANDLE"}}, kCrash, true),
              ElementsAre("stream.garbage: listed as a difference, but both answers are INVALID_HANDLE"));
}

TEST(Comparison, AnAcceptedDifferenceThatChangedIsBroken) {
  EXPECT_THAT(Compare({{"stream.garbage", "SUCCESS"}}, {{"stream.garbage", "crash"}}, kCrash, true),
              ElementsAre("stream.garbage: expected INVALID_HANDLE, answered SUCCESS"));
}

TEST(Comparison, RowsAndRecordsOfNoQuestionAreBroken) {
  EXPECT_THAT(Compare({{"a", "SUCCESS"}}, {{"a", "SUCCESS"}, {"b", "SUCCESS"}}, kCrash, true),
              ElementsAre(StartsWith("b: "), StartsWith("stream.garbage: ")));
}

TEST(Comparison, WhatWasNotRecordedIsNotCompared) { EXPECT_THAT(Compare({{"a", "SUCCESS"}}, {{"b", "SUCCESS"}}, {}, false), IsEmpty()); }

class Recorded : public testing::Test {
 protected:
  ~Recorded() override { std::remove(path_.c_str()); }
  std::optional<Answers> Read(const char* text) {
    std::ofstream(path_) << text;
    return ReadAnswers(path_);
  }
  const std::string path_ = testing::TempDir() + "cuaudit_recorded.tsv";
};

TEST_F(Recorded, CommentsAreSkipped) {
  const std::optional<Answers> answers = Read("# date: today\na\tSUCCESS 1\n");
  ASSERT_TRUE(answers.has_value());
  EXPECT_EQ(*answers, (Answers{{"a", "SUCCESS 1"}}));
}

TEST_F(Recorded, ANameTwiceIsRefused) { EXPECT_FALSE(Read("a\tSUCCESS\na\tINVALID_VALUE\n").has_value()); }
TEST_F(Recorded, ALineWithoutAnAnswerIsRefused) { EXPECT_FALSE(Read("a\n").has_value()); }
TEST_F(Recorded, AnEmptyFileIsRefused) { EXPECT_FALSE(Read("# nothing\n").has_value()); }

}  // namespace
}  // namespace cuaudit::contract
