// SPDX-License-Identifier: MIT
// Programs that make processes: their children, what they close, how they limit themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::processes_test {
namespace {

using ::testing::HasSubstr;

// Programs that make processes, close descriptors, limit themselves or carry marks.

TEST(Forks, AChildThatCallsGetsErrorsAndItsInheritanceIsNoLeak) {
  const Audit audit = RunAudit({"run"}, {Program("forks"), "calls"}, {.deadline_ms = 10000});
  EXPECT_FALSE(audit.outcome.timed_out);
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "child 0\n");
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_EQ(audit.calls(), 10U + 3U);
}

TEST(Forks, AChildThatBecomesAnotherDriverProgramIsInTheSameJournal) {
  const Audit audit = RunAudit({"run"}, {Program("forks"), "exec", Program("client_linked")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "answer 42\nchild 0\n");
  EXPECT_EQ(audit.calls(), 10U + 12U);
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
}

TEST(Forks, AFaultIsCountedOverAllProcesses) {
  // The parent allocates after its child has ended, so the first allocation is the child's.
  const Audit first =
      RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("forks"), "exec", Program("client_linked")});
  EXPECT_EQ(first.verdicts(), R"({"absorbed":1})") << first.findings() << first.outcome.err;
  EXPECT_EQ(first.outcome.exit, 0);
}

TEST(Forks, ProgramsWithoutADriverMayBeStartedFromDriverPrograms) {
  for (const char* const mode : {"spawn", "vfork"}) {
    const Audit audit = RunAudit({"run"}, {Program("forks"), mode});
    EXPECT_EQ(audit.outcome.exit, 0) << mode << audit.outcome.err;
    EXPECT_EQ(audit.outcome.out, "child 0\n") << mode;
    EXPECT_EQ(audit.calls(), 10U) << mode;
    EXPECT_EQ(audit.result(), "clean") << mode;
  }
}

TEST(Forks, AChildThatNeverEndsDoesNotHoldTheAuditUp) {
  const Audit audit = RunAudit({"run"}, {Program("hostile"), "daemon"}, {.deadline_ms = 10000});
  EXPECT_FALSE(audit.outcome.timed_out);
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
}

TEST(Forks, BesideThreadsThatCallTheDriverNeverHang) {
  const Audit audit = RunAudit({"run", "--deadline-ms", "20000"}, {Program("hammer"), "fork"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "bad 0 failures 0\n");
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
}

TEST(Limits, TheSmallestThreadStacksAreEnough) {
  const Audit audit = RunAudit({"run", "--host"}, {Program("hammer"), "small_stack"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "bad 0 failures 0\n");
  // init, retain, release, and for each of 4 threads a push, a pop and 200 rounds of 3 calls
  EXPECT_EQ(audit.calls(), 3U + 4U * (2U + 600U));
}

// `command` in a mount namespace where `place` is a disk of `size`; status 77: not possible here.
CommandResult OnSmallDisk(const std::string& place, const std::string& size, const std::string& command) {
  return RunCommand(
      {"unshare", "-r", "-m", "/bin/sh", "-c", "mount -t tmpfs -o size=" + size + " tmpfs " + place + " || exit 77; " + command});
}

TEST(Disk, AFullOneIsOurErrorAndNeverTheProgramsCrash) {
  const std::string place = TemporaryDirectory();
  const CommandResult possible = OnSmallDisk(place, "1M", "exit 0");
  if (possible.exit != 0) GTEST_SKIP() << "no mounts in a user namespace here: " << possible.err;
  // 5619 records of 128 bytes do not fit.
  const CommandResult run = OnSmallDisk(place, "256k", Tool() + " run --driver=sim --work-dir " + place + " -- " + Program("threads"));
  EXPECT_EQ(run.exit, 125) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("good 800")) << "the program does not notice";
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("crash")));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr(": clean")));
}

TEST(Descriptors, ClosingThemAllLosesNoRecord) {
  const Audit early = RunAudit({"run"}, {Program("descriptors"), "early"});
  EXPECT_EQ(early.outcome.exit, 0) << early.outcome.err;
  EXPECT_EQ(early.calls(), 12U);
  EXPECT_EQ(early.result(), "clean");
  const Audit late = RunAudit({"run"}, {Program("descriptors"), "late"});
  EXPECT_EQ(late.outcome.exit, 0) << late.outcome.err;
  EXPECT_EQ(late.outcome.out, "answer 42\n");
  EXPECT_EQ(late.calls(), 24U);
  EXPECT_EQ(late.result(), "clean");
}

TEST(Descriptors, AProgramWhoseStdoutIsClosedIsAudited) {
  const Audit audit = RunAudit({"run"}, {"/bin/sh", "-c", "exec \"$0\" >&-", Program("client_linked")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.calls(), 12U);
  EXPECT_EQ(audit.result(), "clean");
}

TEST(Descriptors, ACuauditWhoseStdoutIsClosedSaysSoAndFails) {
  const CommandResult run = RunCommand({"/bin/sh", "-c", "exec \"$0\" run --driver=sim -- \"$1\" >&-", Tool(), Program("client_linked")});
  EXPECT_EQ(run.exit, 125) << run.err;
  EXPECT_THAT(run.err, HasSubstr("stdout"));
}

TEST(Limits, AProgramThatShutsItselfInIsAuditedToTheEnd) {
  for (const char* const mode : {"seccomp", "files", "size", "space"}) {
    const Audit audit = RunAudit({"run"}, {Program("limits"), mode});
    EXPECT_EQ(audit.outcome.exit, 0) << mode << audit.outcome.err;
    EXPECT_EQ(audit.outcome.out, "answer 42\n") << mode;
    EXPECT_EQ(audit.calls(), 12U) << mode;
  }
  // A trial's stdout is a file, which "size" forbids to grow.
  for (const char* const mode : {"seccomp", "files", "space"}) {
    const Audit fault = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("limits"), mode});
    EXPECT_EQ(fault.verdicts(), R"({"pass":1})") << mode << fault.outcome.err;
  }
}

TEST(Limits, TooLittleAddressSpaceIsAnErrorAndNeverClean) {
  for (const char* const kib : {"20000", "100000", "1000000"}) {
    const std::string script = std::string("ulimit -v ") + kib + "; exec \"$0\"";
    const Audit audit = RunAudit({"run"}, {"/bin/sh", "-c", script, Program("client_linked")});
    EXPECT_FALSE(audit.outcome.timed_out) << kib;
    if (audit.outcome.out == "answer 42\n") {
      EXPECT_EQ(audit.outcome.exit, 0) << kib << audit.outcome.err;
      EXPECT_EQ(audit.calls(), 12U) << kib;
    } else {
      EXPECT_EQ(audit.outcome.exit, 3) << kib << audit.outcome.err;
      EXPECT_NE(audit.result(), "clean") << kib;
    }
  }
}

TEST(Marks, WorkWithoutTheToolAndLinkWithNothing) {
  const CommandResult run =
      RunCommand({Program("marked"), "clean"}, {.environment = {"LD_LIBRARY_PATH=" + std::string(CUAUDIT_OTHER_DRIVER_DIRECTORY)}});
  EXPECT_EQ(run.out, "marks free\n") << run.err;
  EXPECT_EQ(run.exit, 0) << run.err;
}

TEST(Marks, ACycleThatLeaksGrowsByOneEachTime) {
  const Audit clean = RunAudit({"cycles", "--no-host"}, {Program("marked"), "clean"});
  EXPECT_EQ(clean.outcome.exit, 0) << clean.outcome.err;
  EXPECT_EQ(clean.outcome.out, "");
  EXPECT_EQ(clean.result(), "clean") << clean.findings();
  const Audit leaking = RunAudit({"cycles", "--no-host"}, {Program("marked"), "leaking"});
  EXPECT_EQ(leaking.outcome.exit, 1) << leaking.outcome.err;
  EXPECT_EQ(leaking.report["per_cycle"].dump(), R"({"event":1})");
}

TEST(Marks, AFaultCanBeBoundToAPhase) {
  const Audit fires = RunAudit({"replay", "--fault", "cuEventCreate#2@init=OUT_OF_MEMORY,refuse"}, {Program("marked"), "clean"});
  EXPECT_EQ(fires.verdicts(), R"({"pass":1})") << fires.outcome.err;
  const Audit never = RunAudit({"replay", "--fault", "cuEventCreate#1@work=OUT_OF_MEMORY,refuse"}, {Program("marked"), "clean"});
  EXPECT_EQ(never.verdicts(), R"({"not_exercised":1})") << never.outcome.err;
  EXPECT_EQ(never.outcome.exit, 3);
}

// Programs whose children do the work: whichever way a child leaves, what it lost is a finding or the trial is no pass.

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
}  // namespace cuaudit::e2e::processes_test
