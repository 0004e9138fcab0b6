// SPDX-License-Identifier: MIT
// Readings of a journal as series, and the bounds of --detect as text.
#include "harness/cycle/meters.h"

#include <gtest/gtest.h>

#include "harness/cycle/certificate.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::meters_test {
namespace {

RunMeters Ends(std::uint64_t heap) {
  RunMeters run;
  run.at_exit.push_back({"heap_bytes", 16, {heap}});
  return run;
}

// What nobody asked about is said, where there is something to ask.
TEST(Meters, ThatAreNotReadAreNamedWithTheReason) {
  const TemporaryDir dir;
  for (const faults::DriverKind kind : {faults::DriverKind::Simulated, faults::DriverKind::Genuine}) {
    JournalBuilder journal(dir.File(kind == faults::DriverKind::Genuine ? "genuine" : "simulated"));
    journal.header().driver_kind.store(static_cast<std::uint32_t>(kind));
    journal.Mark(faults::MarkKind::CycleBegin, 1);
    journal.Mark(faults::MarkKind::CycleEnd, 1);
    const RunMeters meters = ReadMeters(journal.Read());
    EXPECT_EQ(meters.absent.count("process_device_bytes"), 0U) << "the calls tell";
    EXPECT_EQ(meters.absent.count("device_bytes"), 1U);
    EXPECT_EQ(meters.absent.count("resident_bytes"), 1U);
  }
}

TEST(Meters, EndsOfRunsBecomeOneSeries) {
  std::vector<RunMeters> runs;
  for (std::uint64_t i = 0; i < 10; ++i) runs.push_back(Ends(1000 + 64 * i));
  const std::vector<MeterSeries> joined = JoinEnds(runs);
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].readings.size(), 10U);
  const report::Meter row = JudgeMeter(joined[0], nullptr, 2);
  EXPECT_TRUE(row.grows);
  EXPECT_EQ(row.per_cycle, 32);
}

TEST(Meters, AMeterThatOneRunLacksIsLeftOut) {
  EXPECT_TRUE(JoinEnds(std::vector<RunMeters>{Ends(1), RunMeters()}).empty());
  EXPECT_TRUE(JoinEnds({}).empty());
}

TEST(Meters, TheControlArmIsComparedAtItsEndAndSearchedWhole) {
  const MeterSeries subject{"heap_bytes", 16, std::vector<std::uint64_t>(10, 500)};
  MeterSeries control{"heap_bytes", 16, std::vector<std::uint64_t>(40, 700)};
  for (std::uint64_t i = 0; i < 10; ++i) control.readings[i] = 100 + i;  // one window that rises, long before the end
  const report::Meter row = JudgeMeter(subject, &control, 0);
  EXPECT_FALSE(row.grows);
  EXPECT_EQ(row.drift, 0U);
  EXPECT_EQ(row.control_cycles, 40U);
  EXPECT_EQ(row.windows, 4U);
  EXPECT_EQ(row.false_alarms, 1U);
}

TEST(Meters, TheNoisiestOneChoosesTheNumberOfCycles) {
  const std::vector<MeterSeries> quiet = {{"heap_bytes", 16, std::vector<std::uint64_t>(10, 500)}};
  std::vector<MeterSeries> both = quiet;
  both.push_back({"mapped_bytes", 4096, std::vector<std::uint64_t>(10, 4096)});
  EXPECT_EQ(CyclesForAll(quiet, {}, 0, 16), 10U);
  EXPECT_EQ(CyclesForAll(both, {}, 0, 16), 2560U);
}

std::vector<std::uint64_t> Rising(std::uint64_t step) {
  std::vector<std::uint64_t> readings;
  for (std::uint64_t i = 0; i < 12; ++i) readings.push_back((std::uint64_t{1} << 30U) + i * step);
  return readings;
}

// Meters that grow, by name, of a program that marked twelve cycles.
std::vector<std::string> Growing(std::uint64_t own_step) {
  const TemporaryDir parent;
  const Result<WorkDir> dir = WorkDir::Open(parent.File("work"));
  EXPECT_TRUE(dir.ok());
  Subject subject;
  subject.command = {"prog"};
  RunMeters seen;
  seen.cycles = 12;
  seen.at_cycles = {{kProcessDeviceBytes, 256, Rising(own_step)}, {kDeviceBytes, 4096, Rising(4096)}};
  report::Run run;
  int interrupted = 0;
  EXPECT_TRUE(Certify(subject, *dir, CertificateOptions(), std::move(seen), "cuaudit cycles -- prog", &run, &interrupted).ok());
  std::vector<std::string> kinds;
  for (const report::Finding& finding : run.findings) kinds.push_back(finding.kind);
  return kinds;
}

TEST(Certificate, DeviceMemoryThatTheProcessLosesIsToldOnce) {
  EXPECT_EQ(Growing(4096), std::vector<std::string>({kProcessDeviceBytes}));
  EXPECT_EQ(Growing(0), std::vector<std::string>({kDeviceBytes})) << "another's, or the driver's own";
}

TEST(DetectText, ReadsBytesPerCycle) {
  const auto read = [](const char* text) { return *ParseDetect(text); };
  EXPECT_EQ(read(""), 0U);
  EXPECT_EQ(read("512"), 512U);
  EXPECT_EQ(read("512B/cycle"), 512U);
  EXPECT_EQ(read("4KiB"), 4096U);
  EXPECT_EQ(read("2MiB/cycle"), std::uint64_t{2} << 20U);
  for (const char* const text : {"0", "-1", "KiB", "4 KiB", "4k", "1e3", "4KiB/s", "99999999999999999999"}) {
    const Result<std::uint64_t> bound = ParseDetect(text);
    ASSERT_FALSE(bound.ok()) << text;
    EXPECT_EQ(bound.status().exit(), Exit::Usage);
  }
}

}  // namespace
}  // namespace cuaudit::harness::meters_test
