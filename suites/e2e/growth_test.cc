// SPDX-License-Identifier: MIT
// Whole programs that keep more after more cycles: a leak, a cache that fills and stops, and what these cycles cannot tell apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::growth_test {
namespace {

using ::testing::HasSubstr;

Audit Cycles(const char* how, const std::vector<std::string>& options = {}) {
  std::vector<std::string> words = {"cycles", "--no-host"};
  words.insert(words.end(), options.begin(), options.end());
  return RunAudit(words, {Program("fills"), how, "{n}"});
}

// "event 1 8 8: bounded"
std::string Course(const Audit& audit) {
  if (audit.report.is_null()) return audit.outcome.err;
  std::string text;
  for (const nlohmann::json& row : audit.report["cycles"]["rows"]) {
    if (!row.contains("course")) continue;
    text += (text.empty() ? "" : "; ") + row["kind"].get<std::string>();
    for (const nlohmann::json& live : row["live"]) text += " " + live.dump();
    text += ": " + row["course"]["trend"].get<std::string>();
  }
  return text;
}

std::string Note(const Audit& audit, const std::string& rule) {
  for (const nlohmann::json& note : audit.report["notes"]) {
    if (note["rule"] == rule) return note["detail"].get<std::string>();
  }
  return {};
}

TEST(Bounded, ARingThatIsFullAfterEightCycles) {
  const Audit audit = Cycles("ring");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(Course(audit), "event 1 8 8 8 8: bounded");
  EXPECT_EQ(Note(audit, "bounded"), "8 after 10 cycles, no more after 80");
}

TEST(Bounded, ACacheThatHolds32IsFollowedUntilItIsFull) {
  const Audit audit = Cycles("cache32");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(Course(audit), "event 1 10 20 32 32: bounded");
}

TEST(Bounded, WhatTheFirstCyclesKeepIsNoLeak) {
  const Audit audit = Cycles("first");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(Course(audit), "event 1 3 3 3 3: bounded");
}

TEST(Bounded, WhatOneCycleKeepsIsWatchedForLonger) {
  const Audit audit = Cycles("once");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(Course(audit), "event 0 1 1 1 1: bounded");
}

TEST(Growth, ALeakInEachCycleGoesOnToTheBound) {
  const Audit audit = Cycles("each");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "growth event 1");
  EXPECT_EQ(Course(audit), "event 1 10 20 40 80: growth");
  EXPECT_EQ(audit.report["findings"][0]["detail"], "1 more a cycle, up to 80 cycles");
}

TEST(Growth, ALeakInEveryTenthCycleIsFoundWithItsSlope) {
  const Audit audit = Cycles("tenth");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(Course(audit), "event 0 1 2 4 8: growth");
  EXPECT_EQ(audit.report["findings"][0]["detail"], "0.10 to 0.11 more a cycle, up to 80 cycles");
}

// A full cache of 64 would look the same up to here.
TEST(Growth, WithoutFurtherRunsTheGivenCountsDecide) {
  const Audit audit = Cycles("ring", {"--most-cycles", "10"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(Course(audit), "event 1 8: growth");
  EXPECT_THAT(audit.report["findings"][0]["reproduce"].get<std::string>(), HasSubstr("--most-cycles=10"));
}

TEST(Growth, AProgramThatRefusesLongerRunsIsJudgedByTheShorterOnes) {
  const Audit audit = Cycles("limited");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(Course(audit), "event 1 10: growth");
  EXPECT_EQ(
      audit.report["totals"]["skipped"]
                  ["longer runs: the program did not end as expected with 20 cycles, or the journal has no room for them (--records)"],
      1);
}

TEST(Undecided, ACacheThatIsNotFullAtTheBoundIsNotCleanAndSaysWhatWouldTell) {
  const Audit audit = Cycles("cache64");
  EXPECT_EQ(audit.outcome.exit, 3) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "not_exercised");
  EXPECT_EQ(Course(audit), "event 1 10 20 40 64: undecided");
  EXPECT_THAT(audit.report["message"].get<std::string>(),
              HasSubstr("1 place grew, and these cycles do not tell a leak from a cache that fills: 160 cycles would"));
  EXPECT_EQ(Note(audit, "undecided"), "64 after 80 cycles, not steadily: 160 cycles would tell");
  const Audit longer = Cycles("cache64", {"--most-cycles", "160"});
  EXPECT_EQ(longer.outcome.exit, 0) << longer.outcome.err;
  EXPECT_EQ(Course(longer), "event 1 10 20 40 64 64: bounded");
}

// One run has all counts: the rows show the first and the last one.
TEST(Marked, EachCycleIsACount) {
  const auto marked = [](const char* how, const char* cycles) {
    return RunAudit({"cycles", "--no-host"}, {Program("fills"), how, cycles, "marked"});
  };
  const Audit full = marked("ring", "16");
  EXPECT_EQ(full.outcome.exit, 0) << full.outcome.err;
  EXPECT_EQ(Course(full), "event 1 8: bounded");
  EXPECT_EQ(Note(full, "bounded"), "8 after 8 cycles, no more after 16");
  const Audit early = marked("ring", "12");
  EXPECT_EQ(early.outcome.exit, 3) << early.outcome.err;
  EXPECT_EQ(Note(early, "undecided"), "8 after 8 cycles, no more after 12: 16 cycles would tell");
  EXPECT_EQ(Course(marked("first", "12")), "event 1 3: bounded");
  EXPECT_EQ(Course(marked("each", "12")), "event 1 12: growth");
  EXPECT_EQ(Course(marked("tenth", "40")), "event 0 4: growth");
  EXPECT_EQ(Course(marked("cache64", "1000")), "event 1 64: bounded");
}

}  // namespace
}  // namespace cuaudit::e2e::growth_test
