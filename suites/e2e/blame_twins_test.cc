// SPDX-License-Identifier: MIT
// The repaired twins of the programs in blame_test.cc: silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "suites/e2e/blame_rows.h"

namespace cuaudit::e2e::blame_twins_test {
namespace {

using blame::Row;
using ::testing::IsEmpty;

class BlameTwins : public ::testing::TestWithParam<Row> {};

TEST_P(BlameTwins, AreSilent) {
  for (const int level : {0, 3}) {
    const Audit audit = blame::SweepRow(GetParam(), level, "right");
    EXPECT_EQ(audit.outcome.exit, 0) << "-O" << level << ": " << audit.outcome.err;
    EXPECT_EQ(audit.findings(), "") << "-O" << level;
    EXPECT_THAT(audit.report["defects"], IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Every, BlameTwins, ::testing::ValuesIn(blame::kRows),
                         [](const auto& test) { return std::string(test.param.program) + "_" + test.param.name; });

}  // namespace
}  // namespace cuaudit::e2e::blame_twins_test
