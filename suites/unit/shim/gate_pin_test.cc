// SPDX-License-Identifier: MIT
// The gate's own references of a primary context: the pin, and none beside it.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_pin_test {
namespace {

bool IsActive(const driver::DriverRef& driver) {
  unsigned flags = 0;
  int active = -1;
  EXPECT_EQ(driver.DevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  return active == 1;
}

TEST(GatePin, IsOneReferenceHoweverOftenTheProgramRetains) {
  GatedWorld world;
  world.Start();
  CUcontext context = nullptr;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(world.driver().DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(world.driver().DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_TRUE(IsActive(world.below()));
  ASSERT_EQ(world.below().DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_FALSE(IsActive(world.below()));
}

TEST(GatePin, IsTriedAgainWhenItFailed) {
  GatedWorld below({"cuDevicePrimaryCtxRetain#2=OUT_OF_MEMORY,refuse"}, Scope::Process);
  Plan plan;
  Fault never;
  ASSERT_EQ(ParseFault("cuMemAlloc#1000=OUT_OF_MEMORY", &never).expected, nullptr);
  ASSERT_TRUE(plan.Add(never));
  Gate gate;
  gate.Arm(below.driver(), nullptr, nullptr, plan, Scope::Pinned);
  const driver::DriverRef driver = Driver(&gate);
  CUcontext context = nullptr;
  ASSERT_EQ(driver.Init(0), CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(driver.DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(below.journal().header().fired[0].load(), 1U) << "the first pin";
  for (int i = 0; i < 2; ++i) ASSERT_EQ(driver.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_TRUE(IsActive(below.below())) << "the second pin holds";
}

TEST(GatePin, LookingWhoseContextIsLostTakesNoReference) {
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"}, Scope::Process);
  world.Start();
  ASSERT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(world.driver().DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_FALSE(IsActive(world.below()));
}

}  // namespace
}  // namespace cuaudit::faults::gate_pin_test
