// SPDX-License-Identifier: MIT
// A library that changes a setting of its application and puts it back (settings.c): silent under every way to fail and in cycles. Its
// wrong twins leave the setting on their way back from a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::settings_test {
namespace {

using ::testing::HasSubstr;

struct Story {
  const char* name;
  const char* change;
  const char* rule = "setting_not_restored";
};

class Left : public ::testing::TestWithParam<Story> {};

// Two trials show it: without memory, and without the work in it.
TEST_P(Left, OnTheWayBackFromAFailure) {
  for (const char* const isolation : {"fork", "spawn", "cycle"}) {
    const Audit audit = RunAudit({"sweep", "--isolation", isolation}, {Program("settings"), std::string(GetParam().name) + "_left", "2"});
    EXPECT_EQ(audit.outcome.exit, 1) << isolation << ": " << audit.outcome.err;
    ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
    ASSERT_EQ(audit.report["defects"].size(), 1U) << isolation << ": " << audit.findings();
    const nlohmann::json& defect = audit.report["defects"][0];
    EXPECT_EQ(defect["rule"], GetParam().rule);
    for (const nlohmann::json& finding : audit.report["findings"]) {
      EXPECT_THAT(finding["where"].get<std::string>(), HasSubstr(GetParam().change)) << isolation;
    }
  }
}

TEST_P(Left, NotByTheRepairedProgram) {
  for (const std::string how : {"refuse", "after", "persist", "burst"}) {
    const Audit audit = RunAudit({"sweep", "--how", how}, {Program("settings"), GetParam().name, "2"});
    EXPECT_EQ(audit.outcome.exit, 0) << how << ": " << audit.findings() << audit.outcome.err;
  }
}

// Nothing fails there, and nothing is left.
TEST_P(Left, NotInCycles) {
  for (const std::string twin : {"", "_left"}) {
    const Audit audit = RunAudit({"cycles"}, {Program("settings"), GetParam().name + twin, "{n}"});
    EXPECT_EQ(audit.outcome.exit, 0) << twin << ": " << audit.findings() << audit.outcome.err;
    EXPECT_EQ(audit.result(), "clean");
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Left,
                         ::testing::Values(Story{"limit", "cuCtxSetLimit"}, Story{"threshold", "cuMemPoolSetAttribute"},
                                           Story{"mode", "cuThreadExchangeStreamCaptureMode"},
                                           Story{"context", "cuCtxSetCurrent", "context_not_restored"}),
                         [](const auto& test) { return std::string(test.param.name); });

// The large way of working fails in every cycle, so no run shows that the threshold is put back. What the pool keeps then does not grow:
// the meter of device memory has its ten cycles behind the two to warm up.
TEST(FullDevice, LosesTheSettingInEachCycleAndNothingGrows) {
  for (const char* const story : {"full", "full_left"}) {
    const Audit cycles = RunAudit({"cycles", "--n", "1,12"}, {Program("settings"), story, "{n}"});
    EXPECT_EQ(cycles.outcome.exit, 0) << story << ": " << cycles.findings() << cycles.outcome.err;
    EXPECT_EQ(cycles.result(), "clean");
    EXPECT_EQ(cycles.report["notes"], nlohmann::json::array()) << story;
    const Audit sweep = RunAudit({"sweep"}, {Program("settings"), story, "2"});
    EXPECT_EQ(sweep.outcome.exit, 0) << story << ": " << sweep.findings() << sweep.outcome.err;
  }
}

}  // namespace
}  // namespace cuaudit::e2e::settings_test
