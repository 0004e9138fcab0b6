// SPDX-License-Identifier: MIT
// Host probes: every allocating function, blocks that are resized around a mutex, more mutexes than are followed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "faults/journal/layout.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::host_test {
namespace {

class LostBlock : public ::testing::TestWithParam<const char*> {};

TEST_P(LostBlock, IsFoundWhicheverFunctionAllocatedIt) {
  const Audit audit =
      RunAudit({"replay", "--host", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("host_blocks"), "lose", GetParam()});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "leak host_heap 1");
}

INSTANTIATE_TEST_SUITE_P(Every, LostBlock,
                         ::testing::Values("malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign",
                                           "valloc", "pvalloc"),
                         [](const auto& test) { return std::string(test.param); });

struct Resize {
  const char* mode;
  const char* how;  // what realloc did: s stayed, m moved, f failed
  const char* findings;
};

void PrintTo(const Resize& resize, std::ostream* out) { *out << resize.mode; }

class Resized : public ::testing::TestWithParam<Resize> {};

TEST_P(Resized, LosesOnlyTheMutexWhoseMemoryWentBack) {
  const Audit audit = RunAudit({"run", "--host"}, {Program("host_blocks"), "resize", GetParam().mode});
  ASSERT_EQ(audit.outcome.out, std::string(GetParam().how) + "\n") << audit.outcome.err;
  EXPECT_EQ(audit.findings(), GetParam().findings) << audit.outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Every, Resized,
                         ::testing::Values(Resize{"fails", "f", ""}, Resize{"shrinks", "s", ""}, Resize{"cuts", "s", "mutex_freed mutex 1"},
                                           Resize{"moves", "m", "mutex_freed mutex 1"}),
                         [](const auto& test) { return std::string(test.param.mode); });

struct Free {
  const char* way;
  const char* findings;
};

void PrintTo(const Free& one, std::ostream* out) { *out << one.way; }

class Freed : public ::testing::TestWithParam<Free> {};

// The C library ends the program in the middle of the wrong one, and what it was comes to light all the same.
TEST_P(Freed, IsJudgedByWhatWasFreed) {
  const Audit audit = RunAudit({"run", "--host"}, {Program("host_blocks"), "frees", GetParam().way});
  EXPECT_EQ(audit.findings(), GetParam().findings) << audit.outcome.err;
  if (audit.report.is_null()) return;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    if (finding["rule"] == "abort") continue;
    EXPECT_EQ(finding["where"], "free");
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Freed,
                         ::testing::Values(Free{"once", ""}, Free{"twice", "abort  1, double_release host_heap 1"},
                                           Free{"inside", "abort  1, unknown_handle host_heap 1"},
                                           Free{"foreign", "abort  1, unknown_handle host_heap 1"}),
                         [](const auto& test) { return std::string(test.param.way); });

// What nobody can see is said, and its growth is certified by nobody.
TEST(OwnMalloc, IsSaidToBeUnseenWhereverHostResourcesAreLookedAt) {
  constexpr const char* kUnseen = "host_heap not metered: malloc is the program's own";
  const Audit run = RunAudit({"run", "--host"}, {Program("own_malloc")});
  EXPECT_EQ(run.report["totals"]["skipped"][kUnseen], 1) << run.outcome.err;
  EXPECT_THAT(run.outcome.err, ::testing::HasSubstr(kUnseen));
  const Audit sweep = RunAudit({"sweep", "--host", "--depth", "1"}, {Program("own_malloc")});
  EXPECT_EQ(sweep.report["totals"]["skipped"][kUnseen], 1) << sweep.outcome.err;
  const Audit cycles = RunAudit({"cycles"}, {Program("own_malloc"), "30"});
  EXPECT_EQ(cycles.report["totals"]["skipped"][kUnseen], 1) << cycles.outcome.err;
  EXPECT_EQ(cycles.report["meters"]["absent"]["heap_bytes"], "malloc is the program's own") << cycles.report["meters"].dump();
  for (const nlohmann::json& row : cycles.report["meters"]["rows"]) EXPECT_NE(row["name"], "heap_bytes");
}

// The C library's allocator is used beside it, and nothing that it hands out reaches the other one.
TEST(OtherMalloc, OfASharedLibraryIsNotAskedAboutTheCLibrarysBlocks) {
  const Audit moves = RunAudit({"run", "--host"}, {Program("host_blocks_other"), "resize", "moves"});
  EXPECT_EQ(moves.outcome.exit, 1) << moves.outcome.err;
  EXPECT_EQ(moves.findings(), "mutex_freed mutex 1");
  const Audit clean = RunAudit({"run", "--host"}, {Program("host_blocks_other"), "resize", "shrinks"});
  EXPECT_EQ(clean.outcome.exit, 0) << clean.outcome.err;
  EXPECT_EQ(clean.findings(), "");
}

// Visible in each report, whatever was asked for.
TEST(HostProbes, EachReportSaysWhichLookedAndWhyOthersDidNot) {
  struct Case {
    std::vector<std::string> options;
    std::size_t probes;
    const char* heap;
  };
  for (const Case& one : {Case{{}, 5, "it costs more: --host"}, Case{{"--host"}, 6, ""}, Case{{"--no-host"}, 0, "--no-host"},
                          Case{{"--stacks", "0"}, 0, "it needs call stacks: --stacks"}, Case{{"--stacks", "0", "--host"}, 6, ""},
                          Case{{"--how", "refuse,host_oom"}, 6, ""}}) {
    for (const char* const command : {"run", "sweep"}) {
      std::vector<std::string> arguments = {command};
      arguments.insert(arguments.end(), one.options.begin(), one.options.end());
      if (arguments.back() == "refuse,host_oom" && arguments.front() == "run") continue;
      const Audit audit = RunAudit(arguments, {Program("host_path"), "nothing"});
      const std::string what = ::testing::PrintToString(arguments);
      ASSERT_FALSE(audit.report.is_null()) << what << audit.outcome.err;
      EXPECT_EQ(audit.report["host"]["probes"].size(), one.probes) << what;
      EXPECT_EQ(audit.report["host"]["left_out"].size(), 6 - one.probes) << what;
      EXPECT_EQ(audit.report["host"]["left_out"].value("host_heap", ""), one.heap) << what;
      EXPECT_EQ(audit.outcome.exit, 0) << what << audit.outcome.err << audit.findings();
    }
  }
}

// The loader preloads nothing into a static-pie program that opens the driver by itself: the driver's calls are audited, the host is not.
TEST(HostProbes, OfAProgramThatTakesNoPreloadAreCountedAsMissing) {
  if (access(Program("client_static_pie").c_str(), X_OK) != 0) GTEST_SKIP() << "this toolchain cannot link static-pie programs";
  const Audit audit = RunAudit({"run"}, {Program("client_static_pie")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.report["host"]["probes"].size(), 0U);
  EXPECT_EQ(audit.report["host"]["left_out"]["thread"], "the program did not load the library");
  EXPECT_EQ(audit.report["totals"]["skipped"]["host probes: the program did not load their library"], 1);
  const Audit asked = RunAudit({"run", "--host"}, {Program("client_static_pie")});
  EXPECT_EQ(asked.outcome.exit, 3) << "who asks for them is not told that it is clean";
}

// The script's shell is looked at; the program behind it, which makes the calls, is not.
TEST(HostProbes, OfAProgramThatIsStartedWithoutOurPreloadAreCountedAsMissing) {
  for (const char* const command : {"run", "sweep"}) {
    const std::vector<std::string> program = {"/usr/bin/env", "-u", "LD_PRELOAD", Program("host_path"), "descriptor"};
    const Audit audit = RunAudit({command}, program);
    EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
    EXPECT_EQ(audit.report["host"]["probes"].size(), 0U);
    EXPECT_EQ(audit.report["host"]["left_out"]["file_descriptor"], "the program did not load the library");
    EXPECT_EQ(audit.report["totals"]["skipped"]["host probes: the program did not load their library"], 1);
    const Audit asked = RunAudit({command, "--host"}, program);
    EXPECT_EQ(asked.outcome.exit, 3) << asked.outcome.err;
    EXPECT_EQ(asked.result(), "not_exercised");
    EXPECT_THAT(asked.outcome.err, ::testing::HasSubstr("--host"));
  }
}

// The driver's calls have half of the journal to themselves, unless somebody asked for the host.
TEST(HostProbes, ThatNobodyAskedForStopAtHalfOfTheJournal) {
  const std::vector<std::string> program = {Program("host_path"), "opens"};
  const Audit run = RunAudit({"run", "--records", "4096"}, program);
  EXPECT_EQ(run.outcome.exit, 0) << run.outcome.err;
  EXPECT_EQ(run.result(), "clean");
  EXPECT_EQ(run.report["host"]["probes"].size(), 0U);
  EXPECT_EQ(run.report["host"]["left_out"]["file_descriptor"], "too many: more than half of --records");
  for (const nlohmann::json& row : run.report["live"]) EXPECT_NE(row["kind"], "file_descriptor") << "half of them say nothing";
  const Audit sweep = RunAudit({"sweep", "--records", "4096"}, program);
  const Audit blind = RunAudit({"sweep", "--records", "4096", "--no-host"}, program);
  EXPECT_EQ(sweep.outcome.exit, 0) << sweep.outcome.err;
  EXPECT_EQ(sweep.verdicts(), blind.verdicts());
  EXPECT_EQ(RunAudit({"run", "--host", "--records", "4096"}, program).outcome.exit, 125) << "who asks for them is told";
}

// What the fault-free run shows whole and a trial does not is counted, and where it was asked for it is no pass.
TEST(HostProbes, ThatSeeLessOfATrialAreCounted) {
  const std::string unseen = "trials in which a process did not load the library of the host probes";
  for (const char* const host : {"--stacks=16", "--host"}) {
    const Audit audit = RunAudit({"sweep", "--depth", "1", host}, {Program("host_path"), "unseen"});
    const bool asked = std::string(host) == "--host";
    EXPECT_EQ(audit.outcome.exit, asked ? 3 : 0) << audit.outcome.err << audit.findings();
    EXPECT_EQ(audit.report["totals"]["verdicts"].value("not_exercised", 0), asked ? 1 : 0) << "who asks is not told that it is clean";
    if (asked) {
      EXPECT_THAT(audit.report.value("message", ""), ::testing::HasSubstr("without the host probes (--host)"));
    }
    EXPECT_THAT(audit.report["host"]["probes"].dump(), ::testing::HasSubstr("thread"));
    EXPECT_EQ(audit.report["totals"]["skipped"][unseen], 1) << audit.report["totals"];
  }
  const Audit many = RunAudit({"sweep", "--depth", "1", "--records", "4096"}, {Program("host_path"), "many"});
  EXPECT_EQ(many.outcome.exit, 0) << many.outcome.err << many.findings();
  EXPECT_EQ(
      many.report["totals"]["skipped"]["trials whose host probes stopped, since their records came to half of the journal (--records)"], 1)
      << many.report["totals"];
  for (const char* const way : {"unseen", "many"}) {
    const Audit blind = RunAudit({"sweep", "--depth", "1", "--no-host", "--records", "4096"}, {Program("host_path"), way});
    EXPECT_THAT(blind.report["totals"]["skipped"].dump(), ::testing::Not(::testing::HasSubstr("host probes")));
  }
}

// A report about one trial says of that one what was looked at.
TEST(HostProbes, ThatSeeLessOfAReplayedTrialAreLeftOut) {
  struct Case {
    const char* way;
    const char* why;
    const char* skipped;
  };
  for (const Case& one :
       {Case{"many", "too many: more than half of --records", "stopped, since their records came to half of the journal (--records)"},
        Case{"unseen", "the program did not load the library", "the program did not load their library"}}) {
    const Audit audit =
        RunAudit({"replay", "--records", "4096", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("host_path"), one.way});
    EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
    EXPECT_EQ(audit.report["host"]["probes"].size(), 0U) << one.way;
    EXPECT_EQ(audit.report["host"]["left_out"].value("thread", ""), one.why);
    EXPECT_EQ(audit.report["totals"]["skipped"].value(std::string("host probes: ") + one.skipped, 0), 1) << audit.report["totals"];
    EXPECT_THAT(audit.report["totals"]["skipped"].dump(), ::testing::Not(::testing::HasSubstr("trials"))) << "it is told once";
  }
}

std::uint32_t FlagsOf(const std::string& journal) {
  const std::string bytes = ReadFile(journal);
  std::uint32_t flags = 0;
  EXPECT_GE(bytes.size(), sizeof(faults::JournalHeader)) << journal;
  if (bytes.size() >= sizeof(faults::JournalHeader)) {
    std::memcpy(&flags, bytes.data() + offsetof(faults::JournalHeader, flags), sizeof(flags));
  }
  return flags;
}

// Where too little was seen of the fault-free run, what they told of a trial would be compared with nothing.
TEST(HostProbes, StayOutOfTrialsWhoseFaultFreeRunTheyDidNotSeeWhole) {
  for (const char* const way : {"opens", "nothing"}) {
    const std::string directory = TemporaryDirectory() + "/" + way;
    const std::uint32_t looked = std::string(way) == "nothing" ? std::uint32_t{faults::kHostProbesActive} : 0U;
    const std::vector<std::string> options = {"--keep", "--records", "4096", "--work-dir", directory};
    std::vector<std::string> sweep = {"sweep", "--isolation", "spawn", "--depth", "1"};
    sweep.insert(sweep.end(), options.begin(), options.end());
    const Audit all = RunAudit(sweep, {Program("host_path"), way});
    EXPECT_EQ(all.outcome.exit, 0) << all.outcome.err << all.findings();
    EXPECT_EQ(FlagsOf(directory + "/trial-0.journal") & faults::kHostProbesActive, looked) << way;
    EXPECT_EQ(FlagsOf(directory + "/rehearsal-1.journal") & faults::kHostProbesActive, faults::kHostProbesActive) << way;
    EXPECT_THAT(all.report["totals"]["skipped"].dump(), ::testing::Not(::testing::HasSubstr("trials"))) << all.report["totals"];
    const Audit forked = RunAudit({"sweep", "--depth", "1", "--records", "4096"}, {Program("host_path"), way});
    EXPECT_THAT(forked.report["totals"]["isolation"].dump(), ::testing::Not(::testing::HasSubstr("spawn"))) << way;
    std::vector<std::string> replay = {"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"};
    replay.insert(replay.end(), options.begin(), options.end());
    EXPECT_EQ(RunAudit(replay, {Program("host_path"), way}).outcome.exit, 0);
    EXPECT_EQ(FlagsOf(directory + "/replay-0.journal") & faults::kHostProbesActive, looked) << way;
  }
}

// One leak is one note, whatever follows it; and what is clean says in which sense.
TEST(HostProbes, WhatTheySeeOfOnePlaceIsOneNoteAndStandsBesideTheWordClean) {
  const std::vector<std::string> program = {Program("host_path"), "descriptor"};
  const std::string words = "clean; 1 host place left, judged with --host";
  const Audit sweep = RunAudit({"sweep", "--no-prune"}, program);
  EXPECT_EQ(sweep.result(), "clean");
  EXPECT_EQ(sweep.report.value("message", ""), words);
  EXPECT_THAT(sweep.outcome.err, ::testing::HasSubstr("0 defects, 1 host place left, judged with --host"));
  std::size_t notes = 0;
  for (const nlohmann::json& note : sweep.report["notes"]) {
    if (note["rule"] != "host_left") continue;
    ++notes;
    EXPECT_EQ(note["trials"], 1) << "second faults after the same first one are no further faults";
    EXPECT_THAT(note["reproduce"].get<std::string>(), ::testing::HasSubstr("--fault 'cuMemAlloc#1=OUT_OF_MEMORY,refuse' -- "));
  }
  EXPECT_EQ(notes, 1U) << sweep.report["notes"].dump(1);
  const std::vector<std::string> replay = {"replay", "--driver=sim", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse", "--"};
  std::vector<std::string> command = {Tool()};
  command.insert(command.end(), replay.begin(), replay.end());
  command.insert(command.end(), program.begin(), program.end());
  EXPECT_THAT(RunCommand(command).out, ::testing::HasSubstr("on the simulated driver: " + words + "\n"));
}

TEST(HostProbes, LeaveErrnoAloneWhereAStreamHasNoDescriptor) {
  for (const char* const host : {"--stacks=16", "--host"}) {
    const Audit audit = RunAudit({"run", host}, {Program("host_path"), "errno"});
    EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  }
}

TEST(HostProbes, SayNothingOfAHelpersMutex) {
  for (const char* const host : {"--stacks=16", "--host"}) {
    const Audit audit = RunAudit({"run", host}, {Program("host_path"), "child"});
    EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
    EXPECT_EQ(audit.findings(), "");
    for (const nlohmann::json& note : audit.report["notes"]) EXPECT_NE(note["rule"], "host_misused");
  }
}

TEST(OwnMalloc, IsNotSaidOfTheCLibrarys) {
  for (const char* const program : {"host_blocks", "marked"}) {
    const Audit audit = RunAudit({"run", "--host"}, {Program(program), "frees", "once"});
    EXPECT_THAT(audit.report["totals"]["skipped"].dump(), ::testing::Not(::testing::HasSubstr("host_heap not metered")))
        << audit.outcome.err;
  }
}

std::uint32_t FlagsAfter(const std::vector<std::string>& program) {
  const std::string directory = TemporaryDirectory() + "/work";
  const Audit audit = RunAudit({"run", "--host", "--keep", "--records", "65536", "--work-dir", directory}, program);
  EXPECT_EQ(audit.result(), "clean") << audit.outcome.err;
  const std::uint32_t flags = FlagsOf(directory + "/run.journal");
  EXPECT_NE(flags & faults::kHostProbesActive, 0U);
  return flags;
}

TEST(Mutexes, MoreThanAreFollowedRaiseAFlag) {
  EXPECT_EQ(FlagsAfter({Program("host_blocks"), "mutexes", "4000"}) & faults::kMutexesDropped, 0U);
  EXPECT_NE(FlagsAfter({Program("host_blocks"), "mutexes", "4200"}) & faults::kMutexesDropped, 0U);
}

TEST(Mutexes, OneDestroyedWhileLockedIsToldOnce) {
  const Audit asked = RunAudit({"sweep", "--host", "--depth", "1"}, {Program("host_path"), "locked_mutex"});
  EXPECT_EQ(asked.findings(), "mutex_locked mutex 1") << asked.outcome.err;
  const Audit shows = RunAudit({"sweep", "--depth", "1"}, {Program("host_path"), "locked_mutex"});
  EXPECT_EQ(shows.outcome.exit, 0) << shows.outcome.err;
  EXPECT_THAT(shows.report["notes"].dump(), ::testing::HasSubstr("host_misused"));
  EXPECT_THAT(shows.report["notes"].dump(), ::testing::Not(::testing::HasSubstr("host_left")));
}

// A call that takes its time is not what opened a descriptor, but nobody can tell while it is under way.
TEST(HostDescriptors, OfWhichACallUnderWayLeavesDoubtRaiseAFlag) {
  EXPECT_EQ(FlagsAfter({Program("host_path"), "unseen_descriptor"}) & faults::kDescriptorsDisputed, 0U);
  EXPECT_NE(FlagsAfter({Program("host_path"), "lingers"}) & faults::kDescriptorsDisputed, 0U);
  const Audit said = RunAudit({"run", "--host"}, {Program("host_path"), "lingers"});
  EXPECT_EQ(said.report["totals"]["skipped"]["host probes: descriptors that a call under way may have been opening or closing at the end"],
            1)
      << said.report["totals"];
}

// dlopen runs constructors of the program's, and dlclose destructors. The probes that wrap both are not in their call stacks.
TEST(LateConstructor, HasNoFrameOfTheProbesAroundIt) {
  const Audit audit = RunAudit({"replay", "--host", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"},
                               {Program("late_constructor"), Program("libe2e_late_constructor_library.so")});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  constexpr const char* kLost[][3] = {
      {"host_heap", "make", "open_library"}, {"stream", "make", "open_library"}, {"event", "drop", "close_library"}};
  for (const auto& [kind, innermost, around] : kLost) {
    const nlohmann::json& findings = audit.report["findings"];
    const auto lost = std::find_if(findings.begin(), findings.end(), [is = kind](const nlohmann::json& one) { return one["kind"] == is; });
    ASSERT_NE(lost, findings.end()) << kind;
    const nlohmann::json& stack = (*lost)["acquired"]["stack"];
    EXPECT_EQ(stack[0]["function"], innermost);
    EXPECT_THAT(stack.dump(), ::testing::HasSubstr(around));
    EXPECT_THAT(stack.dump(), ::testing::Not(::testing::HasSubstr("libcuaudit_host")));
  }
}

// A forked child that loads the driver: its modules came after the last look at the loader's list, which a child cannot walk.
TEST(LateDriver, WhatItKeepsForItselfInAChildIsNobodysLeak) {
  const Audit audit = RunAudit({"cycles", "--n", "1,4", "--host"}, {Program("late_library"), Program("libnvidia-late.so"), "clean", "{n}"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
  const nlohmann::json& rows = audit.report["cycles"]["rows"];
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), IsTheDriversOwn)) << rows;
}

TEST(LateDriver, WhatTheProgramsCallbackKeepsIsItsOwn) {
  const Audit audit = RunAudit({"cycles", "--n", "1,4", "--host"}, {Program("late_library"), Program("libnvidia-late.so"), "leaks", "{n}"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "growth host_heap 1");
  EXPECT_THAT(audit.report["findings"].dump(), ::testing::HasSubstr("own_callback"));
}

}  // namespace
}  // namespace cuaudit::e2e::host_test
