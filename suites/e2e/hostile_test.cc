// SPDX-License-Identifier: MIT
// Programs that die, leave their process group or print without end, and daemons: what the table of adversaries_test.cc cannot express.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::hostile_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFault = "cuMemAlloc#1=OUT_OF_MEMORY,refuse";

Audit Replay(const std::string& mode, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"replay", "--fault", kFault});
  return RunAudit(more, {Program("hostile"), mode});
}

TEST(Hostile, DeathAfterAFaultIsAVerdictAndNeverALeakOrAPass) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"crash", "crash", "SIGSEGV"}, {"abort", "abort", "SIGABRT"}, {"kill", "crash", "cuMemAlloc"}};  // nothing can tell where SIGKILL hit
  for (const auto& [mode, rule, where] : cases) {
    const Audit audit = Replay(mode);
    EXPECT_EQ(audit.outcome.exit, 1) << mode << audit.outcome.err;
    EXPECT_EQ(audit.verdicts(), std::string("{\"") + rule + "\":1}") << mode;
    EXPECT_EQ(audit.findings(), std::string(rule) + "  1") << mode;
    ASSERT_EQ(audit.report["findings"].size(), 1U) << mode;
    EXPECT_EQ(audit.report["findings"][0]["where"], where) << mode;
  }
}

TEST(Hostile, ExitRightAfterTheFaultIsALeakWhenAskedFor) {
  const Audit audit = Replay("give_up", {"--abandoned-is-leak"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.verdicts(), R"({"leak":1})");
  EXPECT_THAT(audit.findings(), HasSubstr("context 1"));
}

TEST(Hostile, AnotherExitStatusIsRefusedUnlessExpected) {
  const Audit refused = RunAudit({"sweep"}, {Program("hostile"), "other"});
  EXPECT_EQ(refused.outcome.exit, 3);
  EXPECT_THAT(refused.outcome.err, HasSubstr("exited with status 7, expected exit status 0 (--expect-exit)"));
  const Audit expected = RunAudit({"sweep", "--expect-exit", "7"}, {Program("hostile"), "other"});
  EXPECT_EQ(expected.outcome.exit, 0) << expected.outcome.err << expected.findings();
  EXPECT_EQ(expected.result(), "clean");
}

// A daemon of `hostile` holds a lock on `file` as long as it lives.
bool NobodyHolds(const std::string& file) {
  const int opened = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool got = flock(opened, LOCK_EX | LOCK_NB) == 0;
  close(opened);
  return got;
}

constexpr const char* kTrialsLeft = "trials that left a process running in a session of its own: it was ended";

TEST(Hostile, ADaemonLeftBehindInEachTrialIsCountedAndEndedWithIt) {
  // One without any environment is not known to be anybody's until nothing else runs.
  for (const auto& [mode, jobs] : {std::pair{"daemon", "2"}, std::pair{"wiped_daemon", "1"}}) {
    const std::string file = TemporaryDirectory() + "/lock";
    const Audit audit = RunAudit({"sweep", "--jobs", jobs, "--depth", "1"}, {Program("hostile"), mode, file});
    EXPECT_FALSE(audit.outcome.timed_out);
    EXPECT_EQ(audit.outcome.exit, 0) << mode << audit.outcome.err << audit.findings();
    // After a refused cuInit, cuCtxCreate or cuStreamCreate the program does not come so far.
    EXPECT_EQ(audit.report["totals"]["trials"], 7) << mode;
    EXPECT_EQ(audit.report["totals"]["skipped"].value(kTrialsLeft, 0), 4) << mode << audit.report["totals"].dump();
    EXPECT_TRUE(NobodyHolds(file)) << mode;
  }
}

TEST(Hostile, ADaemonThatOnlyAFaultLeavesBehindIsFoundFromAFork) {
  const std::string file = TemporaryDirectory() + "/lock";
  const Audit audit = RunAudit({"sweep", "--depth", "1"}, {Program("hostile"), "late_daemon", file});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.report["totals"]["skipped"].value(kTrialsLeft, 0), 1) << audit.report["totals"].dump();
  EXPECT_EQ(audit.report["totals"]["isolation"].dump(), R"({"fork":7})") << "each trial's own, whoever ends at the same time";
  EXPECT_TRUE(NobodyHolds(file));
}

TEST(Hostile, AProgramThatWaitsForWhatItStartsLeftNothingBehind) {
  const Audit audit = RunAudit({"sweep", "--depth", "1"}, {Program("hostile"), "helper"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.report["totals"]["skipped"].count(kTrialsLeft), 0U);
  EXPECT_EQ(audit.report["totals"]["isolation"].dump(), R"({"fork":7})") << "its processes end before it goes on: nothing refuses to fork";
}

// What a program leaves to its user it leaves to its user: `run` only says so.
TEST(Hostile, RunLeavesADaemonAloneAndSaysSo) {
  const std::string file = TemporaryDirectory() + "/lock";
  const Audit audit = RunAudit({"run"}, {Program("hostile"), "daemon", file});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["skipped"].value("processes left running in a session of their own: they still are", 0), 1);
  EXPECT_FALSE(NobodyHolds(file));
  EXPECT_THAT(audit.outcome.err, HasSubstr("left running"));
}

TEST(Hostile, TenMegabytesOfOutputGoThroughWhole) {
  const Audit run = RunAudit({"run"}, {Program("hostile"), "flood"});
  EXPECT_EQ(run.outcome.exit, 0) << run.outcome.err;
  EXPECT_EQ(run.outcome.out.size(), 10U * 1024U * 1024U);
  const Audit sweep = RunAudit({"sweep", "--call", "cuMemAlloc"}, {Program("hostile"), "flood"});
  EXPECT_EQ(sweep.outcome.exit, 0) << sweep.outcome.err;
  EXPECT_EQ(sweep.outcome.out, "");
}

TEST(Hostile, ASweepGoesOnAfterATrialThatDies) {
  const Audit audit = RunAudit({"sweep", "--depth", "1"}, {Program("hostile"), "crash"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "crash  1");
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
  EXPECT_EQ(audit.report["totals"]["trials"], 7) << "init, context, stream, memory, and three releases";
}

}  // namespace
}  // namespace cuaudit::e2e::hostile_test
