// SPDX-License-Identifier: MIT
// The caching allocator under the tool: every driver call of its lifecycle fails in turn, and its cycles leave nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
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

  struct Swept {
    Audit audit;
    std::vector<std::size_t> faults;  // of each trial
  };
  // Each call, then those of each unwinding, in one sweep for all that is asked of it. What is pruned are ten times as many:
  // cuaudit sweep --no-host --stacks=4 --no-prune.
  static const Swept& Sweep() {
    static std::map<std::string, Swept> done;
    const auto [at, fresh] = done.try_emplace(GetParam());
    if (!fresh) return at->second;
    const std::string trials = TemporaryDirectory() + "/trials.jsonl";
    at->second.audit =
        RunAudit({"sweep", "--no-host", "--stacks=4", "--trials=" + trials}, Subject("1"), {.deadline_ms = kSweepDeadlineMs});
    std::istringstream rows(ReadFile(trials));
    for (std::string row; std::getline(rows, row);) {
      const nlohmann::json trial = nlohmann::json::parse(row, nullptr, false);
      if (trial.contains("trial")) at->second.faults.push_back(trial["faults"].size());
    }
    return at->second;
  }
};

TEST_P(AllocatorLifecycle, EveryCallOfItFailsInTurnAndNothingIsLost) {
  const auto& [audit, faults] = Sweep();
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_GT(std::count(faults.begin(), faults.end(), 1U), 250);
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
}

TEST_P(AllocatorLifecycle, CallsOfItsUnwindingFailInTurn) {
  const auto& [audit, faults] = Sweep();
  EXPECT_EQ(faults.size(), audit.report["totals"]["trials"].get<std::size_t>());
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
