// SPDX-License-Identifier: MIT
// Whole programs that do what they can after a failure (good_faith.c) have no finding under any way to fail, and no hang. Their wrong
// twins are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::good_faith_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHows = "refuse,after,persist,burst";

Audit SweepStory(const std::string& story, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"sweep", "--how", kHows});
  return RunAudit(options, {Program("good_faith"), story});
}

std::uint64_t NotesOf(const Audit& audit, const std::string& rule) {
  std::uint64_t count = 0;
  for (const nlohmann::json& note : audit.report["notes"]) count += note["rule"] == rule ? 1 : 0;
  return count;
}

class Silent : public ::testing::TestWithParam<const char*> {};

TEST_P(Silent, UnderEveryWayToFail) {
  for (const bool host : {false, true}) {
    const Audit audit = SweepStory(GetParam(), host ? std::vector<std::string>{"--host"} : std::vector<std::string>{});
    EXPECT_EQ(audit.outcome.exit, 0) << (host ? "with --host: " : "") << audit.findings() << audit.outcome.err;
  }
}

TEST_P(Silent, WhereverTheSchedule) {
  for (const char* const schedule : {"fifo", "random:3", "adversarial"}) {
    const Audit audit = SweepStory(GetParam(), {std::string("--schedule=") + schedule});
    EXPECT_EQ(audit.outcome.exit, 0) << schedule << ": " << audit.findings() << audit.outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Silent, ::testing::Values("upload", "handover", "context", "popped", "object", "signal"),
                         [](const auto& test) { return std::string(test.param); });

TEST(GoodFaith, ARefusedWaitIsToldAsANote) {
  const Audit audit = SweepStory("handover");
  EXPECT_GT(NotesOf(audit, "could_not_know"), 0U);
  const Audit upload = SweepStory("upload");
  EXPECT_GT(NotesOf(upload, "could_not_know"), 0U);
}

TEST(GoodFaith, WhoDoesNotWaitIsFound) {
  const Audit audit = SweepStory("upload_hasty");
  EXPECT_EQ(audit.outcome.exit, 1);
  EXPECT_THAT(audit.findings(), HasSubstr("host_freed_in_use pinned_memory 1"));
}

TEST(GoodFaith, WhoReportsSuccessAfterARefusedWaitIsFound) {
  const Audit audit = SweepStory("handover_blind");
  EXPECT_EQ(audit.outcome.exit, 1);
  EXPECT_THAT(audit.findings(), HasSubstr("unordered_access device_memory 1"));
}

TEST(GoodFaith, AnOwnContextIsRelied) {
  const Audit audit = SweepStory("context");
  EXPECT_GT(NotesOf(audit, "relied_on_context"), 0U);
  const Audit asked = SweepStory("context", {"--orphans=finding"});
  EXPECT_EQ(asked.outcome.exit, 1);
  EXPECT_THAT(asked.findings(), HasSubstr("orphaned stream 1"));
  EXPECT_THAT(asked.report["findings"][0]["reproduce"].get<std::string>(), HasSubstr("--orphans=finding"));
  const Audit callers = SweepStory("context_callers");
  EXPECT_EQ(callers.outcome.exit, 1);
  EXPECT_THAT(callers.findings(), HasSubstr("orphaned stream 1"));
}

TEST(GoodFaith, MemoryOfAnObjectThatWasNeverMadeIsFound) {
  const Audit audit = SweepStory("object_lost", {"--host"});
  EXPECT_EQ(audit.outcome.exit, 1);
  EXPECT_THAT(audit.findings(), HasSubstr("leak host_heap 1"));
}

// The destructor of that object aborts when it is called in _exit.
TEST(GoodFaith, NoDestructorRunsWhereTheProgramCallsExitAtOnce) {
  const Audit audit = SweepStory("leaves", {"--host"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_GT(NotesOf(audit, "abandoned_at_exit"), 0U);
}

TEST(GoodFaith, WhatWentWithItsContextWasNotRetried) {
  const Audit audit = SweepStory("popped");
  EXPECT_EQ(NotesOf(audit, "retained_for_retry"), 0U) << audit.report["notes"].dump(1);
}

TEST(GoodFaith, ACleanSweepSaysThatCyclesDiffer) {
  const Audit audit = RunAudit({"sweep"}, {Program("good_faith"), "modules", "4"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_THAT(audit.report["totals"]["skipped"].dump(), AllOf(HasSubstr("3 module more"), HasSubstr("run cuaudit cycles")));
  const Audit once = RunAudit({"sweep"}, {Program("good_faith"), "modules_once", "4"});
  EXPECT_EQ(once.outcome.exit, 0) << once.findings() << once.outcome.err;
  EXPECT_THAT(once.report["totals"]["skipped"].dump(), Not(HasSubstr("cycles differ")));
  EXPECT_EQ(RunAudit({"cycles"}, {Program("good_faith"), "modules", "4"}).findings(), "growth module 1");
}

// A library that changes a setting of its application and puts it back (settings.c): silent under every way to fail and in cycles. Its
// wrong twins leave the setting on their way back from a failure.
struct Story {
  const char* name;
  const char* change;
  const char* rule = "setting_not_restored";
};

class Left : public ::testing::TestWithParam<Story> {};

// Two trials show it: without memory, and without the work in it.
TEST_P(Left, OnTheWayBackFromAFailure) {
  for (const char* const isolation : {"fork", "spawn", "cycle"}) {
    const Audit audit = RunAudit({"sweep", "--isolation", isolation}, {Program("settings"), std::string(GetParam().name) + "_left", "2"});
    EXPECT_EQ(audit.outcome.exit, 1) << isolation << ": " << audit.outcome.err;
    ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
    ASSERT_EQ(audit.report["defects"].size(), 1U) << isolation << ": " << audit.findings();
    const nlohmann::json& defect = audit.report["defects"][0];
    EXPECT_EQ(defect["rule"], GetParam().rule);
    for (const nlohmann::json& finding : audit.report["findings"]) {
      EXPECT_THAT(finding["where"].get<std::string>(), HasSubstr(GetParam().change)) << isolation;
    }
  }
}

TEST_P(Left, NotByTheRepairedProgram) {
  for (const std::string how : {"refuse", "after", "persist", "burst"}) {
    const Audit audit = RunAudit({"sweep", "--how", how}, {Program("settings"), GetParam().name, "2"});
    EXPECT_EQ(audit.outcome.exit, 0) << how << ": " << audit.findings() << audit.outcome.err;
  }
}

// Nothing fails there, and nothing is left.
TEST_P(Left, NotInCycles) {
  for (const std::string twin : {"", "_left"}) {
    const Audit audit = RunAudit({"cycles"}, {Program("settings"), GetParam().name + twin, "{n}"});
    EXPECT_EQ(audit.outcome.exit, 0) << twin << ": " << audit.findings() << audit.outcome.err;
    EXPECT_EQ(audit.result(), "clean");
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Left,
                         ::testing::Values(Story{"limit", "cuCtxSetLimit"}, Story{"threshold", "cuMemPoolSetAttribute"},
                                           Story{"mode", "cuThreadExchangeStreamCaptureMode"},
                                           Story{"context", "cuCtxSetCurrent", "context_not_restored"}),
                         [](const auto& test) { return std::string(test.param.name); });

// The large way of working fails in every cycle, so no run shows that the threshold is put back. What the pool keeps then does not grow:
// the meter of device memory has its ten cycles behind the two to warm up.
TEST(FullDevice, LosesTheSettingInEachCycleAndNothingGrows) {
  for (const char* const story : {"full", "full_left"}) {
    const Audit cycles = RunAudit({"cycles", "--n", "1,12"}, {Program("settings"), story, "{n}"});
    EXPECT_EQ(cycles.outcome.exit, 0) << story << ": " << cycles.findings() << cycles.outcome.err;
    EXPECT_EQ(cycles.result(), "clean");
    EXPECT_EQ(cycles.report["notes"], nlohmann::json::array()) << story;
    const Audit sweep = RunAudit({"sweep"}, {Program("settings"), story, "2"});
    EXPECT_EQ(sweep.outcome.exit, 0) << story << ": " << sweep.findings() << sweep.outcome.err;
  }
}

}  // namespace
}  // namespace cuaudit::e2e::good_faith_test
