// SPDX-License-Identifier: MIT
#include "harness/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::progress_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Progress, KeepsItsWidthFromStartToEnd) {
  const std::string start = ProgressBar(0, 128);
  for (const std::size_t done : {1U, 9U, 10U, 99U, 100U, 128U}) EXPECT_EQ(ProgressBar(done, 128).size(), start.size()) << done;
}

TEST(Progress, IsFullOnlyAtTheEnd) {
  EXPECT_THAT(ProgressBar(0, 8), Not(HasSubstr("#")));
  EXPECT_THAT(ProgressBar(7, 8), HasSubstr("# "));
  EXPECT_THAT(ProgressBar(8, 8), HasSubstr("#] 8/8"));
}

TEST(Progress, SurvivesNothingToDo) { EXPECT_THAT(ProgressBar(0, 0), HasSubstr("0/0")); }

}  // namespace
}  // namespace cuaudit::harness::progress_test
