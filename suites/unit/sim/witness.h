// SPDX-License-Identifier: MIT
// witness.h: a world that records every misuse, and calls that carry a number chosen by the test.
//
//   Owns      the world.
#pragma once

#include <string>
#include <vector>

#include "suites/support/sim_world.h"

namespace cuaudit::sim {

inline constexpr Schedule kSchedules[] = {Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial};

inline std::string NameOf(const testing::TestParamInfo<Schedule>& schedule) {
  constexpr const char* kNames[] = {"Lazy", "Fifo", "Random", "Adversarial"};
  return kNames[static_cast<std::size_t>(schedule.param)];
}

struct Record {
  std::vector<driver::Misuse> seen;
  std::uint64_t at = 0;  // the origin of the calls from here on
  static void Tell(void* record, const driver::Misuse& misuse) { static_cast<Record*>(record)->seen.push_back(misuse); }
  static std::uint64_t Origin(void* record) { return static_cast<Record*>(record)->at; }
};

class Witnessed {
 public:
  explicit Witnessed(Schedule schedule = Schedule::Lazy, std::uint64_t seed = 1, int devices = 1, bool (*on_awaited)(void*) = nullptr)
      : sim(Options(schedule, seed, devices, &record, on_awaited)), d(sim.d) {}
  driver::DriverRef At(std::uint64_t origin) {
    record.at = origin;
    return d;
  }
  CUstream Stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_OK(d.StreamCreate(&stream, flags));
    return stream;
  }
  CUevent Event() {
    CUevent event = nullptr;
    EXPECT_OK(d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
  }
  CUdeviceptr Memory(std::size_t bytes = 4096) {
    CUdeviceptr address = 0;
    EXPECT_OK(d.MemAlloc(&address, bytes));
    return address;
  }
  // The one misuse there was.
  void ExpectOne(driver::MisuseRule rule, std::uint64_t origin, std::uint64_t other) const {
    ASSERT_EQ(record.seen.size(), 1U);
    EXPECT_EQ(driver::Name(record.seen[0].rule), driver::Name(rule));
    EXPECT_EQ(record.seen[0].origin, origin);
    EXPECT_EQ(record.seen[0].other, other);
  }
  void ExpectNone() const {
    for (const driver::Misuse& misuse : record.seen) {
      ADD_FAILURE() << driver::Name(misuse.rule) << " of " << misuse.origin << " with " << misuse.other;
    }
  }

  Record record;
  Simulated sim;
  driver::DriverRef d;

 private:
  static WorldOptions Options(Schedule schedule, std::uint64_t seed, int devices, Record* record, bool (*on_awaited)(void*)) {
    WorldOptions options;
    options.device_bytes = std::uint64_t{256} << 20;
    options.device_count = devices;
    options.schedule = schedule;
    options.seed = seed;
    options.on_misuse = Record::Tell;
    options.origin = Record::Origin;
    options.observer = record;
    options.on_awaited = on_awaited;
    return options;
  }
};

}  // namespace cuaudit::sim
