// SPDX-License-Identifier: MIT
// Whole programs that break one rule, each beside the same program that keeps it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "suites/support/tool.h"

namespace cuaudit::e2e::verdicts_test {
namespace {

using ::testing::HasSubstr;

// Whole programs that break one rule, or use an object after its foundation was destroyed, and whole programs that look as if they did and
// must not be blamed.

struct Misuse {
  const char* mode;
  const char* findings;
};

void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.mode; }

class MisuseOf : public ::testing::TestWithParam<Misuse> {};

TEST_P(MisuseOf, IsFoundInAFaultFreeRun) {
  const Audit audit = RunAudit({"run"}, {Program("misuse"), GetParam().mode});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), GetParam().findings);
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_FALSE(finding["where"].get<std::string>().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Every, MisuseOf,
                         ::testing::Values(Misuse{"double_release", "double_release device_memory 1"},
                                           Misuse{"use_after_release", "use_after_release device_memory 1"},
                                           Misuse{"over_released_primary", "over_released_primary_context primary_context 1"},
                                           Misuse{"unbalanced_stack", "context_stack_unbalanced context_stack_entry 1"},
                                           Misuse{"wrong_order", "use_after_release stream 1, use_after_release stream 1"}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(Silence, TheRightOrderOfTeardownIsNoMisuse) {
  const Audit audit = RunAudit({"run"}, {Program("misuse"), "right_order"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
}

TEST(Silence, ARetriedAllocationAbsorbsItsFault) {
  const Audit audit = RunAudit({"sweep", "--call", "cuMemAlloc"}, {Program("silent"), "retry"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  EXPECT_EQ(audit.verdicts(), R"({"absorbed":1,"pass":1})") << "the retry can be made to fail too";
}

TEST(Silence, ARetriedAllocationDoesNotSurviveAPersistentFault) {
  const Audit audit = RunAudit({"sweep", "--call", "cuMemAlloc", "--how", "persist"}, {Program("silent"), "retry"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  EXPECT_EQ(audit.verdicts(), R"({"pass":1})");
}

TEST(Silence, AnOptionalFeatureThatIsRefusedIsAbsorbed) {
  const Audit audit = RunAudit({"sweep", "--call", "cuMemAllocManaged", "--codes", "all"}, {Program("silent"), "optional"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_GT(audit.report["totals"]["trials"], 1) << "all documented codes";
  EXPECT_EQ(audit.report["totals"]["verdicts"]["absorbed"], audit.report["totals"]["trials"]);
}

TEST(Silence, ALazyCacheIsNeitherGrowthNorALeak) {
  const Audit cycles = RunAudit({"cycles"}, {Program("silent"), "cache", "{n}"});
  EXPECT_EQ(cycles.outcome.exit, 0) << cycles.findings();
  EXPECT_EQ(cycles.result(), "clean");
  // The orphan of the fault-free run is process-lifetime; the same object on a path with a fault is too.
  const Audit sweep = RunAudit({"sweep", "--call", "cuMemAlloc"}, {Program("silent"), "cache", "3"});
  EXPECT_EQ(sweep.outcome.exit, 0) << sweep.findings() << sweep.outcome.err;
  EXPECT_EQ(sweep.report["totals"]["trials"], 3) << sweep.outcome.err;
  const Audit pruned = RunAudit({"sweep", "--call", "cuMemAlloc", "--prune=all"}, {Program("silent"), "cache", "3"});
  EXPECT_EQ(pruned.report["totals"]["trials"], 1) << "three rounds, one place, one state" << pruned.outcome.err;
}

TEST(Silence, CleaningUpAtExitIsCleaningUp) {
  const Audit audit = RunAudit({"sweep"}, {Program("silent"), "atexit"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
  EXPECT_FALSE(audit.report["totals"]["verdicts"].contains("abandoned_at_exit")) << audit.verdicts();
}

TEST(Silence, TheLastUserOfASharedObjectReleasesItForAll) {
  const Audit audit = RunAudit({"sweep"}, {Program("silent"), "shared"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
}

TEST(Sweep, ARefusedReleaseIsTheDriversAndNotTheProgramsLeak) {
  const Audit audit = RunAudit({"sweep", "--call", "cuStreamDestroy"}, {Program("client_linked")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  EXPECT_EQ(audit.verdicts(), R"({"release_refused":1})");
}

TEST(Sweep, EveryCallOfACleanProgramIsTriedOnce) {
  const Audit audit = RunAudit({"sweep", "--depth", "1"}, {Program("client_linked")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean");
  EXPECT_EQ(audit.calls(), 12U);
  EXPECT_EQ(audit.report["totals"]["trials"], 12);
  EXPECT_EQ(audit.report["totals"]["fired"], 12);
}

TEST(Sweep, WhatDiesWithTheProcessIsALeakWhenTheContextStays) {
  const Audit audit = RunAudit({"sweep", "--call", "cuDevicePrimaryCtxRelease"}, {Program("client_linked")});
  EXPECT_EQ(audit.verdicts(), R"({"release_refused":1})") << audit.findings();
  const Audit after = RunAudit({"replay", "--fault", "cuDevicePrimaryCtxRelease#1=INVALID_DEVICE,after"}, {Program("client_linked")});
  EXPECT_EQ(after.verdicts(), R"({"absorbed":1})") << "the reference is gone although the call failed: " << after.findings();
}

TEST(Sweep, EveryWayToFailIsJudgedOnACleanProgram) {
  const Audit audit = RunAudit({"sweep", "--how", "refuse,refuse+garbage,after,persist,burst:2,sticky"}, {Program("client_linked")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
  EXPECT_GT(audit.report["totals"]["trials"], 50);
  // `after` an acquiring call: the object exists and the program was told that it does not. Nobody can release it.
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_NE(finding["fault"]["how"], "refuse") << finding.dump(1);
    EXPECT_NE(finding["rule"], "crash") << finding.dump(1);
  }
}

TEST(Sweep, EveryFindingOfADefectiveProgramNamesItsFaultAndItsSite) {
  const Audit audit = RunAudit({"sweep"}, {Program("defective")});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.findings(), "orphaned event 1, orphaned stream 1") << "they die with the context that is given back";
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_EQ(finding["fault"]["call"], "cuMemAlloc");
    EXPECT_EQ(finding["fault"]["occurrence"], 1);
    EXPECT_THAT(finding["acquired"]["stack"].dump(), ::testing::HasSubstr("\"make_both\""));
    EXPECT_THAT(finding["fault"]["stack"].dump(), ::testing::HasSubstr("\"make_buffer\""));
  }
}

// A one-shot tool that exits when its init fails, judged without --host.
TEST(Phases, AnExitWhenInitFailsIsNoLeakAndNothingUnproved) {
  const Audit audit = RunAudit({"sweep"}, {Program("oneshot"), "marked"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.result(), "clean");
  EXPECT_GE(audit.report["totals"]["verdicts"]["abandoned_at_exit"], 3);
  for (const auto& note : audit.report["notes"]) EXPECT_NE(note["rule"], "abandoned_at_exit") << note.dump();
  EXPECT_THAT(audit.report["notes"].dump(), ::testing::HasSubstr("\"rule\":\"abandoned_in_init\""));
}

TEST(Phases, AnExitWhenTheWorkFailsIsALeak) {
  const Audit audit = RunAudit({"sweep", "--depth=1"}, {Program("oneshot"), "careless"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_EQ(audit.result(), "findings");
  for (const auto& finding : audit.report["findings"]) {
    EXPECT_EQ(finding["rule"], "leak") << finding.dump();
    EXPECT_THAT(finding["fault"]["text"].get<std::string>(), ::testing::StartsWith("cuMem")) << "only faults of the work";
  }
  EXPECT_THAT(audit.findings(), ::testing::HasSubstr("leak stream 1"));
}

TEST(Phases, WithoutMarksNobodyCanTell) {
  const Audit audit = RunAudit({"sweep"}, {Program("oneshot"), "unmarked"});
  EXPECT_EQ(audit.outcome.exit, 3) << audit.findings();
  EXPECT_EQ(audit.result(), "not_exercised");
  const Audit strict = RunAudit({"sweep", "--abandoned-is-leak"}, {Program("oneshot"), "marked"});
  EXPECT_EQ(strict.result(), "findings");
}

struct Standing {
  const char* mode;
  const char* findings;
};

void PrintTo(const Standing& standing, std::ostream* out) { *out << standing.mode; }

class StandingOn : public ::testing::TestWithParam<Standing> {};

TEST_P(StandingOn, WhatIsGoneIsAFinding) {
  const Audit audit = RunAudit({"run"}, {Program("standing"), GetParam().mode});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), GetParam().findings);
}

TEST_P(StandingOn, WhatIsThereIsSilence) {
  const Audit audit = RunAudit({"run"}, {Program("standing"), GetParam().mode, "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Every, StandingOn,
                         ::testing::Values(Standing{"texture", "destroyed_under_user array 1"},
                                           Standing{"surface", "destroyed_under_user array 1"},
                                           Standing{"level", "destroyed_under_user mipmapped_array 1"},
                                           Standing{"node", "destroyed_in_use module 1"},  // the simulated driver's proof
                                           Standing{"function", "destroyed_under_user module 1"},
                                           Standing{"registration", "destroyed_under_user host_registration 1"}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(Standing, TextSaysWhoDestroyedIt) {
  const CommandResult text = RunCommand({Tool(), "run", "--driver=sim", "--", Program("standing"), "texture"});
  EXPECT_THAT(text.out, ::testing::HasSubstr("destroyed by cuArrayDestroy"));
  const CommandResult pages = RunCommand({Tool(), "run", "--driver=sim", "--", Program("standing"), "registration"});
  EXPECT_THAT(pages.out, ::testing::HasSubstr("destroyed by munmap"));
}

// Two simulated devices: what goes wrong between them, each beside the same program that does it right.

Audit Two(const char* command, const char* mode, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {command, "--devices=2"});
  return RunAudit(options, {Program("two_devices"), mode});
}

TEST(Devices, EachTrialHasAsManyAsTheRunWasAskedFor) {
  EXPECT_EQ(RunAudit({"run"}, {Program("two_devices"), "right"}).outcome.exit, 3) << "with one device the program fails";
  const Audit audit = Two("sweep", "right");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.result(), "clean");
  EXPECT_THAT(audit.report["driver"]["world"].get<std::string>(), HasSubstr("devices=2;"));
  EXPECT_EQ(audit.report["totals"]["trials"], audit.report["totals"]["fired"]);
  EXPECT_EQ(Two("sweep", "right", {"--isolation=spawn"}).result(), "clean");
}

TEST(Devices, MemoryFreedWhereADeadContextOfTheOtherIsCurrent) {
  const Audit audit = Two("run", "freed_elsewhere");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "findings");
  EXPECT_EQ(audit.findings(), "left_at_exit device_memory 1, wrong_context device_memory 1");
  EXPECT_EQ(audit.report["findings"][0]["where"], "cuMemFree");
  EXPECT_THAT(audit.report["findings"][0]["reproduce"].get<std::string>(), HasSubstr(" --devices=2 "));
  EXPECT_EQ(Two("run", "right").result(), "clean");
}

TEST(Devices, ThePrimaryContextOfTheOtherDeviceGivenBack) {
  const Audit audit = Two("run", "wrong_primary");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_THAT(audit.findings(), HasSubstr("over_released_primary_context primary_context 1"));
  EXPECT_THAT(audit.findings(), HasSubstr("left_at_exit primary_context 1"));
}

// A lost context takes its own objects along, not those of the other device.
TEST(Devices, OneContextIsLostAndTheOtherDeviceIsForgotten) {
  const Audit audit = Two("sweep", "forgets_other", {"--how=sticky", "--call=cuMemsetD8Async", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.verdicts(), R"({"leak":2})") << audit.findings();
  EXPECT_EQ(audit.findings(),
            "leak device_memory 1, leak device_memory 1, leak primary_context 1, leak primary_context 1, leak stream 1, leak stream 1");
  EXPECT_EQ(audit.report["defects"].size(), 2U) << "one for each way out";
}

TEST(Devices, OneContextIsLostAndTheOtherDeviceGoesOn) {
  const Audit audit = Two("sweep", "forgets_other_right", {"--how=sticky", "--call=cuMemsetD8Async", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_EQ(audit.report["totals"]["fired"], 2);
}

// Peer access stays with the context, and the next cycle cannot enable it again.
TEST(Devices, PeerAccessThatStaysEnabledIsLostAndStandsInTheWay) {
  const Audit audit = Two("sweep", "peer", {"--call=cuMemcpyPeer", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_THAT(audit.findings(), HasSubstr("orphaned peer_access 1"));
  EXPECT_THAT(audit.findings(), HasSubstr("not_recovered"));
  EXPECT_THAT(audit.report["findings"].dump(), HasSubstr("cuCtxEnablePeerAccess"));
}

TEST(Devices, PeerAccessOfOneDirectionIsLostWithTheOther) {
  const Audit audit = Two("sweep", "both_ways", {"--call=cuCtxEnablePeerAccess", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "orphaned peer_access 1");
  EXPECT_EQ(audit.report["defects"].size(), 1U);
  const Audit right = Two("sweep", "both_ways_right");
  EXPECT_EQ(right.outcome.exit, 0) << right.findings() << right.outcome.err;
  EXPECT_EQ(right.result(), "clean") << right.findings();
}

// Peer access has no handle of its own.
TEST(Devices, PeerAccessIsExplainedByItsTwoContexts) {
  const std::string directory = TemporaryDirectory() + "/work";
  RunCommand({Tool(), "run", "--driver=sim", "--devices=2", "--keep", "--work-dir", directory, "--output", "/dev/null", "--",
              Program("leak_kind"), "peer_access", "1"});
  const CommandResult explained = RunCommand({Tool(), "explain", directory + "/run.journal"});
  EXPECT_EQ(explained.exit, 0) << explained.err;
  EXPECT_THAT(explained.out, ::testing::ContainsRegex("\npeer_access of context 0x[0-9a-f]+ to 0x[0-9a-f]+, 0 bytes, orphaned"));
}

TEST(Devices, PeerAccessThatIsDisabledIsSilence) {
  const Audit audit = Two("sweep", "peer_right", {"--call=cuMemcpyPeer", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_GE(audit.report["totals"]["recovery_checked"], 1);
}

// Programs that share memory by file descriptors: what the driver makes for them must be closed, and what it takes over must not.

class Exports : public ::testing::TestWithParam<const char*> {};

TEST_P(Exports, ADescriptorThatTheFailingPathForgetsIsALeak) {
  const Audit audit = RunAudit({"sweep", "--call", "cuEventCreate"}, {Program("exports"), GetParam()});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "leak file_descriptor 1");
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_THAT(audit.report["findings"][0]["acquired"]["stack"].dump(), HasSubstr("export_"));
}

TEST_P(Exports, OneThatEveryPathClosesIsSilence) {
  for (const char* const isolation : {"fork", "spawn"}) {
    const Audit audit = RunAudit({"sweep", "--isolation", isolation}, {Program("exports"), GetParam(), "clean"});
    EXPECT_EQ(audit.outcome.exit, 0) << isolation << ": " << audit.findings() << audit.outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Exports, ::testing::Values("allocation", "pool", "range"));

class Imports : public ::testing::TestWithParam<const char*> {};

TEST_P(Imports, ADescriptorThatTheDriverTookOverIsClosed) {
  const Audit audit = RunAudit({"sweep", "--call", "cuEventCreate"}, {Program("exports"), GetParam()});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "closed_after_import file_descriptor 1");
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_THAT(audit.report["findings"][0]["other"].dump(), HasSubstr("cuImportExternalMemory"));
}

TEST_P(Imports, OneThatIsLeftToTheDriverIsSilence) {
  const Audit audit = RunAudit({"sweep", "--how", "refuse,after"}, {Program("exports"), GetParam(), "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Exports, Imports, ::testing::Values("import", "unseen"));

// The program closes its own file, which has the number of the descriptor that the driver took over and closed.
TEST(ImportsOfExports, AFileUnderTheSameNumberIsTheProgramsToClose) {
  const Audit audit = RunAudit({"sweep", "--call", "cuEventCreate"}, {Program("exports"), "reused"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
}

}  // namespace
}  // namespace cuaudit::e2e::verdicts_test
