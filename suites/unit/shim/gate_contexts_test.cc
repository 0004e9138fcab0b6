// SPDX-License-Identifier: MIT
// What the gate does about contexts: what a sticky fault loses, and the gate's own references of primary contexts.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include "faults/shim/gate.h"
#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_contexts_test {
namespace {

// What a sticky fault loses, for how long, and what it spares.

using driver::BaseId;
using driver::Kind;

TEST(GateFaults, StickyFailsEveryLaterCallThatNeedsAContextUntilAReset) {
  StartedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  CUdeviceptr memory = 0;
  ASSERT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(world.driver().MemFree(memory), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  const char* name = nullptr;
  EXPECT_EQ(world.driver().GetErrorName(CUDA_ERROR_LAUNCH_FAILED, &name), CUDA_SUCCESS);
  int count = 0;
  EXPECT_EQ(world.driver().DeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().DevicePrimaryCtxReset(0), CUDA_SUCCESS);
  EXPECT_EQ(world.Live(Kind::DeviceMemory), 0u);
  CUcontext fresh = nullptr;
  ASSERT_EQ(world.driver().DevicePrimaryCtxRetain(&fresh, 0), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().CtxSetCurrent(fresh), CUDA_SUCCESS) << "the lost state went with the reset";
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_SUCCESS);
}

// A context that is lost never runs its work again, so no time may pass there. A refused wait lets it pass.
TEST(GateFaults, ALostContextTellsOfNoRefusal) {
  const auto told = [](std::initializer_list<std::string_view> faults) {
    static int count;
    count = 0;
    GatedWorld world(faults);
    world.gate().Tell({[](void*, driver::CallId, const std::uint64_t*) noexcept { ++count; }});
    world.Start();
    EXPECT_NE(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS);
    (void)world.driver().StreamSynchronize(nullptr);
    return count;
  };
  EXPECT_EQ(told({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"}), 0);
  EXPECT_EQ(told({"cuStreamSynchronize#1=LAUNCH_FAILED,refuse"}), 1);
  EXPECT_EQ(told({"cuStreamSynchronize#1=LAUNCH_FAILED,persist"}), 2);
}

TEST(GateFaults, StickyLosesOneContextAndNoOther) {
  StartedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  const driver::DriverRef d = world.driver();
  CUcontext lost = nullptr;
  CUcontext other = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.CtxGetCurrent(&other), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxCreate(&lost, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(d.StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_ERROR_LAUNCH_FAILED);
  CUcontext popped = nullptr;
  ASSERT_EQ(d.CtxPopCurrent(&popped), CUDA_SUCCESS) << "another context can be made current";
  EXPECT_EQ(popped, lost);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
  EXPECT_EQ(d.DevicePrimaryCtxReset(0), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxPushCurrent(lost), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_ERROR_LAUNCH_FAILED) << "resetting another context recovers nothing";
  EXPECT_EQ(d.CtxDestroy(lost), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxCreate(&lost, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
}

TEST(GateFaults, StickyEndsWithTheProgramsLastReference) {
  StartedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"}, Scope::Pinned);
  const driver::DriverRef d = world.driver();
  CUcontext again = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.DevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(d.StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_ERROR_LAUNCH_FAILED) << "one reference is left";
  ASSERT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  ASSERT_EQ(d.DevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxSetCurrent(again), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
}

TEST(GateFaults, MoreLostContextsThanAreFollowedLoseAll) {
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,persist"});
  LostContexts lost;
  world.Start();
  CUcontext context = nullptr;
  for (int i = 0; i < 17; ++i) {
    ASSERT_EQ(world.below().CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    lost.Lose(world.below(), {CUDA_ERROR_LAUNCH_FAILED, 1});
  }
  ASSERT_EQ(world.below().CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(lost.Find(world.below()).code, CUDA_ERROR_LAUNCH_FAILED);
  lost.ForgetAll();
  EXPECT_EQ(lost.Find(world.below()).code, CUDA_SUCCESS);
}

// Whether the handle of a destroyed context comes back or another is given out: no new context is lost from the start.
TEST(GateFaults, ADestroyedContextTakesItsLossWithIt) {
  StartedWorld world;
  Plan plan;
  Fault fault;
  ASSERT_EQ(ParseFault("cuStreamSynchronize#1=LAUNCH_FAILED,sticky", &fault).expected, nullptr);
  ASSERT_TRUE(plan.Add(fault));
  for (int i = 0; i < 20; ++i) {
    CUcontext context = nullptr;
    ASSERT_EQ(world.driver().CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    world.gate().Rearm(Plan(), Anew::Occurrences);
    ASSERT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS) << i;
    world.gate().Rearm(plan, Anew::Occurrences);
    ASSERT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
    ASSERT_EQ(world.driver().CtxDestroy(context), CUDA_SUCCESS);
  }
  world.gate().Rearm(Plan(), Anew::Occurrences);
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS) << "the primary context was never lost";
}

// Sixteen contexts have a row of their own; the seventeenth makes it the loss of all.
struct LossOfAll : GatedWorld {
  LossOfAll() : GatedWorld({"cuStreamSynchronize#1=LAUNCH_FAILED,persist"}) {
    Start();
    EXPECT_EQ(below().CtxGetCurrent(&primary), CUDA_SUCCESS);
    for (CUcontext& context : contexts) {
      EXPECT_EQ(below().CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
      lost.Lose(below(), {CUDA_ERROR_LAUNCH_FAILED, 1});
    }
  }
  CUresult Of(CUcontext context) {
    EXPECT_EQ(below().CtxSetCurrent(context), CUDA_SUCCESS);
    return lost.Find(below()).code;
  }
  static std::uint64_t Word(CUcontext context) { return reinterpret_cast<std::uintptr_t>(context); }
  LostContexts lost;
  CUcontext primary = nullptr;
  CUcontext contexts[17] = {};
};

TEST(LostContexts, OneThatIsDestroyedTakesTheLossOfAllFromNoOther) {
  LossOfAll all;
  EXPECT_EQ(all.Of(all.contexts[16]), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(all.Of(all.primary), CUDA_ERROR_LAUNCH_FAILED);
  for (const int gone : {0, 5}) {
    all.lost.ForgetContext(LossOfAll::Word(all.contexts[gone]));
    EXPECT_EQ(all.Of(all.contexts[gone]), CUDA_SUCCESS) << "its handle may be another context's now";
    EXPECT_EQ(all.Of(all.contexts[16]), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(all.Of(all.contexts[1]), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(all.Of(all.primary), CUDA_ERROR_LAUNCH_FAILED);
  }
}

TEST(LostContexts, AResetSparesItsDeviceAlone) {
  LossOfAll all;
  all.lost.ForgetPrimary(1);
  EXPECT_EQ(all.Of(all.primary), CUDA_ERROR_LAUNCH_FAILED);
  all.lost.ForgetPrimary(0);
  EXPECT_EQ(all.Of(all.primary), CUDA_SUCCESS);
  EXPECT_EQ(all.Of(all.contexts[16]), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(LostContexts, OneMadeAfterTheLossOfAllIsSparedUntilTheNext) {
  LossOfAll all;
  CUcontext fresh = nullptr;
  ASSERT_EQ(all.below().CtxCreate(&fresh, nullptr, 0, 0), CUDA_SUCCESS);
  all.lost.Begin(LossOfAll::Word(fresh));
  EXPECT_EQ(all.Of(fresh), CUDA_SUCCESS);
  EXPECT_EQ(all.Of(all.contexts[3]), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(all.below().CtxSetCurrent(nullptr), CUDA_SUCCESS);
  all.lost.Lose(all.below(), {CUDA_ERROR_LAUNCH_FAILED, 1});  // without a current context: of all again
  EXPECT_EQ(all.Of(fresh), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(GateFaults, StickyWithoutAContextLosesAllThatAreThereAndNoLaterOne) {
  StartedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  const driver::DriverRef d = world.driver();
  CUcontext old = nullptr;
  CUcontext other = nullptr;
  CUcontext fresh = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.CtxCreate(&old, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxCreate(&other, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(d.StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(d.CtxDestroy(other), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxSetCurrent(old), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_ERROR_LAUNCH_FAILED) << "another one's end recovers nothing";
  ASSERT_EQ(d.CtxCreate(&fresh, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
}

TEST(GateFaults, WhatIsLostStaysLostWithoutFaults) {
  StartedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  CUdeviceptr memory = 0;
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  world.gate().Rearm(Plan(), Anew::Occurrences);
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(world.Last(BaseId::MemAlloc).fault, 1U);
  EXPECT_EQ(world.driver().DevicePrimaryCtxReset(0), CUDA_SUCCESS);
  world.Start();
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_SUCCESS);
}

class StickyBeforeAnyContext : public ::testing::TestWithParam<const char*> {};

// There is no context that could be lost.
TEST_P(StickyBeforeAnyContext, LosesNothing) {
  GatedWorld world({GetParam()});
  const driver::DriverRef d = world.driver();
  CUcontext primary = nullptr;
  CUcontext made = nullptr;
  CUdeviceptr memory = 0;
  EXPECT_EQ(d.Init(0) == CUDA_SUCCESS ? d.DevicePrimaryCtxRetain(&primary, 0) : CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(world.journal().header().fired[0].load(), 1U);
  EXPECT_EQ(d.MemAlloc(&memory, 64), world.below().MemAlloc(&memory, 64)) << "the driver's own answer";
  world.Start();
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxCreate(&made, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
}

// A primary context that somebody else keeps is none of the program's before it has retained it.
TEST_P(StickyBeforeAnyContext, LosesNothingThatSomebodyElseHolds) {
  GatedWorld world({GetParam()}, Scope::Process);
  const driver::DriverRef d = world.driver();
  CUcontext held = nullptr;
  CUcontext primary = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(world.below().Init(0), CUDA_SUCCESS);
  ASSERT_EQ(world.below().DevicePrimaryCtxRetain(&held, 0), CUDA_SUCCESS);
  world.gate().NoteHeldPrimary(0);
  EXPECT_EQ(d.Init(0) == CUDA_SUCCESS ? d.DevicePrimaryCtxRetain(&primary, 0) : CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
  world.Start();
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(Calls, StickyBeforeAnyContext,
                         ::testing::Values("cuInit#1=LAUNCH_FAILED,sticky", "cuDevicePrimaryCtxRetain#1=LAUNCH_FAILED,sticky"));

// The pin keeps it active, and nobody but the gate knows of the pin.
TEST(GateFaults, StickySparesAPrimaryContextThatTheProgramGaveBack) {
  StartedWorld world({"cuDevicePrimaryCtxRetain#2=LAUNCH_FAILED,sticky"}, Scope::Pinned);
  const driver::DriverRef d = world.driver();
  CUcontext primary = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.CtxSetCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  ASSERT_EQ(d.DevicePrimaryCtxRetain(&primary, 0), CUDA_ERROR_LAUNCH_FAILED);
  world.Start();
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
}

TEST(GateFaults, StickyWithoutAContextLosesThePrimaryContextThatTheProgramHolds) {
  StartedWorld world({"cuDevicePrimaryCtxRetain#2=LAUNCH_FAILED,sticky"}, Scope::Pinned);
  const driver::DriverRef d = world.driver();
  CUcontext primary = nullptr;
  CUcontext again = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.CtxGetCurrent(&primary), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxSetCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(d.DevicePrimaryCtxRetain(&again, 0), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(d.CtxSetCurrent(primary), CUDA_SUCCESS);
  EXPECT_EQ(d.MemAlloc(&memory, 64), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(GateFaults, ALostContextIsNotInheritedByAForkedChild) {
  StartedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  world.gate().Note(ProcessEvent::Fork, 1);  // as the fork handler does in the child
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS);
}

// The gate's own references of a primary context: the pin, and none beside it.

bool IsActive(const driver::DriverRef& driver) {
  unsigned flags = 0;
  int active = -1;
  EXPECT_EQ(driver.DevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  return active == 1;
}

TEST(GatePin, IsOneReferenceHoweverOftenTheProgramRetains) {
  StartedWorld world;
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
  StartedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"}, Scope::Process);
  ASSERT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(world.driver().DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_FALSE(IsActive(world.below()));
}

}  // namespace
}  // namespace cuaudit::faults::gate_contexts_test
