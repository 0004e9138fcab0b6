// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/lifecycle/trial_world.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace cuaudit::testing::trial_world_test
