// SPDX-License-Identifier: MIT
// A journal's readings as series: whose they are, and which are whole enough to be judged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "faults/probes/host_reading.h"
#include "harness/cycle/meters.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::readings_test {
namespace {

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

}  // namespace
}  // namespace cuaudit::harness::readings_test
