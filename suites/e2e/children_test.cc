// SPDX-License-Identifier: MIT
// Programs whose children do the work: whichever way a child leaves, what it lost is a finding or the trial is no pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::children_test {
namespace {

using ::testing::HasSubstr;

Audit SweepOf(const std::string& way, const std::string& story) {
  return RunAudit({"sweep", "--depth", "1", "--no-shrink", "--call", "cuEventCreate"}, {Program("children"), way, story});
}

TEST(Children, WhatOneLosesIsALeakWhicheverWayItLeaves) {
  for (const char* const way : {"exit", "_exit", "_Exit", "quick_exit", "vfork"}) {
    const Audit audit = SweepOf(way, "loses");
    EXPECT_EQ(audit.outcome.exit, 1) << way << audit.outcome.err;
    EXPECT_EQ(audit.findings(), "orphaned stream 1") << way;
  }
}

TEST(Children, OneThatGivesEverythingBackIsCleanWhicheverWayItLeaves) {
  for (const char* const way : {"_exit", "quick_exit", "vfork", "syscall", "kill", "exec"}) {
    const Audit audit = SweepOf(way, "careful");
    EXPECT_EQ(audit.outcome.exit, 0) << way << audit.outcome.err;
    EXPECT_EQ(audit.result(), "clean") << way << audit.findings();
  }
}

TEST(Children, WhatOneHoldsUntilItEndsWithoutFaultsTooIsNoLeak) {
  for (const char* const way : {"_exit", "_Exit", "syscall"}) {
    const Audit audit = SweepOf(way, "keeps");
    EXPECT_EQ(audit.outcome.exit, 0) << way << audit.outcome.err;
    EXPECT_EQ(audit.result(), "clean") << way << audit.findings();
  }
}

TEST(Children, AServerThatForksForEachRequestIsClean) {
  const Audit audit = SweepOf("_exit", "server");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
}

TEST(Children, OneThatVanishesWithDriverObjectsIsNeverClean) {
  for (const char* const way : {"syscall", "kill"}) {
    const Audit audit = SweepOf(way, "loses");
    EXPECT_EQ(audit.outcome.exit, 3) << way << audit.outcome.err;
    EXPECT_EQ(audit.verdicts(), R"({"not_exercised":1})") << way << audit.findings();
    EXPECT_THAT(audit.report["message"].get<std::string>(), HasSubstr("a child process vanished with driver objects")) << way;
    EXPECT_THAT(audit.report["notes"].dump(), HasSubstr("\"unjudged\"")) << way;
  }
}

// What it does to the driver belongs to the trial, and must not move the counts of the run that all forks come from.
TEST(Children, ThatAForkExecutesAndThatCallTheDriverMakeItATrialToSpawn) {
  const std::vector<std::string> program = {Program("host_path"), "executes"};
  const Audit first = RunAudit({"sweep", "--isolation=fork", "--depth", "1"}, program);
  const std::string isolation = first.report["totals"]["isolation"].dump();
  EXPECT_THAT(isolation, HasSubstr("\"spawn: the driver is called by another process than the one that was started\":1"));
  EXPECT_THAT(isolation, HasSubstr("\"fork\":4"));
  const auto said = [&](const char* how) {
    nlohmann::json report = RunAudit({"sweep", how}, program).report;
    if (report.is_null()) return std::string("no report");
    report.erase("header");
    report["totals"].erase("isolation");
    report["totals"].erase("isolation_by_id");
    return report.dump(1);
  };
  const std::string spawned = said("--isolation=spawn");
  EXPECT_THAT(spawned, HasSubstr("\"outcome\": \"clean\""));
  for (int again = 0; again < 3; ++again) EXPECT_EQ(said("--isolation=fork"), spawned);
}

// A helper that the host probes see is no reason.
TEST(Children, ThatAForkExecutesAndThatCallNothingAreNoReasonToSpawn) {
  const Audit forked = RunAudit({"sweep", "--isolation=fork"}, {Program("host_path"), "helper"});
  EXPECT_THAT(forked.report["totals"]["isolation"].dump(), ::testing::Not(HasSubstr("spawn"))) << forked.outcome.err;
}

}  // namespace
}  // namespace cuaudit::e2e::children_test
