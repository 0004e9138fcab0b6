// SPDX-License-Identifier: MIT
// Each `how`, seen from the caller, from the driver below and from the journal.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>
#include <string.h>

#include "faults/shim/gate.h"
#include "suites/unit/shim/gated_world.h"

namespace cuaudit::faults {
namespace {

using driver::BaseId;
using driver::Kind;

TEST(GateFaults, RefuseDoesNotReachTheDriverNorTheOutput) {
  GatedWorld world({"cuStreamCreate#2=OUT_OF_MEMORY,refuse"});
  world.Start();
  CUstream first = nullptr;
  CUstream second = reinterpret_cast<CUstream>(0x1234);
  ASSERT_EQ(world.driver().StreamCreate(&first, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().StreamCreate(&second, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(second, reinterpret_cast<CUstream>(0x1234));
  EXPECT_EQ(world.Live(Kind::Stream), 1u);
  const Record record = world.Last(BaseId::StreamCreate);
  EXPECT_EQ(record.flags, kInjected);
  EXPECT_EQ(record.fault, 1u);
  EXPECT_EQ(world.journal().header().fired[0].load(), 1u);
  EXPECT_EQ(world.driver().StreamCreate(&second, 0), CUDA_SUCCESS);
}

TEST(GateFaults, GarbageOverwritesTheOutput) {
  GatedWorld world({"cuMemAlloc#1=OUT_OF_MEMORY,refuse+garbage"});
  world.Start();
  CUdeviceptr memory = 0;
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory, 0xA5A5A5A5A5A5A5A5U);
  EXPECT_EQ(world.Live(Kind::DeviceMemory), 0u);
}

TEST(GateFaults, AfterForwardsThenAnswersTheError) {
  GatedWorld world({"cuStreamDestroy#1=INVALID_VALUE,after"});
  world.Start();
  CUstream stream = nullptr;
  ASSERT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().StreamDestroy(stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.Live(Kind::Stream), 0u) << "the object is gone although the caller saw an error";
  EXPECT_EQ(world.Last(BaseId::StreamDestroy).flags, kInjected | kForwarded);
}

// The driver below would follow the handle; nothing of it may come there, until it names another object.
TEST(GateFaults, WhatIsGoneAfterARefusalThatWasNoneIsAnsweredByTheGate) {
  GatedWorld world({"cuStreamDestroy#1=INVALID_VALUE,after"});
  world.gate().AnswerForGoneObjects();
  world.Start();
  CUstream stream = nullptr;
  CUstream other = nullptr;
  ASSERT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().StreamCreate(&other, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().StreamDestroy(stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.driver().StreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(world.Last(BaseId::StreamDestroy).flags, 0u) << "neither injected nor forwarded";
  EXPECT_EQ(world.Last(BaseId::StreamDestroy).fault, 0u);
  EXPECT_EQ(world.driver().StreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(world.driver().StreamSynchronize(other), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().StreamDestroy(other), CUDA_SUCCESS);
  EXPECT_EQ(world.Live(Kind::Stream), 0u);
}

TEST(GateFaults, AHandleThatNamesAnotherObjectIsPassedOn) {
  constexpr driver::Family kStream = driver::Family::Stream;
  GoneHandles gone;
  for (std::uint64_t handle = 1; handle <= 100; ++handle) gone.Add(kStream, handle);
  EXPECT_TRUE(gone.Has(kStream, 64));
  EXPECT_FALSE(gone.Has(driver::Family::Event, 64)) << "the same number of another family";
  EXPECT_FALSE(gone.Has(kStream, 65)) << "more than it holds";
  EXPECT_EQ(gone.beyond(), 100 - GoneHandles::kMost);
  EXPECT_FALSE(gone.Has(kStream, 0));
  gone.Remove(driver::Family::Event, 64);
  EXPECT_TRUE(gone.Has(kStream, 64));
  for (std::uint64_t handle = 1; handle <= 100; ++handle) gone.Remove(kStream, handle);
  EXPECT_FALSE(gone.any());
  EXPECT_FALSE(gone.Has(kStream, 64));
}

// A size, a pointer of the program's own and a handle of another family may all have the value of a stream that is gone.
TEST(GateFaults, OnlyAHandleOfItsFamilyNamesWhatIsGone) {
  GatedWorld world({"cuStreamDestroy#1=INVALID_VALUE,after"});
  world.gate().AnswerForGoneObjects();
  world.Start();
  const driver::DriverRef d = world.driver();
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(d.StreamDestroy(stream), CUDA_ERROR_INVALID_VALUE);
  const auto value = reinterpret_cast<std::uintptr_t>(stream);
  EXPECT_EQ(d.MemsetD8(memory, 1, value), world.below().MemsetD8(memory, 1, value)) << "a count";
  EXPECT_EQ(world.Last(BaseId::MemsetD8).flags & kForwarded, kForwarded);
  (void)d.EventQuery(reinterpret_cast<CUevent>(stream));
  EXPECT_EQ(world.Last(BaseId::EventQuery).flags & kForwarded, kForwarded);
  EXPECT_EQ(d.EventRecord(nullptr, stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(world.Last(BaseId::EventRecord).flags & kForwarded, 0) << "wherever the stream stands";
}

// A query names what is there now: the driver gave the handle of what is gone to another.
TEST(GateFaults, AnyOutputOfItsFamilyShowsThatTheHandleIsAnothers) {
  GatedWorld world;
  driver::DriverTable table = *world.below().table;  // whose cuCtxDestroy destroys a context, and makes another one in its place
  const auto destroy = +[](void*, CUcontext) { return CUDA_SUCCESS; };
  table.entry[driver::Index(driver::CallId::CtxDestroy_v2)] = reinterpret_cast<driver::Entry>(destroy);
  Plan plan;
  Fault fault;
  ASSERT_EQ(ParseFault("cuCtxDestroy#1=INVALID_VALUE,after", &fault).expected, nullptr);
  ASSERT_TRUE(plan.Add(fault));
  world.gate().Arm({&table, world.below().self}, &world.journal(), nullptr, plan, Scope::Process);
  world.gate().AnswerForGoneObjects();
  world.Start();
  const driver::DriverRef d = world.driver();
  CUcontext context = nullptr;
  CUcontext seen = nullptr;
  CUgreenCtx green = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(d.CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxDestroy(context), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(d.CtxGetCurrent(&seen), CUDA_SUCCESS);
  EXPECT_EQ(seen, context);
  EXPECT_EQ(d.CtxPushCurrent(context), CUDA_ERROR_INVALID_HANDLE) << "what is current may be gone";
  EXPECT_EQ(d.StreamGetCtx(stream, &seen, &green), CUDA_SUCCESS);
  EXPECT_EQ(seen, context);
  EXPECT_EQ(d.CtxPushCurrent(context), CUDA_SUCCESS);
}

TEST(GateFaults, RearmingCountsAnewAndForgetsTheFormerFaults) {
  GatedWorld world({"cuStreamCreate#3=OUT_OF_MEMORY,persist"});
  world.Start();
  CUstream stream = nullptr;
  ASSERT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  Plan plan;
  Fault fault;
  ASSERT_EQ(ParseFault("cuStreamCreate#2=OUT_OF_MEMORY,refuse", &fault).expected, nullptr);
  ASSERT_TRUE(plan.Add(fault));
  world.gate().Rearm(plan, nullptr);
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.Last(BaseId::StreamCreate).occurrence, 2U);
  world.gate().Rearm(Plan(), nullptr);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
}

TEST(GateFaults, GarbageReachesEveryOutput) {
  GatedWorld world({"cuMemGetInfo#1=INVALID_CONTEXT,refuse+garbage"});
  world.Start();
  std::size_t free = 1;
  std::size_t total = 2;
  EXPECT_EQ(world.driver().MemGetInfo(&free, &total), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(free, 0xA5A5A5A5A5A5A5A5U);
  EXPECT_EQ(total, 0xA5A5A5A5A5A5A5A5U);
}

TEST(GateFaults, AfterKeepsTheDriversOwnErrorAndDoesNotCountAsFired) {
  GatedWorld world({"cuMemAlloc#1=OUT_OF_MEMORY,after"});
  world.Start();
  CUdeviceptr memory = 0;
  EXPECT_EQ(world.driver().MemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.Last(BaseId::MemAlloc).flags, kForwarded);
  EXPECT_EQ(world.Last(BaseId::MemAlloc).fault, 0u);
  EXPECT_EQ(world.journal().header().fired[0].load(), 0u);
}

TEST(GateFaults, PersistRefusesFromTheNthOn) {
  GatedWorld world({"cuEventCreate#2=OUT_OF_MEMORY,persist"});
  world.Start();
  CUevent event = nullptr;
  EXPECT_EQ(world.driver().EventCreate(&event, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(world.driver().EventCreate(&event, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.journal().header().fired[0].load(), 3u);
}

TEST(GateFaults, BurstRefusesSoManyInARow) {
  GatedWorld world({"cuEventCreate#2=OUT_OF_MEMORY,burst:2"});
  world.Start();
  CUevent event = nullptr;
  const CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS};
  for (const CUresult result : expected) EXPECT_EQ(world.driver().EventCreate(&event, 0), result);
}

TEST(GateFaults, StickyFailsEveryLaterCallThatNeedsAContextUntilAReset) {
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  world.Start();
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

TEST(GateFaults, StickyLosesOneContextAndNoOther) {
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  world.Start();
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
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"}, Scope::Pinned);
  world.Start();
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
  GatedWorld world;
  world.Start();
  Plan plan;
  Fault fault;
  ASSERT_EQ(ParseFault("cuStreamSynchronize#1=LAUNCH_FAILED,sticky", &fault).expected, nullptr);
  ASSERT_TRUE(plan.Add(fault));
  for (int i = 0; i < 20; ++i) {
    CUcontext context = nullptr;
    ASSERT_EQ(world.driver().CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    world.gate().Rearm(Plan(), nullptr);
    ASSERT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS) << i;
    world.gate().Rearm(plan, nullptr);
    ASSERT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
    ASSERT_EQ(world.driver().CtxDestroy(context), CUDA_SUCCESS);
  }
  world.gate().Rearm(Plan(), nullptr);
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
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  world.Start();
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
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  world.Start();
  CUdeviceptr memory = 0;
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  world.gate().Rearm(Plan(), nullptr);
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

INSTANTIATE_TEST_SUITE_P(Calls, StickyBeforeAnyContext,
                         ::testing::Values("cuInit#1=LAUNCH_FAILED,sticky", "cuDevicePrimaryCtxRetain#1=LAUNCH_FAILED,sticky"));

// The pin keeps it active, and nobody but the gate knows of the pin.
TEST(GateFaults, StickySparesAPrimaryContextThatTheProgramGaveBack) {
  GatedWorld world({"cuDevicePrimaryCtxRetain#2=LAUNCH_FAILED,sticky"}, Scope::Pinned);
  world.Start();
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
  GatedWorld world({"cuDevicePrimaryCtxRetain#2=LAUNCH_FAILED,sticky"}, Scope::Pinned);
  world.Start();
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

TEST(GateFaults, PhaseLimitsAndCountsWithinThePhase) {
  GatedWorld world({"cuMemAlloc#1@work=OUT_OF_MEMORY,refuse"});
  world.Start();
  CUdeviceptr memory = 0;
  world.gate().Mark(MarkKind::Phase, static_cast<std::uint32_t>(Phase::Init));
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_SUCCESS);
  world.gate().Mark(MarkKind::Phase, static_cast<std::uint32_t>(Phase::Work));
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_SUCCESS);
}

TEST(GateFaults, TwoFaultsOnOneCallCountIndependently) {
  GatedWorld world({"cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuMemAlloc#3=INVALID_CONTEXT,refuse"});
  world.Start();
  CUdeviceptr memory = 0;
  const CUresult expected[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS};
  for (const CUresult result : expected) EXPECT_EQ(world.driver().MemAlloc(&memory, 64), result);
  EXPECT_EQ(world.journal().header().fired[0].load(), 1u);
  EXPECT_EQ(world.journal().header().fired[1].load(), 1u);
}

TEST(GateFaults, WithoutJournalFaultsCountInTheProcess) {
  sim::World* world = sim::CreateWorld(sim::WorldOptions());
  Gate gate;
  Plan plan;
  Fault fault;
  ASSERT_EQ(ParseFault("cuInit#2=UNKNOWN", &fault).expected == nullptr, driver::IsLegalCode(BaseId::Init, CUDA_ERROR_UNKNOWN));
  ASSERT_EQ(ParseFault("cuInit#2=NO_DEVICE", &fault).expected, nullptr);
  ASSERT_TRUE(plan.Add(fault));
  gate.Arm(sim::Driver(world), nullptr, nullptr, plan, Scope::Pinned);
  EXPECT_EQ(Driver(&gate).Init(0), CUDA_SUCCESS);
  EXPECT_EQ(Driver(&gate).Init(0), CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(Driver(&gate).Init(0), CUDA_SUCCESS);
  sim::DestroyWorld(world);
}

TEST(GateFaults, ALostContextIsNotInheritedByAForkedChild) {
  GatedWorld world({"cuStreamSynchronize#1=LAUNCH_FAILED,sticky"});
  world.Start();
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_ERROR_LAUNCH_FAILED);
  world.gate().Note(ProcessEvent::Fork, 1);  // as the fork handler does in the child
  EXPECT_EQ(world.driver().StreamSynchronize(nullptr), CUDA_SUCCESS);
}

TEST(GateFaults, GatesStack) {
  GatedWorld inner({"cuMemAlloc#1=OUT_OF_MEMORY,refuse"});
  inner.Start();
  Plan plan;
  Fault fault;
  ASSERT_EQ(ParseFault("cuMemFree#1=INVALID_VALUE", &fault).expected, nullptr);
  ASSERT_TRUE(plan.Add(fault));
  Gate outer;
  outer.Arm(inner.driver(), nullptr, nullptr, plan, Scope::Process);
  const driver::DriverRef driver = Driver(&outer);
  CUdeviceptr memory = 0;
  EXPECT_EQ(driver.MemAlloc(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver.MemAlloc(&memory, 64), CUDA_SUCCESS);
  EXPECT_EQ(driver.MemFree(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.MemFree(memory), CUDA_SUCCESS);
}

}  // namespace
}  // namespace cuaudit::faults
