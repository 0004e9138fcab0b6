// SPDX-License-Identifier: MIT
// Programs that die, hang, leave their process group or print without end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::deaths_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Whole programs that die or hang: the report names the place where that happens and its cause. Programs that handle signals on their own
// do not notice that they are audited.

struct Death {
  const char* mode;
  const char* rule;
  const char* where;
  const char* function;  // the innermost one of its stack
  const char* cause;
};

void PrintTo(const Death& death, std::ostream* out) { *out << death.mode; }

nlohmann::json TheFinding(const std::string& mode, const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Audit audit = RunAudit(arguments, {Program("deaths"), mode});
  if (audit.report.is_null() || audit.report["findings"].size() != 1) {
    ADD_FAILURE() << mode << ": " << audit.outcome.err << audit.findings();
    return nlohmann::json();
  }
  return audit.report["findings"][0];
}

void ExpectPlace(const nlohmann::json& finding, const Death& death) {
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["rule"], death.rule);
  EXPECT_EQ(finding["where"], death.where);
  ASSERT_FALSE(finding["where_stack"].empty()) << finding.dump(1);
  EXPECT_EQ(finding["where_stack"][0]["function"], death.function) << finding.dump(1);
  EXPECT_THAT(finding["detail"].get<std::string>(), AllOf(HasSubstr(death.cause), HasSubstr("its last calls were cu")));
}

class Deaths : public ::testing::TestWithParam<Death> {};

TEST_P(Deaths, AreToldWhereTheyHappenAndWhy) { ExpectPlace(TheFinding(GetParam().mode), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Every, Deaths,
    ::testing::Values(Death{"null", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x0, in the null page;"},
                      Death{"field", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x18, in the null page;"},
                      Death{"unmapped", "crash", "SIGSEGV", "write_to", "SIGSEGV in released host_mapping;"},
                      Death{"protected", "crash", "SIGSEGV", "write_to", "SIGSEGV in live host_mapping, which does not allow the access;"},
                      Death{"argument", "crash", "SIGSEGV", "pass_bad_argument", ", inside cuMemcpyHtoD;"},
                      Death{"bus", "crash", "SIGBUS", "write_to", "SIGBUS in live host_mapping"},
                      Death{"abort", "abort", "SIGABRT", "give_up", "SIGABRT;"}, Death{"assert", "abort", "SIGABRT", "die", "SIGABRT;"},
                      Death{"divide", "crash", "SIGFPE", "divide", "SIGFPE, integer division by zero or out of range;"},
                      Death{"illegal", "crash", "SIGILL", "die", "SIGILL, an instruction that the processor does not know;"},
                      Death{"overflow", "crash", "SIGSEGV", "recurse", "SIGSEGV at the end of the stack: it overflowed;"},
                      Death{"thread", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x0, in the null page;"},
                      Death{"after_reset", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x0"},
                      Death{"chained", "abort", "SIGABRT", "write_to", "SIGABRT;"},
                      Death{"sent", "crash", "SIGFPE", "die", "SIGFPE, raised by a call;"}),
    [](const auto& test) { return std::string(test.param.mode); });

#if defined(__x86_64__)
TEST(Deaths, OfATrapAreToldWhereItIs) { ExpectPlace(TheFinding("trap"), {"trap", "crash", "SIGTRAP", "die", "SIGTRAP;"}); }

TEST(Deaths, OfANonCanonicalAddressSayThatItIsNone) {
  ExpectPlace(TheFinding("noncanonical"),
              {"noncanonical", "crash", "SIGSEGV", "write_to", "SIGSEGV at an address that no pointer can have;"});
}
#endif

TEST(Deaths, OfACallOfNothingNameTheCaller) {
  const nlohmann::json finding = TheFinding("call");
  ASSERT_FALSE(finding.is_null());
  ASSERT_GE(finding["where_stack"].size(), 2U) << finding.dump(1);
  EXPECT_EQ(finding["where_stack"][0]["function"], "");
  EXPECT_EQ(finding["where_stack"][1]["function"], "call_nothing");
}

// By the functions of the stack.
TEST(Deaths, HaveTheSameFingerprintInEveryRun) {
  EXPECT_EQ(TheFinding("null")["fingerprint"], TheFinding("null")["fingerprint"]);
  EXPECT_NE(TheFinding("null")["fingerprint"], TheFinding("thread")["fingerprint"]);
}

class Hangs : public ::testing::TestWithParam<Death> {};

TEST_P(Hangs, AreToldWhereTheThreadIsStuck) { ExpectPlace(TheFinding(GetParam().mode, {"--deadline-ms", "500"}), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Every, Hangs,
                         ::testing::Values(Death{"event", "hang", "cuEventSynchronize", "wait_for_event", "stuck in cuEventSynchronize;"},
                                           Death{"beside", "hang", "cuEventSynchronize", "wait_for_event", "stuck in cuEventSynchronize;"},
                                           Death{"loop", "hang", "(no driver call)", "loop_for_ever", "stuck outside of the driver;"},
                                           Death{"lock", "hang", "(no driver call)", "lock_twice", "stuck outside of the driver;"},
                                           Death{"request", "hang", "cuMemAlloc", "main", "stuck at an unknown place;"}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(Hangs, AProgramThatUsesTheSignalItselfIsNotAsked) {
  const std::string log = TemporaryDirectory() + "/output";
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse", "--deadline-ms", "500"},
                               {"/bin/sh", "-c", "exec \"" + Program("deaths") + "\" request > " + log});
  EXPECT_EQ(audit.findings(), "hang  1") << audit.outcome.err;
  EXPECT_THAT(ReadFile(log), Not(HasSubstr("asked")));
}

// What the program prints and how it ends, with and without cuaudit.
TEST(Handlers, OfTheProgramAreNotDisturbed) {
  for (const char* const mode : {"recovers", "own_stack", "caught_abort", "ignores", "asks"}) {
    const CommandResult alone = RunCommand({Program("deaths"), mode}, {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory()}});
    EXPECT_EQ(alone.exit, 0) << mode << alone.err;
    const std::string report = TemporaryDirectory() + "/report";
    const CommandResult audited = RunCommand({Tool(), "run", "--driver=sim", "--output", report, "--", Program("deaths"), mode});
    EXPECT_EQ(audited.exit, 0) << mode << audited.err;
    EXPECT_EQ(audited.out, alone.out) << mode;
  }
}

TEST(Handlers, OfTheProgramThatEndItLeaveThePlaceUnknown) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("deaths"), "own_death"});
  ASSERT_EQ(audit.findings(), "crash  1") << audit.outcome.err;
  const nlohmann::json& finding = audit.report["findings"][0];
  EXPECT_EQ(finding["where"], "cuMemAlloc");
  EXPECT_THAT(finding["detail"].get<std::string>(), HasSubstr("SIGSEGV at an unknown place: the program handles it itself"));
}

// Programs that die, leave their process group or print without end, and daemons: what the table of adversaries_test.cc cannot express.

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
}  // namespace cuaudit::e2e::deaths_test
