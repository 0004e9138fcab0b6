// SPDX-License-Identifier: MIT
// A journal's readings as series: whose they are, which are whole enough to be judged, and the bounds of --detect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "faults/probes/host_reading.h"
#include "harness/cycle/meters.h"
#include "suites/support/journal_builder.h"

namespace cuaudit::harness::readings_test {
namespace {

// A journal's readings as series: whose they are, and which are whole enough to be judged.

using faults::HostMeter;
using testing::Contains;
using testing::ElementsAre;
using testing::Key;

struct Readings {
  TemporaryDir dir;
  JournalBuilder journal{dir.File("journal")};
  std::uint32_t cycles = 0;

  void Read(HostMeter meter, std::uint64_t value, std::uint32_t pid = 1) {
    const auto index = static_cast<std::size_t>(meter);
    faults::Record& record = journal.Host(faults::HostCall::Reading, std::uint64_t{1} << index);
    record.argument[1 + index] = value;
    record.pid = pid;
  }
  void EndCycle(std::uint32_t pid = 1) { journal.Mark(faults::MarkKind::CycleEnd, ++cycles).pid = pid; }
  RunMeters Meters() const { return ReadMeters(journal.Read()); }
};

const MeterSeries* Find(const RunMeters& meters, const std::string& name) {
  const auto at = std::find_if(meters.at_cycles.begin(), meters.at_cycles.end(), [&](const MeterSeries& one) { return one.name == name; });
  return at == meters.at_cycles.end() ? nullptr : &*at;
}

TEST(Readings, ChildrenHaveMetersOfTheirOwn) {
  Readings run;
  run.Read(HostMeter::HeapBytes, 100);
  run.EndCycle();
  run.Read(HostMeter::HeapBytes, 9000, 2);
  run.EndCycle(2);
  run.Read(HostMeter::HeapBytes, 200);
  run.EndCycle();
  const RunMeters meters = run.Meters();
  EXPECT_EQ(meters.cycles, 2U);
  const MeterSeries* const heap = Find(meters, "heap_bytes");
  ASSERT_NE(heap, nullptr);
  EXPECT_THAT(heap->readings, ElementsAre(100U, 200U));
}

// A buffer that is made anew in each cycle and a little larger: always one object, more bytes. What is given back, or is another process's,
// does not count.
TEST(Readings, TheProcessesOwnDeviceMemoryIsReadFromItsCalls) {
  Readings run;
  const auto allocate = [&](std::uint64_t address, std::uint64_t bytes, std::uint32_t pid) {
    faults::Record& record = run.journal.Call(driver::CallId::MemAlloc_v2);
    record.argument[0] = address;
    record.argument[1] = bytes;
    record.pid = pid;
  };
  allocate(0x1000, 256, 1);
  run.EndCycle();
  faults::Record& freed = run.journal.Call(driver::CallId::MemFree_v2);
  freed.argument[0] = 0x1000;
  freed.pid = 1;
  allocate(0x2000, 512, 1);
  allocate(0x3000, 4096, 2);
  run.EndCycle();
  const RunMeters meters = run.Meters();
  const MeterSeries* const own = Find(meters, "process_device_bytes");
  ASSERT_NE(own, nullptr);
  EXPECT_THAT(own->readings, ElementsAre(256U, 512U));
}

TEST(Readings, AMeterThatWasReadInSomeCyclesOnlyIsNotJudged) {
  Readings run;
  run.Read(HostMeter::HeapBytes, 100);
  run.EndCycle();
  run.EndCycle();
  const RunMeters meters = run.Meters();
  EXPECT_EQ(meters.cycles, 2U);
  EXPECT_EQ(Find(meters, "heap_bytes"), nullptr);
  EXPECT_THAT(meters.absent, Contains(Key("heap_bytes")));
}

TEST(Readings, BlocksAndPagesHaveTheirOwnQuantum) {
  Readings run;
  run.Read(HostMeter::HeapBytes, 100);
  run.EndCycle();
  Readings other;
  other.Read(HostMeter::MappedBytes, 4096);
  other.EndCycle();
  const RunMeters heap = run.Meters();
  const RunMeters mapped = other.Meters();
  ASSERT_NE(Find(heap, "heap_bytes"), nullptr);
  ASSERT_NE(Find(mapped, "mapped_bytes"), nullptr);
  EXPECT_EQ(Find(heap, "heap_bytes")->quantum, 16U);
  EXPECT_EQ(Find(mapped, "mapped_bytes")->quantum, 4096U);
}

// Readings of a journal as series, and the bounds of --detect as text.

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
    journal.header().driver_kind.store(kind);
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
  for (const char* const text : {"0", "-1", "KiB", "4 KiB", "4k", "1e3", "4KiB/s", "99999999999999999999", "17179869185GiB"}) {
    const Result<std::uint64_t> bound = ParseDetect(text);
    ASSERT_FALSE(bound.ok()) << text;
    EXPECT_EQ(bound.status().exit(), Exit::Usage);
  }
}

}  // namespace
}  // namespace cuaudit::harness::readings_test
