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

}  // namespace
}  // namespace cuaudit::e2e::good_faith_test
