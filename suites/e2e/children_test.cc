// SPDX-License-Identifier: MIT
// Programs whose children do the work: whichever way a child leaves, what it lost is a finding or the trial is no pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/e2e/tool.h"

namespace cuaudit::e2e {
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

}  // namespace
}  // namespace cuaudit::e2e
