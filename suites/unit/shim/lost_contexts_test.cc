// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/lost_contexts.h"

#include <gtest/gtest.h>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::lost_contexts_test {
namespace {

using driver::BaseId;

TEST(LostContexts, ConcernCallsThatNeedAContext) {
  for (const BaseId base : {BaseId::MemAlloc, BaseId::StreamCreate, BaseId::StreamSynchronize, BaseId::LaunchKernel})
    EXPECT_TRUE(LostContexts::Concerns(driver::EffectOf(base))) << driver::Name(base);
  for (const BaseId base : {BaseId::Init, BaseId::DeviceGetCount, BaseId::DevicePrimaryCtxRelease, BaseId::CtxCreate, BaseId::CtxDestroy,
                            BaseId::CtxSetCurrent, BaseId::CtxPopCurrent, BaseId::CtxGetCurrent})
    EXPECT_FALSE(LostContexts::Concerns(driver::EffectOf(base))) << driver::Name(base);
}

TEST(LostContexts, AContextThatWasDestroyedTakesItsLossWithIt) {
  GatedWorld world;
  world.Start();
  const driver::DriverRef d = world.below();
  CUcontext context = nullptr;
  ASSERT_EQ(d.CtxGetCurrent(&context), CUDA_SUCCESS);
  LostContexts lost;
  lost.Lose(d, {CUDA_ERROR_LAUNCH_FAILED, 1});
  Passage passage;
  passage.value[0] = reinterpret_cast<std::uintptr_t>(context);
  lost.After(driver::Effect::Uses, passage);
  EXPECT_EQ(lost.Find(d).code, CUDA_ERROR_LAUNCH_FAILED);
  lost.After(driver::Effect::DestroysContext, passage);
  EXPECT_EQ(lost.Find(d).code, CUDA_SUCCESS);
}

// A thread without a context loses all that there are. Contexts that are made later are good, each of them.
TEST(LostContexts, EachContextThatIsMadeAfterTheLossOfAllIsGood) {
  GatedWorld world;
  world.Start();
  const driver::DriverRef d = world.below();
  CUcontext primary = nullptr;
  ASSERT_EQ(d.CtxGetCurrent(&primary), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxSetCurrent(nullptr), CUDA_SUCCESS);
  LostContexts lost;
  lost.Lose(d, {CUDA_ERROR_LAUNCH_FAILED, 1});
  CUcontext made[2] = {};
  for (CUcontext& context : made) {
    ASSERT_EQ(d.CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
    Passage passage;
    passage.value[0] = reinterpret_cast<std::uintptr_t>(&context);
    lost.After(driver::Effect::CreatesContext, passage);
  }
  for (const CUcontext context : made) {
    ASSERT_EQ(d.CtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(lost.Find(d).code, CUDA_SUCCESS);
  }
  ASSERT_EQ(d.CtxSetCurrent(primary), CUDA_SUCCESS);
  EXPECT_EQ(lost.Find(d).code, CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace
}  // namespace cuaudit::faults::lost_contexts_test
