// SPDX-License-Identifier: MIT
// Noisy meters over the cycles of whole programs: what grows is found, what does not is certified with a bound, beside a control arm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::meters_test {
namespace {

using ::testing::HasSubstr;

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
}  // namespace cuaudit::e2e::meters_test
