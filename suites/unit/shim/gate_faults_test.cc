// SPDX-License-Identifier: MIT
// Which call a fault hits, and each `how` as the caller, the driver below and the journal see it.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include <thread>

#include "faults/shim/gate.h"
#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_faults_test {
namespace {

// Which call a fault hits: the program's own, at its site, and of two faults the first.

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
  StartedWorld world({"cuDeviceGetCount#1=INVALID_VALUE,refuse"});
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
  StartedWorld world({"cuDeviceGetCount#2=INVALID_VALUE,refuse"});
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
  StartedWorld world({"cuStreamCreate@site=0123456789abcdef#1=OUT_OF_MEMORY,refuse"});
  CUstream stream = nullptr;
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.journal().header().fired[0].load(), 0U);
}

// Whichever thread comes first: the second fault is for the one that the first fault hit, and counts from there.
TEST(GateChoice, AFaultThatFollowsHitsTheThreadThatTheOneBeforeItHit) {
  StartedWorld world({"cuMemAlloc#2=OUT_OF_MEMORY,refuse", "cuDeviceGetCount#+2=INVALID_VALUE,refuse"});
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
  StartedWorld world({"cuMemFree#1=INVALID_CONTEXT,after", "cuDeviceGetCount#+1=INVALID_VALUE,refuse"});
  int count = 0;
  EXPECT_EQ(world.driver().MemFree(1), CUDA_ERROR_INVALID_VALUE) << "the driver's own word";
  EXPECT_EQ(world.driver().DeviceGetCount(&count), CUDA_SUCCESS);
}

TEST(GateChoice, OfTwoFaultsAtOneCallTheFirstHitsAndTheOtherHasNotFired) {
  StartedWorld world({"cuStreamCreate#1=OUT_OF_MEMORY,refuse", "cuStreamCreate#1=INVALID_VALUE,refuse"});
  CUstream stream = nullptr;
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.Last(BaseId::StreamCreate).fault, 1U);
  EXPECT_EQ(world.journal().header().fired[0].load(), 1U);
  EXPECT_EQ(world.journal().header().fired[1].load(), 0U);
}

TEST(GateChoice, ReleasesSayWhichContextWasCurrent) {
  StartedWorld world;
  const driver::DriverRef d = world.driver();
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(d.CtxGetCurrent(&context), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.StreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(world.Last(BaseId::StreamDestroy).context, reinterpret_cast<std::uintptr_t>(context));
}

// Each `how`, seen from the caller, from the driver below and from the journal.

using driver::Kind;

TEST(GateFaults, RefuseDoesNotReachTheDriverNorTheOutput) {
  StartedWorld world({"cuStreamCreate#2=OUT_OF_MEMORY,refuse"});
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
  StartedWorld world({"cuMemAlloc#1=OUT_OF_MEMORY,refuse+garbage"});
  CUdeviceptr memory = 0;
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory, 0xA5A5A5A5A5A5A5A5U);
  EXPECT_EQ(world.Live(Kind::DeviceMemory), 0u);
}

TEST(GateFaults, AfterForwardsThenAnswersTheError) {
  StartedWorld world({"cuStreamDestroy#1=INVALID_VALUE,after"});
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
  ASSERT_EQ(d.CtxPopCurrent(&seen), CUDA_SUCCESS);
  EXPECT_EQ(seen, context);
  EXPECT_EQ(d.CtxPushCurrent(context), CUDA_ERROR_INVALID_HANDLE) << "and what is popped";
  EXPECT_EQ(d.StreamGetCtx(stream, &seen, &green), CUDA_SUCCESS);
  EXPECT_EQ(seen, context);
  EXPECT_EQ(d.CtxPushCurrent(context), CUDA_SUCCESS);
}

TEST(GateFaults, RearmingCountsAnewAndForgetsTheFormerFaults) {
  StartedWorld world({"cuStreamCreate#3=OUT_OF_MEMORY,persist"});
  CUstream stream = nullptr;
  ASSERT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  Plan plan;
  Fault fault;
  ASSERT_EQ(ParseFault("cuStreamCreate#2=OUT_OF_MEMORY,refuse", &fault).expected, nullptr);
  ASSERT_TRUE(plan.Add(fault));
  world.gate().Rearm(plan, Anew::Occurrences);
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.Last(BaseId::StreamCreate).occurrence, 2U);
  world.gate().Rearm(Plan(), Anew::Occurrences);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(world.driver().StreamCreate(&stream, 0), CUDA_SUCCESS);
}

TEST(GateFaults, GarbageReachesEveryOutput) {
  StartedWorld world({"cuMemGetInfo#1=INVALID_CONTEXT,refuse+garbage"});
  std::size_t free = 1;
  std::size_t total = 2;
  EXPECT_EQ(world.driver().MemGetInfo(&free, &total), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(free, 0xA5A5A5A5A5A5A5A5U);
  EXPECT_EQ(total, 0xA5A5A5A5A5A5A5A5U);
}

TEST(GateFaults, AfterKeepsTheDriversOwnErrorAndDoesNotCountAsFired) {
  StartedWorld world({"cuMemAlloc#1=OUT_OF_MEMORY,after"});
  CUdeviceptr memory = 0;
  EXPECT_EQ(world.driver().MemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.Last(BaseId::MemAlloc).flags, kForwarded);
  EXPECT_EQ(world.Last(BaseId::MemAlloc).fault, 0u);
  EXPECT_EQ(world.journal().header().fired[0].load(), 0u);
}

TEST(GateFaults, PersistRefusesFromTheNthOn) {
  StartedWorld world({"cuEventCreate#2=OUT_OF_MEMORY,persist"});
  CUevent event = nullptr;
  EXPECT_EQ(world.driver().EventCreate(&event, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(world.driver().EventCreate(&event, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.journal().header().fired[0].load(), 3u);
}

TEST(GateFaults, BurstRefusesSoManyInARow) {
  StartedWorld world({"cuEventCreate#2=OUT_OF_MEMORY,burst:2"});
  CUevent event = nullptr;
  const CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS};
  for (const CUresult result : expected) EXPECT_EQ(world.driver().EventCreate(&event, 0), result);
}

TEST(GateFaults, PhaseLimitsAndCountsWithinThePhase) {
  StartedWorld world({"cuMemAlloc#1@work=OUT_OF_MEMORY,refuse"});
  CUdeviceptr memory = 0;
  world.gate().Mark(MarkKind::Phase, static_cast<std::uint32_t>(Phase::Init));
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_SUCCESS);
  world.gate().Mark(MarkKind::Phase, static_cast<std::uint32_t>(Phase::Work));
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver().MemAlloc(&memory, 64), CUDA_SUCCESS);
}

TEST(GateFaults, TwoFaultsOnOneCallCountIndependently) {
  StartedWorld world({"cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuMemAlloc#3=INVALID_CONTEXT,refuse"});
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

TEST(GateFaults, GatesStack) {
  StartedWorld inner({"cuMemAlloc#1=OUT_OF_MEMORY,refuse"});
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
}  // namespace cuaudit::faults::gate_faults_test
