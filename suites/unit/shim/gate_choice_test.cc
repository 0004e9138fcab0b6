// SPDX-License-Identifier: MIT
// Which call a fault hits: the program's own, at its site, and of two faults the first.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include <thread>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_choice_test {
namespace {

using driver::BaseId;

struct Inside {
  driver::DriverRef driver;
  CUresult answer = CUDA_ERROR_UNKNOWN;
};

void CUDA_CB CountDevices(void* data) {
  auto* const inside = static_cast<Inside*>(data);
  int count = 0;
  inside->answer = inside->driver.DeviceGetCount(&count);
}

TEST(GateChoice, ACallInsideACallIsNotTheProgramsAndIsNotRefused) {
  GatedWorld world({"cuDeviceGetCount#1=INVALID_VALUE,refuse"});
  world.Start();
  const driver::DriverRef d = world.driver();
  CUstream stream = nullptr;
  Inside inside{d};
  ASSERT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.LaunchHostFunc(stream, CountDevices, &inside), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamSynchronize(stream), CUDA_SUCCESS);  // which runs it
  EXPECT_EQ(inside.answer, CUDA_ERROR_NOT_PERMITTED) << "the driver's own word";
  EXPECT_EQ(world.Last(BaseId::DeviceGetCount).flags, kForwarded | kNested);
  int count = 0;
  EXPECT_EQ(d.DeviceGetCount(&count), CUDA_ERROR_INVALID_VALUE) << "the first of the program's own";
  EXPECT_EQ(world.Last(BaseId::DeviceGetCount).flags, kInjected);
}

// A plan is made from these numbers, and its faults are counted the same way.
TEST(GateChoice, ACallInsideACallHasNoNumber) {
  GatedWorld world({"cuDeviceGetCount#2=INVALID_VALUE,refuse"});
  world.Start();
  const driver::DriverRef d = world.driver();
  CUstream stream = nullptr;
  Inside inside{d};
  int count = 0;
  EXPECT_EQ(d.DeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(world.Last(BaseId::DeviceGetCount).occurrence, 1U);
  ASSERT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.LaunchHostFunc(stream, CountDevices, &inside), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamSynchronize(stream), CUDA_SUCCESS);  // which runs it
  EXPECT_EQ(world.Last(BaseId::DeviceGetCount).occurrence, 0U);
  EXPECT_EQ(d.DeviceGetCount(&count), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.Last(BaseId::DeviceGetCount).occurrence, 2U) << "the one that the fault is for";
}

TEST(GateChoice, AFaultAtASiteHitsNowhereElse) {
  GatedWorld world({"cuStreamCreate@site=0123456789abcdef#1=OUT_OF_MEMORY,refuse"});
  world.Start();
  CUstream stream = nullptr;
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.journal().header().fired[0].load(), 0U);
}

// Whichever thread comes first: the second fault is for the one that the first fault hit, and counts from there.
TEST(GateChoice, AFaultThatFollowsHitsTheThreadThatTheOneBeforeItHit) {
  GatedWorld world({"cuMemAlloc#2=OUT_OF_MEMORY,refuse", "cuDeviceGetCount#+2=INVALID_VALUE,refuse"});
  world.Start();
  const driver::DriverRef d = world.driver();
  int count = 0;
  CUdeviceptr memory = 0;
  EXPECT_EQ(d.DeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 256), CUDA_SUCCESS);
  std::thread other([&] {
    CUdeviceptr theirs = 0;
    EXPECT_EQ(d.MemAlloc(&theirs, 256), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(d.DeviceGetCount(&count), CUDA_SUCCESS) << "the first since";
    std::thread third([&] { EXPECT_EQ(d.DeviceGetCount(&count), CUDA_SUCCESS) << "no fault hit this thread"; });
    third.join();
    EXPECT_EQ(d.DeviceGetCount(&count), CUDA_ERROR_INVALID_VALUE) << "the second since";
    EXPECT_EQ(d.DeviceGetCount(&count), CUDA_SUCCESS);
  });
  other.join();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(d.DeviceGetCount(&count), CUDA_SUCCESS) << "no fault hit this thread";
  EXPECT_EQ(world.journal().header().fired[1].load(), 1U);
  EXPECT_EQ(d.MemFree(memory), CUDA_SUCCESS);
}

TEST(GateChoice, WhatFollowsAFaultThatTheDriverForestalledFollowsNothing) {
  GatedWorld world({"cuMemFree#1=INVALID_CONTEXT,after", "cuDeviceGetCount#+1=INVALID_VALUE,refuse"});
  world.Start();
  int count = 0;
  EXPECT_EQ(world.driver().MemFree(1), CUDA_ERROR_INVALID_VALUE) << "the driver's own word";
  EXPECT_EQ(world.driver().DeviceGetCount(&count), CUDA_SUCCESS);
}

TEST(GateChoice, OfTwoFaultsAtOneCallTheFirstHitsAndTheOtherHasNotFired) {
  GatedWorld world({"cuStreamCreate#1=OUT_OF_MEMORY,refuse", "cuStreamCreate#1=INVALID_VALUE,refuse"});
  world.Start();
  CUstream stream = nullptr;
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.Last(BaseId::StreamCreate).fault, 1U);
  EXPECT_EQ(world.journal().header().fired[0].load(), 1U);
  EXPECT_EQ(world.journal().header().fired[1].load(), 0U);
}

TEST(GateChoice, ReleasesSayWhichContextWasCurrent) {
  GatedWorld world;
  world.Start();
  const driver::DriverRef d = world.driver();
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(d.CtxGetCurrent(&context), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(world.Last(BaseId::StreamDestroy).context, reinterpret_cast<std::uintptr_t>(context));
}

}  // namespace
}  // namespace cuaudit::faults::gate_choice_test
