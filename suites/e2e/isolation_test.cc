// SPDX-License-Identifier: MIT
// A sweep says the same whatever its trials run in; what cannot be forked is spawned, counted, and says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::isolation_test {
namespace {

using ::testing::HasSubstr;
using Command = std::vector<std::string>;

Audit Sweep(const std::string& isolation, const Command& program, const Command& options = {}) {
  Command arguments = {"sweep", "--isolation=" + isolation};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return RunAudit(arguments, program);
}

// All but how the trials were run and when the report was made.
std::string Said(const Audit& audit) {
  if (audit.report.is_null()) return "no report: " + audit.outcome.err;
  nlohmann::json report = audit.report;
  report.erase("header");
  report["totals"].erase("isolation");
  report["totals"].erase("isolation_by_id");
  return report.dump(1);
}

std::string Isolation(const Audit& audit) { return audit.report.is_null() ? "no report" : audit.report["totals"]["isolation"].dump(); }

TEST(Fork, FindsWhatSpawningFindsByteForByte) {
  const Command programs[] = {{Program("defective")},
                              {Program("steps"), "46", "leaking"},
                              {Program("marked"), "leaking", "2"},
                              {Program("leak_kind"), "stream", "2"},
                              {Program("unattended")}};
  for (const Command& program : programs) {
    const Audit forked = Sweep("fork", program);
    const Audit spawned = Sweep("spawn", program);
    ASSERT_FALSE(spawned.report.is_null()) << spawned.outcome.err;
    EXPECT_EQ(Said(forked), Said(spawned)) << program.front();
    const std::string trials = spawned.report["totals"]["trials"].dump();
    EXPECT_EQ(Isolation(forked), "{\"fork\":" + trials + "}") << program.front();
    EXPECT_EQ(Isolation(spawned), "{\"spawn\":" + trials + "}") << program.front();
  }
}

TEST(Fork, HostResourcesAreFollowedIntoTheChild) {
  const Command program = {Program("host_blocks"), "lose", "malloc"};
  const Audit forked = Sweep("fork", program, {"--host"});
  EXPECT_EQ(Said(forked), Said(Sweep("spawn", program, {"--host"})));
  EXPECT_THAT(forked.findings(), HasSubstr("leak host_heap 1"));
  EXPECT_THAT(Isolation(forked), ::testing::Not(HasSubstr("spawn")));
}

TEST(Fork, CrashAbortHangExitAndKillAreVerdictsOfTheChildAlone) {
  const struct {
    const char* mode;
    const char* verdict;
  } endings[] = {{"crash", "crash"}, {"abort", "abort"}, {"kill", "crash"}, {"leave", "abandoned_at_exit"}, {"hang", "hang"}};
  for (const auto& ending : endings) {
    const bool hangs = std::string(ending.mode) == "hang";
    const Command options = hangs ? Command{"--deadline-ms", "3000", "--depth", "1"} : Command{"--depth", "1"};
    const Audit forked = Sweep("fork", {Program("hostile"), ending.mode}, options);
    EXPECT_THAT(forked.verdicts(), HasSubstr(std::string("\"") + ending.verdict + "\":1")) << ending.mode << forked.verdicts();
    EXPECT_EQ(Said(forked), Said(Sweep("spawn", {Program("hostile"), ending.mode}, options))) << ending.mode;
    for (const nlohmann::json& finding : forked.report["findings"]) EXPECT_THAT(finding.dump(), HasSubstr("its last calls were cuInit, "));
    // A fork that died is no finding by itself: the trial is spawned, and dies again.
    const std::string again = std::string("\"spawn: a fork ") + (hangs ? "hung" : "died") + ", tried again\":1";
    const bool died = std::string(ending.mode) != "leave";
    EXPECT_EQ(Isolation(forked).find("spawn") != std::string::npos, died) << ending.mode;
    if (died) {
      EXPECT_THAT(Isolation(forked), HasSubstr(again)) << ending.mode;
    }
  }
}

TEST(Fork, AHangThatOnlyAForkHasIsNoFinding) {
  const Audit forked = Sweep("fork", {Program("forkless"), "owned"}, {"--deadline-ms", "2000", "--depth", "1"});
  EXPECT_EQ(forked.outcome.exit, 0) << forked.outcome.err << forked.findings();
  EXPECT_FALSE(forked.report["totals"]["verdicts"].contains("hang")) << forked.verdicts();
  EXPECT_THAT(Isolation(forked), HasSubstr("\"spawn: a fork hung, tried again\":1"));
}

TEST(Fork, WhereAChildWouldShareOrMissSomethingTheTrialIsSpawnedAndSaysWhy) {
  const struct {
    const char* what;
    const char* why;
  } reasons[] = {{"thread", "the program has other threads there"},
                 {"file", "the program has a file, pipe or socket open there"},
                 {"pipe", "the program has a file, pipe or socket open there"},
                 {"memory", "the program shares memory with others there"},
                 {"wiped", "the program has memory that a fork would wipe, too much of it to be kept"},
                 {"child", "the program has processes of its own there"},
                 {"timer", "the program has a timer there"},
                 {"posix_timer", "the program has a timer there"}};
  const std::string nothing = Isolation(Sweep("fork", {Program("forkless"), "nothing"}));
  EXPECT_THAT(nothing, ::testing::Not(HasSubstr("spawn")));
  for (const auto& reason : reasons) {
    if (std::string(reason.what) == "posix_timer" && access("/proc/self/timers", R_OK) != 0) continue;  // the kernel lists none
    const Audit forked = Sweep("auto", {Program("forkless"), reason.what});
    EXPECT_THAT(Isolation(forked), HasSubstr(std::string("\"spawn: ") + reason.why + "\":3"))
        << reason.what;  // one first fault, two second ones
    EXPECT_THAT(Isolation(forked), HasSubstr("\"fork\":4")) << reason.what;
    EXPECT_EQ(Said(forked), Said(Sweep("spawn", {Program("forkless"), reason.what}))) << reason.what;
  }
}

// By which libraries notice that they were forked. A fork of the program's own still finds it wiped.
TEST(Fork, MemoryThatAForkWipesIsKeptInACopy) {
  const Audit forked = Sweep("auto", {Program("forkless"), "kept"});
  EXPECT_EQ(forked.outcome.exit, 0) << forked.outcome.err << forked.findings();
  EXPECT_THAT(Isolation(forked), ::testing::Not(HasSubstr("spawn")));
  EXPECT_EQ(Said(forked), Said(Sweep("spawn", {Program("forkless"), "kept"})));
}

// The layout of the program is the same before and after, only the flag is not.
TEST(Fork, MemoryThatIsWipedNoMoreIsNotWipedAgainAfterAFork) {
  const Audit forked = Sweep("auto", {Program("forkless"), "taken_back"});
  EXPECT_EQ(forked.outcome.exit, 0) << forked.outcome.err << forked.findings();
  EXPECT_THAT(Isolation(forked), ::testing::Not(HasSubstr("spawn")));
  EXPECT_EQ(Said(forked), Said(Sweep("spawn", {Program("forkless"), "taken_back"})));
}

TEST(Fork, MemoryThatTheKernelAlwaysWipesHasAReasonOfItsOwn) {
  void* const memory = mmap(nullptr, 4096, PROT_READ, 8 /* MAP_DROPPABLE */ | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "the kernel has no MAP_DROPPABLE (Linux 6.11)";
  munmap(memory, 4096);
  const Audit forked = Sweep("auto", {Program("forkless"), "droppable"});
  EXPECT_THAT(Isolation(forked),
              HasSubstr("\"spawn: the program has memory that a fork would wipe, and the kernel does not let it be kept\":3"));
  EXPECT_EQ(Said(forked), Said(Sweep("spawn", {Program("forkless"), "droppable"})));
}

TEST(Fork, AProgramThatIsAnotherOneInACopyIsSpawnedAndSaysWhatDiffers) {
  const struct {
    const char* what;
    const char* why;
  } differences[] = {
      {"pid", "call 4: cuMemFree, then cuCtxDestroy"}, {"status", "it exited with status 7"}, {"declared", "it declared something else"}};
  for (const auto& difference : differences) {
    const Audit forked = Sweep("auto", {Program("forkless"), difference.what});
    const std::string trials = forked.report["totals"]["trials"].dump();
    EXPECT_EQ(Isolation(forked), "{\"spawn: without a fault a copy forked at cuInit#1 is not what the program is: " +
                                     std::string(difference.why) + "\":" + trials + "}")
        << forked.outcome.err;
    EXPECT_EQ(Said(forked), Said(Sweep("spawn", {Program("forkless"), difference.what}))) << difference.what;
  }
}

TEST(Fork, AProgramBehindAScriptIsSpawned) {
  const Command script = {"/bin/sh", "-c", Program("forkless") + " nothing; exit $?"};
  const Audit forked = Sweep("auto", script);
  EXPECT_THAT(Isolation(forked), HasSubstr("the driver is called by another process than the one that was started"));
  EXPECT_THAT(Isolation(forked), ::testing::Not(HasSubstr("\"fork\"")));
}

TEST(Cycle, TrialsInOneProcessSayWhatTheirOwnProcessesSay) {
  for (const char* const how : {"clean", "leaks", "crashes", "exits", "late"}) {
    const Command program = {Program("looping"), how, "8"};
    const Audit cycles = Sweep("cycle", program);
    EXPECT_EQ(Said(cycles), Said(Sweep("spawn", program))) << how;
    EXPECT_THAT(Isolation(cycles), HasSubstr("\"cycle\":")) << how;
    EXPECT_THAT(Isolation(cycles), HasSubstr("the call is outside the cycles that repeat")) << how;
  }
}

// What a trial left is nobody else's: not when it lies there, and not when a later cycle gives it back.
TEST(Cycle, WhatATrialLeavesIsItsOwn) {
  for (const char* const mode : {"honest", "keeps", "twice"}) {
    const Command program = {Program("reports"), mode, "12"};
    const Audit cycles = Sweep("cycle", program);
    EXPECT_EQ(Said(cycles), Said(Sweep("spawn", program))) << mode;
    EXPECT_THAT(Isolation(cycles), HasSubstr("\"cycle\":")) << mode;
  }
}

TEST(Cycle, WhatATrialPoisonsIsItsOwnFindingAndNoOtherTrials) {
  const Audit cycles = Sweep("cycle", {Program("looping"), "poisoned", "8"}, {"--depth", "1", "--no-prune"});
  ASSERT_FALSE(cycles.report.is_null()) << cycles.outcome.err;
  EXPECT_FALSE(cycles.report["findings"].empty());
  for (const nlohmann::json& finding : cycles.report["findings"]) EXPECT_EQ(finding["fault"]["call"], "cuMemAlloc") << finding;
}

// In a cycle of its own a trial ends with the clean cycle after it; alone in a process it goes on losing until the program ends.
TEST(Cycle, WhatAPoisonedProgramGoesOnLosingIsCountedOnceAndNotInEveryLaterCycle) {
  const Command program = {Program("looping"), "poisoned", "8"};
  Audit cycles = Sweep("cycle", program);
  Audit spawned = Sweep("spawn", program);
  ASSERT_FALSE(cycles.report.is_null() || spawned.report.is_null()) << cycles.outcome.err << spawned.outcome.err;
  EXPECT_EQ(cycles.verdicts(), spawned.verdicts());
  EXPECT_EQ(cycles.findings(), "not_recovered event 1, orphaned event 1");
  EXPECT_EQ(spawned.findings(), "not_recovered event 1, orphaned event 7") << "the first of eight cycles was poisoned";
  for (Audit* const audit : {&cycles, &spawned}) {
    for (nlohmann::json& finding : audit->report["findings"]) finding.erase("count");
    audit->report.erase("defects");  // their members have counts, too
  }
  EXPECT_EQ(Said(cycles), Said(spawned)) << "the second faults too";
}

TEST(Cycle, AProgramThatMarksNothingIsRunOtherwiseAndSaysWhy) {
  const Audit audit = Sweep("cycle", {Program("defective")});
  EXPECT_THAT(Isolation(audit), HasSubstr("fork: the program marks no cycles"));
  EXPECT_EQ(Said(audit), Said(Sweep("spawn", {Program("defective")})));
}

// --undefined=crash: a second destroy of a stream kills the program, as it does on the genuine driver.
TEST(Undefined, KillsTheTrialAloneWhateverItRunsIn) {
  const Command wrong = {Program("twice"), "wrong", "4"};
  const std::string spawned = Said(Sweep("spawn", wrong, {"--undefined=crash"}));
  for (const char* const isolation : {"fork", "spawn", "cycle"}) {
    const Audit audit = Sweep(isolation, wrong, {"--undefined=crash"});
    EXPECT_EQ(audit.outcome.exit, 1) << isolation << audit.outcome.err;
    EXPECT_EQ(Said(audit), spawned) << isolation;
    EXPECT_THAT(Isolation(audit), HasSubstr(std::string("\"") + isolation));
    EXPECT_EQ(audit.report["driver"]["world"], "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1;undefined=crash");
    EXPECT_EQ(audit.findings(), "crash  1, double_release stream 1") << isolation;
    for (const nlohmann::json& finding : audit.report["findings"]) {
      EXPECT_THAT(finding["reproduce"].get<std::string>(), HasSubstr("--undefined=crash"));
      EXPECT_EQ(finding["where_stack"][0]["function"], "give_up") << finding.dump(1);
      if (finding["rule"] != "crash") continue;
      EXPECT_EQ(finding["where"], "SIGSEGV");
      EXPECT_THAT(finding["detail"].get<std::string>(), HasSubstr("inside cuStreamDestroy"));
    }
  }
  const Audit plain = Sweep("auto", wrong);
  EXPECT_THAT(plain.findings(), ::testing::AllOf(HasSubstr("double_release stream"), ::testing::Not(HasSubstr("crash"))));
}

// As in a sweep, what the run died of and its death are one defect.
TEST(Undefined, ARunDiesOfOneDefect) {
  const Audit audit = RunAudit({"run", "--undefined=crash"}, {Program("recorded"), "twice"});
  EXPECT_EQ(audit.findings(), "crash  1, double_release event 1");
  EXPECT_EQ(audit.report["defects"].size(), 1U) << audit.outcome.err;
}

// What a release was told to have left is not followed either: the program believes that the stream is there.
TEST(Undefined, IsNotWhatARepairedProgramDoes) {
  for (const char* const how : {"refuse", "after"}) {
    const Audit audit = Sweep("auto", {Program("twice"), "right", "4"}, {"--undefined=crash", "--how", how});
    EXPECT_EQ(audit.outcome.exit, 0) << how << audit.findings() << audit.outcome.err;
    EXPECT_THAT(audit.verdicts(), ::testing::Not(HasSubstr("crash"))) << how;
  }
}

TEST(ResumedForks, AForkedSweepKilledAfterAnyTrialEndsWithTheSameReport) {
  const std::string directory = TemporaryDirectory();
  const auto command = [&](const std::string& work) {
    return Command{Tool(),           "sweep", "--driver=sim", "--isolation=fork", "--format=json",
                   "--work-dir",     work,    "--output",     work + ".json",     "--",
                   Program("steps"), "46",    "leaking"};
  };
  const auto report = [](const std::string& work) {
    nlohmann::json json = nlohmann::json::parse(ReadFile(work + ".json"), nullptr, false);
    if (!json.is_discarded()) json.erase("header");
    return json.dump(1);
  };
  const std::string whole = directory + "/whole";
  ASSERT_EQ(RunCommand(command(whole)).exit, 1);
  for (const int moment : {1, 7, 30}) {
    const std::string work = directory + "/killed-" + std::to_string(moment);
    ASSERT_EQ(RunCommand({"mkdir", work}).exit, 0);
    const int watch = inotify_init1(IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(watch, work.c_str(), IN_MODIFY), 0);
    {
      Spawned sweep(command(work));
      ASSERT_TRUE(WaitForWrites(watch, "trials.jsonl", moment));
      sweep.Kill(SIGKILL);
      sweep.Wait();
    }
    close(watch);
    const CommandResult resumed = RunCommand(command(work));
    EXPECT_EQ(resumed.exit, 1) << resumed.err;
    EXPECT_EQ(report(work), report(whole)) << "killed after " << moment << " trials";
  }
}

// It goes on beside the fault-free runs that it began with: others would have been in another order.
TEST(ResumedForks, ASweepOfAProgramThatDriftsGoesOnBesideTheRunsItBeganWith) {
  const std::string directory = TemporaryDirectory();
  const std::string counter = directory + "/turns";
  const auto command = [&](const std::string& work) {
    return Command{Tool(),         "sweep", "--driver=sim",   "--format=json", "--work-dir", work, "--output",
                   work + ".json", "--",    Program("turns"), counter,         "loses",      "1"};
  };
  const auto report = [](const std::string& work) {
    nlohmann::json json = nlohmann::json::parse(ReadFile(work + ".json"), nullptr, false);
    if (!json.is_discarded()) json.erase("header");
    return json.dump(1);
  };
  WriteFile(counter + ".runs", "");
  const std::string whole = directory + "/whole";
  ASSERT_EQ(RunCommand(command(whole)).exit, 1);
  const std::string work = directory + "/killed";
  ASSERT_EQ(RunCommand({"mkdir", work}).exit, 0);
  WriteFile(counter + ".runs", "");
  const int watch = inotify_init1(IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(watch, work.c_str(), IN_MODIFY), 0);
  {
    Spawned sweep(command(work));
    ASSERT_TRUE(WaitForWrites(watch, "trials.jsonl", 4));
    sweep.Kill(SIGKILL);
    sweep.Wait();
  }
  close(watch);
  WriteFile(counter + ".runs", ".");  // a rehearsal of its own would see the right worker first
  const CommandResult resumed = RunCommand(command(work));
  EXPECT_EQ(resumed.exit, 1) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going on: "));
  EXPECT_EQ(report(work), report(whole));
}

}  // namespace
}  // namespace cuaudit::e2e::isolation_test
