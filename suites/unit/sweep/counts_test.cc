// SPDX-License-Identifier: MIT
#include "harness/cycle/counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::counts_test {
namespace {

using testing::ElementsAre;

TEST(Counts, ReadsIncreasingCounts) {
  EXPECT_THAT(*ParseCounts("1,10"), ElementsAre(1U, 10U));
  EXPECT_THAT(*ParseCounts("2,3,1000"), ElementsAre(2U, 3U, 1000U));
}

TEST(Counts, RefusesEverythingElse) {
  for (const char* const text : {"", "1", "1,", ",1", "10,1", "1,1", "0,10", "1,x", "1, 10", "-1,10", "1,99999999999999999999", "1;10"}) {
    const Result<std::vector<std::uint64_t>> counts = ParseCounts(text);
    ASSERT_FALSE(counts.ok()) << text;
    EXPECT_EQ(counts.status().exit(), Exit::Usage);
  }
}

TEST(Counts, FillsInEveryCountInEveryWord) {
  const std::vector<std::string> command = {"prog", "--cycles={n}", "{n}{n}", "{m}", "n"};
  EXPECT_TRUE(TakesCount(command));
  EXPECT_THAT(WithCount(command, 10), ElementsAre("prog", "--cycles=10", "1010", "{m}", "n"));
}

TEST(Counts, SeesThatACommandTakesNoCount) { EXPECT_FALSE(TakesCount(std::vector<std::string>{"prog", "{ n }", "{N}"})); }

}  // namespace
}  // namespace cuaudit::harness::counts_test
