// SPDX-License-Identifier: MIT
// Programs that use an object after its foundation was destroyed, and their twins that use it before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "suites/support/tool.h"

namespace cuaudit::e2e::standing_test {
namespace {

struct Standing {
  const char* mode;
  const char* findings;
};

void PrintTo(const Standing& standing, std::ostream* out) { *out << standing.mode; }

class StandingOn : public ::testing::TestWithParam<Standing> {};

TEST_P(StandingOn, WhatIsGoneIsAFinding) {
  const Audit audit = RunAudit({"run"}, {Program("standing"), GetParam().mode});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), GetParam().findings);
}

TEST_P(StandingOn, WhatIsThereIsSilence) {
  const Audit audit = RunAudit({"run"}, {Program("standing"), GetParam().mode, "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Every, StandingOn,
                         ::testing::Values(Standing{"texture", "destroyed_under_user array 1"},
                                           Standing{"surface", "destroyed_under_user array 1"},
                                           Standing{"level", "destroyed_under_user mipmapped_array 1"},
                                           Standing{"node", "destroyed_in_use module 1"},  // the simulated driver's proof
                                           Standing{"function", "destroyed_under_user module 1"}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(Standing, TextSaysWhoDestroyedIt) {
  const Outcome text = RunCommand({Tool(), "run", "--driver=sim", "--", Program("standing"), "texture"});
  EXPECT_THAT(text.out, ::testing::HasSubstr("destroyed by cuArrayDestroy"));
}

}  // namespace
}  // namespace cuaudit::e2e::standing_test
