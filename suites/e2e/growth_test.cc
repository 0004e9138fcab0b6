// SPDX-License-Identifier: MIT
// Cycles of whole programs: what grows from cycle to cycle, by count and by noisy meters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::growth_test {
namespace {

using ::testing::HasSubstr;

// Whole programs that keep more after more cycles: a leak, a cache that fills and stops, and what these cycles cannot tell apart.

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

// Noisy meters over the cycles of whole programs: what grows is found, what does not is certified with a bound, beside a control arm.

const nlohmann::json* Row(const Audit& audit, const std::string& name) {
  if (audit.report.is_null() || !audit.report.contains("meters")) return nullptr;
  for (const nlohmann::json& row : audit.report["meters"]["rows"]) {
    if (row["name"] == name) return &row;
  }
  return nullptr;
}

TEST(Meters, ACleanProgramIsCertifiedWithABound) {
  const Audit audit = RunAudit({"cycles"}, {Program("marked"), "clean", "30"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  for (const char* const name : {"heap_bytes", "mapped_bytes", "device_bytes"}) {
    const nlohmann::json* const row = Row(audit, name);
    ASSERT_NE(row, nullptr) << name << '\n' << audit.report["meters"].dump();
    EXPECT_FALSE((*row)["grows"]) << name;
    EXPECT_EQ((*row)["cycles"], 20) << name;
    EXPECT_GE((*row)["detectable_bytes_per_cycle"], 1) << name;
    EXPECT_GE((*row)["control"]["windows"], 20) << name;
    EXPECT_EQ((*row)["control"]["false_alarms"], 0) << name;
  }
  EXPECT_THAT(audit.report["meters"]["absent"]["resident_bytes"].get<std::string>(), HasSubstr("simulated driver"));
}

TEST(Meters, GrowthThatNoKindExplainsIsAFindingOfItsOwn) {
  const Audit audit = RunAudit({"cycles"}, {Program("host_kind"), "data_segment", "12"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "growth mapped_bytes 1");
  ASSERT_NE(Row(audit, "mapped_bytes"), nullptr);
  EXPECT_EQ((*Row(audit, "mapped_bytes"))["bytes_per_cycle"], 12288);
}

TEST(Meters, GrowthThatAKindExplainsIsSaidOnce) {
  const Audit audit = RunAudit({"cycles"}, {Program("host_kind"), "host_heap", "12"});
  EXPECT_EQ(audit.findings(), "growth host_heap 1");
  ASSERT_NE(Row(audit, "heap_bytes"), nullptr);
  EXPECT_TRUE((*Row(audit, "heap_bytes"))["grows"]);
  EXPECT_EQ((*Row(audit, "heap_bytes"))["bytes_per_cycle"], 112) << "100 bytes, as the C library rounds them";
}

TEST(Meters, ALeakOfDeviceMemoryIsSeenByItsOwnMeterToo) {
  const Audit audit = RunAudit({"cycles", "--detect", "64KiB"}, {Program("leak_kind"), "device_memory", "{n}"});
  EXPECT_EQ(audit.findings(), "growth device_memory 1") << audit.outcome.err;
}

// Always one buffer: no kind of object grows, and its bytes do.
TEST(Meters, ABufferThatIsMadeLargerInEachCycleIsSeenByItsBytes) {
  const Audit audit = RunAudit({"cycles"}, {Program("looping"), "widens", "12"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "growth process_device_bytes 1");
  ASSERT_NE(Row(audit, "process_device_bytes"), nullptr);
  EXPECT_EQ((*Row(audit, "process_device_bytes"))["bytes_per_cycle"], 1024);
  const Audit clean = RunAudit({"cycles"}, {Program("looping"), "clean", "12"});
  EXPECT_EQ(clean.findings(), "") << clean.outcome.err;
  ASSERT_NE(Row(clean, "process_device_bytes"), nullptr);
  EXPECT_EQ((*Row(clean, "process_device_bytes"))["detectable_bytes_per_cycle"], 1);
}

TEST(Meters, TooFewCyclesCertifyNothingAndSaySo) {
  const Audit audit = RunAudit({"cycles"}, {Program("marked"), "clean", "5"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_TRUE(audit.report["meters"]["rows"].empty());
  EXPECT_THAT(audit.report["meters"]["absent"]["all"].get<std::string>(), HasSubstr("marked 5 cycles"));
}

TEST(Detect, RunsAsManyCyclesAsTheBoundNeeds) {
  const Audit audit = RunAudit({"cycles", "--detect", "64B/cycle"}, {Program("marked"), "clean", "{n}"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.report["meters"]["asked_bytes_per_cycle"], 64);
  ASSERT_GE(audit.report["meters"]["rows"].size(), 3U);
  for (const nlohmann::json& row : audit.report["meters"]["rows"]) {
    EXPECT_LE(row["detectable_bytes_per_cycle"], 64) << row.dump();
    EXPECT_GE(row["cycles"], 640) << "a page of 4096 bytes, 64 at a time, in each of ten blocks";
  }
}

TEST(Detect, ComparesProcessesWhereThereAreNoMarks) {
  const Audit audit = RunAudit({"cycles", "--detect", "4KiB"}, {Program("leak_kind"), "stream", "{n}", "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_TRUE(audit.report["meters"]["of_runs"]);
  const nlohmann::json* const row = Row(audit, "heap_bytes");
  ASSERT_NE(row, nullptr) << audit.report["meters"].dump();
  EXPECT_FALSE((*row)["grows"]);
  EXPECT_LE((*row)["detectable_bytes_per_cycle"], 4096);
}

TEST(Detect, BadBoundsAreUsageErrors) {
  for (const char* const bound : {"0", "-1", "4kb", "KiB", "4KiB/second", "99999999999999999999"}) {
    const Audit audit = RunAudit({"cycles", "--detect", bound}, {Program("marked"), "clean", "{n}"});
    EXPECT_EQ(audit.outcome.exit, 2) << bound;
    EXPECT_EQ(LineCount(audit.outcome.err), 1U) << audit.outcome.err;
    EXPECT_THAT(audit.outcome.err, HasSubstr("expected bytes per cycle"));
  }
}

TEST(ControlArm, IsItselfNeutral) {
  const Audit audit = RunAudit({"cycles", "--detect", "1KiB"}, {DropInDirectory() + "/empty_lifecycle", "{n}"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "");
}

}  // namespace
}  // namespace cuaudit::e2e::growth_test
