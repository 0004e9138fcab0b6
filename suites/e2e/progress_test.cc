// SPDX-License-Identifier: MIT
// Programs that wait for the device without calling the driver, or that reset the context under their objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::progress_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Waiting : public ::testing::TestWithParam<const char*> {};

TEST_P(Waiting, GoesOnUnderEverySchedule) {
  for (const char* const schedule : {"lazy", "fifo", "random:3", "adversarial"}) {
    const Audit audit =
        RunAudit({"run", std::string("--schedule=") + schedule, "--deadline-ms", "20000"}, {Program("unattended"), GetParam()});
    EXPECT_EQ(audit.outcome.exit, 0) << schedule << ' ' << audit.findings() << audit.outcome.err;
    ASSERT_FALSE(audit.report.is_null());
    // Fifo runs a copy at once; nothing else here runs without somebody who steps in, but what chance or order brings.
    if (std::string(schedule) != "lazy") continue;
    EXPECT_EQ(audit.report["totals"]["forced_progress"], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Waiting, ::testing::Values("condition", "held", "callback", "graph", "flag"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Polling, EndsWhateverTheScheduleAndTheProgramAsks) {
  for (const char* const schedule : {"lazy", "fifo", "random:3", "adversarial"}) {
    const Audit audit = RunAudit({"run", std::string("--schedule=") + schedule}, {Program("unattended"), "polled"});
    EXPECT_EQ(audit.outcome.exit, 0) << schedule << ' ' << audit.findings() << audit.outcome.err;
    EXPECT_EQ(audit.report["driver"]["kernels"]["idle"], 2) << schedule;
  }
}

TEST(Polling, ForWhatAKernelWithoutAHostKernelWritesIsAHangWithItsReason) {
  const Audit audit = RunAudit({"run", "--schedule=fifo", "--deadline-ms", "2500"}, {Program("unattended"), "kernel"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_EQ(audit.report["findings"].size(), 1U) << audit.findings();
  const nlohmann::json& finding = audit.report["findings"][0];
  EXPECT_EQ(finding["rule"], "hang");
  EXPECT_THAT(finding["title"].get<std::string>(),
              HasSubstr("it may wait for a kernel that has no host kernel: register it with --kernels"));
  EXPECT_EQ(finding["where"], "(no driver call)") << "it polls";
  EXPECT_THAT(finding["detail"].get<std::string>(), HasSubstr("cuLaunchKernel"));
  EXPECT_EQ(audit.report["driver"]["kernels"]["idle"], 1);
  // Without such a kernel nothing is guessed.
  const Audit waits = RunAudit({"run", "--deadline-ms", "300"}, {Program("unattended"), "waits"});
  ASSERT_EQ(waits.report["findings"].size(), 1U) << waits.outcome.err;
  EXPECT_EQ(waits.report["findings"][0]["title"], "did not finish before its deadline");
}

TEST(Attended, NobodyStepsInWhereTheProgramWaits) {
  const Audit audit = RunAudit({"run"}, {Program("unattended"), "awaited"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_FALSE(audit.report["totals"].contains("forced_progress"));
}

TEST(Unattended, TheTextSaysThatProgressWasForced) {
  const Outcome outcome = RunCommand({Tool(), "run", "--driver=sim", "--", Program("unattended"), "condition"});
  EXPECT_THAT(outcome.out, HasSubstr("progress forced once")) << outcome.err;
}

TEST(Reset, WhatItDestroyedIsGoneWithItsContext) {
  const Audit audit = RunAudit({"run"}, {Program("unattended"), "reset"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "left_at_exit device_memory 1, left_at_exit stream 1");
  std::size_t orphaned = 0;
  for (const nlohmann::json& row : audit.report["live"]) {
    EXPECT_EQ(row["live"], 0) << row;
    if (row.contains("orphaned")) ++orphaned;
  }
  EXPECT_EQ(orphaned, 2U) << audit.report["live"];
  for (const nlohmann::json& finding : audit.report["findings"]) EXPECT_EQ(finding["where"], "cuDevicePrimaryCtxReset");
  const Outcome text = RunCommand({Tool(), "run", "--driver=sim", "--allow-left", "--", Program("unattended"), "reset"});
  EXPECT_THAT(text.out, HasSubstr("never released, died with their context:"));
  EXPECT_THAT(text.out, HasSubstr("no rule broken, 2 objects orphaned"));
  EXPECT_THAT(text.out, Not(HasSubstr("left at the end")));
}

TEST(Reset, UsedAfterwardsIsAFindingBesideWhatIsGone) {
  const Audit audit = RunAudit({"run"}, {Program("unattended"), "used"});
  EXPECT_EQ(audit.findings(), "left_at_exit device_memory 1, left_at_exit stream 1, use_after_release device_memory 1");
  EXPECT_EQ(audit.result(), "findings");
  for (const nlohmann::json& row : audit.report["live"]) EXPECT_EQ(row["live"], 0) << row;
}

}  // namespace
}  // namespace cuaudit::e2e::progress_test
