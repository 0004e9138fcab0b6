// SPDX-License-Identifier: MIT
// What the gate keeps in tables: contexts that are lost, contexts that it pins, and handles that are gone.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include "faults/shim/gone_handles.h"
#include "faults/shim/lost_contexts.h"
#include "faults/shim/pinned_contexts.h"
#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_tables_test {
namespace {

using driver::BaseId;
using driver::CallId;
using driver::Effect;

TEST(LostContexts, ConcernCallsThatNeedAContext) {
  for (const BaseId base : {BaseId::MemAlloc, BaseId::StreamCreate, BaseId::StreamSynchronize, BaseId::LaunchKernel})
    EXPECT_TRUE(LostContexts::Concerns(driver::EffectOf(base))) << driver::Name(base);
  for (const BaseId base : {BaseId::Init, BaseId::DeviceGetCount, BaseId::DevicePrimaryCtxRelease, BaseId::CtxCreate, BaseId::CtxDestroy,
                            BaseId::CtxSetCurrent, BaseId::CtxPopCurrent, BaseId::CtxGetCurrent})
    EXPECT_FALSE(LostContexts::Concerns(driver::EffectOf(base))) << driver::Name(base);
}

TEST(LostContexts, AContextThatWasDestroyedTakesItsLossWithIt) {
  StartedWorld world;
  const driver::DriverRef d = world.below();
  CUcontext context = nullptr;
  ASSERT_EQ(d.CtxGetCurrent(&context), CUDA_SUCCESS);
  LostContexts lost;
  lost.Lose(d, {CUDA_ERROR_LAUNCH_FAILED, 1});
  Passage passage{};
  passage.value[0] = reinterpret_cast<std::uintptr_t>(context);
  lost.After(Effect::Uses, passage);
  EXPECT_EQ(lost.Find(d).code, CUDA_ERROR_LAUNCH_FAILED);
  lost.After(Effect::DestroysContext, passage);
  EXPECT_EQ(lost.Find(d).code, CUDA_SUCCESS);
}

// A thread without a context loses all that there are. Contexts that are made later are good, each of them.
TEST(LostContexts, EachContextThatIsMadeAfterTheLossOfAllIsGood) {
  StartedWorld world;
  const driver::DriverRef d = world.below();
  CUcontext primary = nullptr;
  ASSERT_EQ(d.CtxGetCurrent(&primary), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxSetCurrent(nullptr), CUDA_SUCCESS);
  LostContexts lost;
  lost.Lose(d, {CUDA_ERROR_LAUNCH_FAILED, 1});
  CUcontext made[2] = {};
  for (CUcontext& context : made) {
    ASSERT_EQ(d.CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    Passage passage{};
    passage.value[0] = reinterpret_cast<std::uintptr_t>(&context);
    lost.After(Effect::CreatesContext, passage);
  }
  for (const CUcontext context : made) {
    ASSERT_EQ(d.CtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(lost.Find(d).code, CUDA_SUCCESS);
  }
  ASSERT_EQ(d.CtxSetCurrent(primary), CUDA_SUCCESS);
  EXPECT_EQ(lost.Find(d).code, CUDA_ERROR_LAUNCH_FAILED);
}

Passage Retain(std::uint64_t device) {
  Passage passage{};
  passage.value[1] = device;
  return passage;
}

Passage Release(std::uint64_t device) {
  Passage passage{};
  passage.value[0] = device;
  return passage;
}

TEST(PinnedContexts, TheLastReleaseOfTheProgramIsTold) {
  PinnedContexts pinned;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(pinned.Count(Effect::RetainsPrimary, Retain(3)), -1);
  EXPECT_EQ(pinned.Count(Effect::ReleasesPrimary, Release(3)), -1);
  EXPECT_EQ(pinned.Count(Effect::ReleasesPrimary, Release(3)), 3);
  EXPECT_EQ(pinned.Count(Effect::ResetsPrimary, Release(3)), -1) << "no release";
}

TEST(PinnedContexts, WhatOnlyThePinKeepsIsGoneForTheProgram) {
  GatedWorld world({}, Scope::Process);
  ASSERT_EQ(world.below().Init(0), CUDA_SUCCESS);
  PinnedContexts pinned;
  EXPECT_EQ(pinned.Unreferenced(), 0U) << "nothing is pinned";
  pinned.Pin(world.below(), 0);
  EXPECT_EQ(pinned.Unreferenced(), 1U);
  (void)pinned.Count(Effect::RetainsPrimary, Retain(0));
  EXPECT_EQ(pinned.Unreferenced(), 0U);
  pinned.NoteHeld(5);
  EXPECT_EQ(pinned.Unreferenced(), std::uint64_t{1} << 5) << "somebody else's reference is none of the program's";
}

TEST(PinnedContexts, ADeviceBeyondTheTableIsLeftAlone) {
  PinnedContexts pinned;
  pinned.NoteHeld(64);
  pinned.NoteHeld(-1);
  EXPECT_EQ(pinned.Count(Effect::ReleasesPrimary, Release(64)), -1);
  EXPECT_EQ(pinned.Unreferenced(), 0U);
}

Passage Call(CallId id, std::uint64_t first, CUresult injected = CUDA_SUCCESS) {
  Passage passage{};
  passage.id = id;
  passage.value[0] = first;
  passage.injected = injected;
  return passage;
}

CUresult Answer(const GoneHandles& gone, CallId id, std::uint64_t first) {
  Passage passage = Call(id, first);
  gone.Answer(&passage);
  EXPECT_EQ(passage.forward, passage.injected == CUDA_SUCCESS);
  return passage.injected;
}

TEST(GoneHandles, AReleaseThatWasToldToHaveFailedTakesItsHandle) {
  GoneHandles gone;
  gone.After(Call(CallId::StreamDestroy_v2, 0x10));
  EXPECT_FALSE(gone.any()) << "its caller knows";
  gone.After(Call(CallId::StreamDestroy_v2, 0x10, CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_EQ(Answer(gone, CallId::StreamSynchronize, 0x10), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Answer(gone, CallId::StreamSynchronize, 0x20), CUDA_SUCCESS);
  EXPECT_EQ(Answer(gone, CallId::EventSynchronize, 0x10), CUDA_SUCCESS) << "a handle of another family";
}

TEST(GoneHandles, AHandleThatTheDriverHandsOutIsThere) {
  GoneHandles gone;
  gone.After(Call(CallId::StreamDestroy_v2, 0x10, CUDA_ERROR_LAUNCH_FAILED));
  std::uint64_t made = 0x10;
  gone.After(Call(CallId::StreamCreate, reinterpret_cast<std::uintptr_t>(&made)));
  EXPECT_EQ(Answer(gone, CallId::StreamSynchronize, 0x10), CUDA_SUCCESS);
}

TEST(GoneHandles, AContextStaysWhenAccessToItEnds) {
  GoneHandles gone;
  gone.After(Call(CallId::CtxDisablePeerAccess, 0x10, CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_FALSE(gone.any());
}

TEST(GoneHandles, WhatFindsNoPlaceIsCounted) {
  GoneHandles gone;
  for (std::uint64_t i = 0; i < GoneHandles::kMost; ++i) gone.Add(driver::Family::Stream, 0x10 + i);
  EXPECT_EQ(gone.beyond(), 0U);
  gone.Add(driver::Family::Stream, 0x1000);
  EXPECT_EQ(gone.beyond(), 1U);
}

}  // namespace
}  // namespace cuaudit::faults::gate_tables_test
