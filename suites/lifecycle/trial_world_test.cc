// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/lifecycle/trial_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness/lifecycle/host_records.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::trial_world_test {
namespace {

using harness::TrialWorld;

TrialWorld::Pointer Open(bool shared) {
  harness::Result<TrialWorld::Pointer> world = TrialWorld::Open(AuditedDriver::Simulated, shared);
  EXPECT_TRUE(world.ok()) << world.status().message();
  return std::move(*world);
}

// Records of `world` after a child of this process ran a lifecycle in it.
std::size_t RecordsOfAChild(TrialWorld* world) {
  const auto lifecycle = Lifecycle("counts_devices").Init([](DriverRef driver) {
    int count = 0;
    return driver.DeviceGetCount(&count);
  });
  world->Forget();
  const pid_t child = fork();
  if (child == 0) {
    harness::TrialTrace trace;
    world->Run(lifecycle, faults::Plan(), harness::Stacks::None, 1, harness::Metering(), &trace);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return world->Journal().records().size();
}

// A world is used again for the next sweep; one that was shared must not come back to a sweep that shares nothing.
TEST(TrialWorld, WhatAChildDoesIsSeenInASharedWorldOnly) {
  EXPECT_GT(RecordsOfAChild(Open(true).get()), 0U);
  EXPECT_EQ(RecordsOfAChild(Open(false).get()), 0U);
}

// What the records of the host drop-in say of one of several runs.

using faults::HostCall;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kEver = ~std::uint64_t{0};

std::vector<std::string> Changes(const Trace& trace, std::uint64_t after = 0, std::uint64_t until = kEver) {
  std::vector<std::string> changes;
  for (const auto& [key, tally] : harness::ChangesIn(trace.Fold(), after, until)) {
    changes.push_back(std::string(Name(key.rule)) + " " + std::string(Name(key.kind)) + " at " + std::to_string(key.stack) + ": " +
                      std::to_string(tally.count) + ", " + std::to_string(tally.bytes));
  }
  return changes;
}

TEST(ChangesIn, ALibraryIsMissedWhereItWasOpened) {
  Trace t;
  t.Host(HostCall::Dlopen, 0x7, 0xA).Stack(1);
  t.Host(HostCall::Dlopen, 0x7, 0xD).Stack(2);
  t.Host(HostCall::Dlclose, 0x7, 0xA).Stack(3);
  EXPECT_THAT(Changes(t), ElementsAre("leak dlopen_reference at 1: 0, 0", "leak dlopen_reference at 2: 1, 0"));
}

// What an earlier run took and this one gives back is less at the place that took it.
TEST(ChangesIn, ARunGivesBackWhatAnotherTook) {
  Trace t;
  t.Host(HostCall::Allocate, 0x1000, 64).Stack(1);
  const std::uint64_t until = t.Host(HostCall::DescriptorOpen, 0x4).Stack(2).begin();
  t.Host(HostCall::Deallocate, 0x1000).Stack(1);
  t.Host(HostCall::Allocate, 0x2000, 80).Stack(1);
  t.Host(HostCall::DescriptorClose, 0x4).Stack(3);
  t.Host(HostCall::DescriptorClose, 0x5).Stack(3);
  EXPECT_THAT(Changes(t, 0, until), ElementsAre("leak host_heap at 1: 1, 64", "leak file_descriptor at 2: 1, 0"));
  EXPECT_THAT(Changes(t, until), ElementsAre("leak host_heap at 1: 0, 16", "leak file_descriptor at 2: -1, 0"));
}

TEST(ChangesIn, EachOfManyWindowsHasItsOwn) {
  Trace t;
  std::vector<std::uint64_t> ends = {0};
  for (std::uint64_t i = 1; i <= 3; ++i) {
    t.Host(HostCall::Allocate, i * 0x1000, 64).Stack(1);
    ends.push_back(t.Host(HostCall::Deallocate, (i - 1) * 0x1000).Stack(1).begin());
  }
  const std::vector<harness::HostPlaces> changes = harness::ChangesBetween(t.Fold(), ends, harness::FreedMutex::Gone);
  ASSERT_EQ(changes.size(), 3U);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ASSERT_EQ(changes[i].size(), 1U);
    EXPECT_EQ(changes[i].begin()->second.count, i == 0 ? 1 : 0);
  }
}

TEST(ChangesIn, AViolationHasItsCallsAndItsObject) {
  Trace t;
  t.Host(HostCall::MutexInit, 0x9).Stack(1);
  t.Host(HostCall::MutexDestroy, 0x9).Stack(2);
  const std::uint64_t until = t.Host(HostCall::MutexDestroy, 0x9).Stack(3).begin();
  t.Host(HostCall::MutexFreed, 0x9, 1).Stack(4);
  EXPECT_THAT(Changes(t, until), ElementsAre("mutex_freed mutex at 4: 1, 0", "mutex_locked mutex at 4: 1, 0"));
  const harness::HostPlaces places = harness::ChangesIn(t.Fold(), 0, until);
  ASSERT_EQ(places.size(), 2U);
  const harness::HostTally& twice =
      places.at({harness::Rule::DoubleRelease, driver::Kind::Mutex, static_cast<std::uint16_t>(HostCall::MutexDestroy), 3});
  EXPECT_EQ(twice.acquired.stack, 1U);
  EXPECT_EQ(twice.other.stack, 2U);
  EXPECT_EQ(twice.where.stack, 3U);
}

TEST(ChangesIn, ADescriptorClosedTooOften) {
  Trace t;
  t.Host(HostCall::DescriptorOpen, 0x4).Stack(1);
  t.Host(HostCall::DescriptorClose, 0x4).Stack(2);
  const std::uint64_t until = t.Host(HostCall::DescriptorClose, 0x4, faults::kClosedAgain).Stack(3).begin();
  t.Host(HostCall::DescriptorClose, 0x7, faults::kOpenAtBegin).Stack(4);
  t.Host(HostCall::DescriptorClose, 0x8, faults::kClosedAgain).Stack(5);  // nobody knows who opened it
  t.Host(HostCall::DescriptorOpen, 0x4).Stack(1);
  t.Host(HostCall::DescriptorClose, 0x4, faults::kClosedAgain).Stack(6);  // gone by a call without a record, perhaps of its owner
  EXPECT_THAT(Changes(t, until), ElementsAre("leak file_descriptor at 1: 1, 0", "deficit file_descriptor at 4: 1, 0"));
  const harness::HostPlaces places = harness::ChangesIn(t.Fold(), 0, until);
  const harness::HostTally& again =
      places.at({harness::Rule::Deficit, driver::Kind::FileDescriptor, static_cast<std::uint16_t>(HostCall::DescriptorClose), 3, true});
  EXPECT_EQ(again.acquired.stack, 1U);
  EXPECT_EQ(again.other.stack, 2U);
}

TEST(ChangesIn, WhatIsOfTheCLibraryOrTheSimulatedDriverIsLeftOut) {
  Trace t;
  t.Host(HostCall::Map, 0x1000, 0x1000);
  t.Host(HostCall::Allocate, 0x2000, 64).Flags(faults::kForwarded | faults::kKeptByLibrary);
  t.Host(HostCall::Allocate, 0x3000, 64).Flags(faults::kForwarded | faults::kPartOfOther);
  EXPECT_THAT(Changes(t), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::trial_world_test
