// SPDX-License-Identifier: MIT
// The caching allocator under the tool: every driver call of its lifecycle fails in turn, and its cycles leave nothing behind.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::allocator_test {
namespace {

constexpr int kSweepDeadlineMs = 240000;

class AllocatorLifecycle : public testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::string> Subject(const std::string& cycles) {
    std::vector<std::string> command{Program("allocator_lifecycle")};
    for (const std::string& word : Words(GetParam())) command.push_back(word);
    command.push_back(cycles);
    return command;
  }
};

TEST_P(AllocatorLifecycle, EveryCallOfItFailsInTurnAndNothingIsLost) {
  const Audit audit = RunAudit({"sweep", "--no-host", "--stacks=4", "--depth=1"}, Subject("1"), {.deadline_ms = kSweepDeadlineMs});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_GT(audit.report["totals"]["trials"].get<int>(), 250);
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
}

// What is pruned are ten times as many: cuaudit sweep --no-host --stacks=4 --no-prune.
TEST_P(AllocatorLifecycle, CallsOfItsUnwindingFailInTurn) {
  const Audit audit = RunAudit({"sweep", "--no-host", "--stacks=4"}, Subject("1"), {.deadline_ms = kSweepDeadlineMs});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_GT(audit.report["totals"]["trials"].get<int>(), 1000);
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
  EXPECT_EQ(audit.report["totals"]["isolation"]["fork"], audit.report["totals"]["trials"]) << "though it knows of forks";
  EXPECT_NE(audit.verdicts().find("retained_for_retry"), std::string::npos) << audit.verdicts();
}

TEST_P(AllocatorLifecycle, EveryReleaseOfItReportsAnErrorThoughItWasDone) {
  std::vector<std::string> command{"sweep",
                                   "--no-host",
                                   "--how=after",
                                   "--depth=1",
                                   "--stacks=4",
                                   "--call=cuEventDestroy",
                                   "--call=cuStreamDestroy",
                                   "--call=cuDevicePrimaryCtxRelease"};
  const bool segments = std::string(GetParam()).find("segments") != std::string::npos;
  for (const char* const call : {"cuMemFree", "cuMemUnmap", "cuMemRelease", "cuMemAddressFree"}) {
    if (segments == (std::string(call) == "cuMemFree")) command.push_back(std::string("--call=") + call);
  }
  const Audit audit = RunAudit(command, Subject("1"), {.deadline_ms = kSweepDeadlineMs});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_GT(audit.report["totals"]["fired"].get<int>(), 8);
}

// Which context is current, and the mode in which captures are: refused once and for all.
TEST_P(AllocatorLifecycle, WhatTheDriverNeverTellsItAgainLosesNothing) {
  const Audit audit = RunAudit({"sweep", "--no-host", "--how=persist", "--depth=1", "--stacks=4", "--call=cuCtxGetCurrent",
                                "--call=cuThreadExchangeStreamCaptureMode"},
                               Subject("1"), {.deadline_ms = kSweepDeadlineMs});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_GT(audit.report["totals"]["fired"].get<int>(), 8);
}

TEST_P(AllocatorLifecycle, MoreCyclesTakeNoMore) {
  const Audit audit = RunAudit({"cycles", "--host", "--n=1,4"}, Subject("{n}"));
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
}

INSTANTIATE_TEST_SUITE_P(All, AllocatorLifecycle, testing::Values("poll segments", "wait expandable", "poll moving"),
                         [](const testing::TestParamInfo<const char*>& chosen) {
                           std::string name;
                           for (std::string word : Words(chosen.param)) {
                             word[0] = static_cast<char>(word[0] - 'a' + 'A');
                             name += word;
                           }
                           return name;
                         });

}  // namespace
}  // namespace cuaudit::e2e::allocator_test
