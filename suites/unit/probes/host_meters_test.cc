// SPDX-License-Identifier: MIT
// Each meter moves by what is planted and stays where it was when it is given back.
#include "harness/probes/host_meters.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

namespace cuaudit::harness::host_meters_test {
namespace {

constexpr HostMeterSet kAll = [] {
  HostMeterSet all;
  for (std::size_t i = 0; i < kHostMeterCount; ++i) all.Add(static_cast<HostMeter>(i));
  return all;
}();

}  // namespace

constinit faults::HostWatchCalls offered{};

namespace {

TEST(HostWatch, ALibraryOfAnotherVersionIsRefused) {
  constexpr std::uint64_t kTables = 77;
  offered.digest = kTables;  // as libraries before HostWatchDigest
  EXPECT_EQ(FindHostWatch(kTables), nullptr);
  offered.digest = faults::HostWatchDigest(kTables);
  EXPECT_EQ(FindHostWatch(kTables), &offered);
  EXPECT_EQ(FindHostWatch(kTables + 1), nullptr);
}

TEST(HostMeters, EveryMeterIsThere) {
  const HostReading reading = ReadHost(kAll);
  EXPECT_EQ(reading.read, kAll);
  for (std::size_t i = 0; i < kHostMeterCount; ++i) EXPECT_GT(reading.value[i], 0U) << kHostMeters[i].name;
}

TEST(HostMeters, OnlyWhatIsWantedIsRead) {
  const HostReading reading = ReadHost({HostMeter::Threads});
  EXPECT_EQ(reading.read, HostMeterSet{HostMeter::Threads});
  EXPECT_EQ(reading[HostMeter::Descriptors], 0U);
}

// Noisy meters say nothing about a single cycle.
bool IsNeutral(const HostChange& change) {
  for (std::size_t i = 0; i < kHostMeterCount; ++i) {
    if (kHostMeters[i].nature == faults::MeterNature::Exact && change.value[i] != 0) return false;
  }
  return true;
}

TEST(HostMeters, AnEmptyCycleIsNeutral) {
  CycleMeters meters;
  for (int i = 0; i < 1000; ++i) {
    meters.Begin();
    const HostChange left = meters.End();
    ASSERT_TRUE(IsNeutral(left)) << "cycle " << i;
  }
}

TEST(HostMeters, ALostDescriptorIsOne) {
  CycleMeters meters;
  meters.Begin();
  const int lost = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(lost, 0);
  HostChange left = meters.End();
  EXPECT_EQ(left[HostMeter::Descriptors], 1);
  EXPECT_FALSE(IsNeutral(left));
  close(lost);
  left = meters.End();
  EXPECT_TRUE(IsNeutral(left));
}

TEST(HostMeters, ManyDescriptorsAreCountedOneByOne) {
  CycleMeters meters;
  meters.Begin();
  std::array<int, 400> lost = {};
  for (int& one : lost) one = dup(STDOUT_FILENO);
  EXPECT_EQ(meters.End()[HostMeter::Descriptors], 400);
  for (const int one : lost) close(one);
  EXPECT_EQ(meters.End()[HostMeter::Descriptors], 0);
}

TEST(HostMeters, AThreadThatRunsIsOneAndAJoinedOneIsNone) {
  CycleMeters meters(kCheapHostMeters, 5000000);
  CycleMeters impatient(kCheapHostMeters, 0);
  std::atomic<bool> stop{false};
  std::thread([] {}).join();  // a sanitizer starts a thread of its own with the first
  meters.Begin();
  impatient.Begin();
  std::thread thread([&] { stop.wait(false); });
  EXPECT_EQ(impatient.End()[HostMeter::Threads], 1);
  stop = true;
  stop.notify_all();
  thread.join();
  EXPECT_EQ(meters.End()[HostMeter::Threads], 0);
}

TEST(HostMeters, AJoinedThreadNeverCounts) {
  CycleMeters meters(kCheapHostMeters, 5000000);
  for (int i = 0; i < 200; ++i) {
    meters.Begin();
    std::thread([] {}).join();
    ASSERT_EQ(meters.End()[HostMeter::Threads], 0) << "cycle " << i;
  }
}

TEST(HostMeters, ALibraryThatStaysLoadedIsSeen) {
  CycleMeters meters;
  meters.Begin();
  void* const library = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "libanl.so.1: " << dlerror();
  EXPECT_GE(meters.End()[HostMeter::LoadedObjects], 1);
  ASSERT_EQ(dlclose(library), 0);
  EXPECT_EQ(meters.End()[HostMeter::LoadedObjects], 0);
}

TEST(HostMeters, HeapBytesFollowALargeBlock) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  CycleMeters meters;
  meters.Begin();
  auto block = std::make_unique<char[]>(kBytes);
  EXPECT_GE(meters.End()[HostMeter::HeapBytes], static_cast<std::int64_t>(kBytes));
  EXPECT_LT(meters.End()[HostMeter::HeapBytes], static_cast<std::int64_t>(2 * kBytes));
  block.reset();
  EXPECT_LT(meters.End()[HostMeter::HeapBytes], static_cast<std::int64_t>(kBytes / 2));
}

TEST(HostMeters, PagesFollowAMapping) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  CycleMeters meters(kAll);
  meters.Begin();
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  const HostChange left = meters.End();
  EXPECT_GE(left[HostMeter::MappedBytes], static_cast<std::int64_t>(kBytes));
  EXPECT_GE(left[HostMeter::ResidentBytes], static_cast<std::int64_t>(kBytes / 2));
  ASSERT_EQ(munmap(memory, kBytes), 0);
}

}  // namespace
}  // namespace cuaudit::harness::host_meters_test

extern "C" __attribute__((visibility("default"))) const cuaudit::faults::HostWatchCalls* cuaudit_host_watch() {
  return &cuaudit::harness::host_meters_test::offered;
}
