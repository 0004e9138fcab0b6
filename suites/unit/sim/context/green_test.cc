// SPDX-License-Identifier: MIT
#include "suites/support/sim_world.h"

namespace cuaudit::sim::green_test {
namespace {

using driver::Kind;

void Bump(void* argument) { ++*static_cast<int*>(argument); }

CUgreenCtx Green(const Simulated& sim) {
  CUdevResource all = {};
  CUdevResource part = {};
  unsigned groups = 1;
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  EXPECT_OK(sim.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_OK(sim.d.DevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16));
  EXPECT_OK(sim.d.DevResourceGenerateDesc(&desc, &part, 1));
  EXPECT_OK(sim.d.GreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

TEST(GreenContext, HoldsThePrimaryContextAlive) {
  Simulated sim;
  const CUgreenCtx green = Green(sim);
  unsigned flags = 0;
  int active = 0;
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  EXPECT_OK(sim.d.DevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  EXPECT_EQ(sim.d.DevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);  // its hold is not the client's to release
  EXPECT_OK(sim.d.GreenCtxDestroy(green));
  EXPECT_OK(sim.d.DevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_EQ(sim.Live(Kind::GreenContext), 0U);
}

TEST(GreenContext, ItsStreamsEndWithItAndMemoryDoesNot) {
  Simulated sim;
  const CUgreenCtx green = Green(sim);
  CUcontext view = nullptr;
  CUcontext popped = nullptr;
  CUstream s = nullptr;
  CUstream plain = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.StreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.CtxFromGreenCtx(&view, green));
  EXPECT_OK(sim.d.CtxPushCurrent(view));
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.MemAlloc(&p, 64));
  EXPECT_OK(sim.d.CtxPopCurrent(&popped));
  EXPECT_EQ(popped, view);
  EXPECT_OK(sim.d.GreenCtxDestroy(green));
  EXPECT_EQ(sim.d.StreamDestroy(s), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_OK(sim.d.StreamDestroy(plain));
  EXPECT_OK(sim.d.MemFree(p));
  EXPECT_EQ(sim.d.CtxPushCurrent(view), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(GreenContext, StreamZeroIsItsOwnWhileItIsCurrent) {
  Simulated sim;
  const CUgreenCtx green = Green(sim);
  CUcontext view = nullptr;
  CUgreenCtx of = nullptr;
  EXPECT_OK(sim.d.StreamGetGreenCtx(nullptr, &of));
  EXPECT_EQ(of, nullptr);
  EXPECT_OK(sim.d.CtxFromGreenCtx(&view, green));
  EXPECT_OK(sim.d.CtxPushCurrent(view));
  EXPECT_OK(sim.d.StreamGetGreenCtx(nullptr, &of));
  EXPECT_EQ(of, green);
}

TEST(GreenContext, AnEventOfTheWholeWaitsForEveryStream) {
  Simulated sim;
  const CUgreenCtx green = Green(sim);
  CUevent e = nullptr;
  CUstream s = nullptr;
  CUstream t = nullptr;
  int n = 0;
  EXPECT_OK(sim.d.EventCreate(&e, 0));
#if CUDA_VERSION >= 12050
  EXPECT_OK(sim.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
  EXPECT_OK(sim.d.GreenCtxStreamCreate(&t, green, CU_STREAM_NON_BLOCKING, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(s, Bump, &n));
  EXPECT_OK(sim.d.LaunchHostFunc(t, Bump, &n));
#endif
  EXPECT_OK(sim.d.GreenCtxRecordEvent(green, e));
  EXPECT_OK(sim.d.EventSynchronize(e));
#if CUDA_VERSION >= 12050
  EXPECT_EQ(n, 2);
#endif
}

#if CUDA_VERSION >= 12050
TEST(GreenContext, ItsFutureWorkWaitsForAnEventAndOthersDoNot) {
  Simulated sim;
  const CUgreenCtx green = Green(sim);
  CUevent e = nullptr;
  CUstream s = nullptr;
  CUstream plain = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.StreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.MemAlloc(&p, 64));
  EXPECT_OK(sim.d.MemsetD8(p, 0, 64));
  EXPECT_OK(sim.d.CtxSynchronize(nullptr));
  EXPECT_OK(sim.d.StreamWaitValue32(plain, p, 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_OK(sim.d.EventRecord(e, plain));
  EXPECT_OK(sim.d.GreenCtxWaitEvent(green, e));
  EXPECT_OK(sim.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
  int n = 0;
  int other = 0;
  CUstream free_stream = nullptr;
  EXPECT_OK(sim.d.LaunchHostFunc(s, Bump, &n));
  EXPECT_OK(sim.d.StreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.LaunchHostFunc(free_stream, Bump, &other));
  EXPECT_OK(sim.d.StreamSynchronize(free_stream));
  EXPECT_EQ(other, 1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sim.d.StreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(n, 0);
  EXPECT_OK(sim.d.StreamWriteValue32(free_stream, p, 1, 0));
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_EQ(n, 1);
}
#endif

TEST(GreenContext, InventedResourcesAreRefused) {
  Simulated sim;
  CUdevResource invented = {};
  CUdevResourceDesc desc = nullptr;
  invented.type = CU_DEV_RESOURCE_TYPE_SM;
  invented.sm.smCount = 16;
  EXPECT_EQ(sim.d.DevResourceGenerateDesc(&desc, &invented, 1), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

TEST(GreenContext, HoldsGroupsOfOneSplitEachOnce) {
  Simulated sim;
  CUdevResource all = {};
  CUdevResource part[2] = {};
  CUdevResource other[2] = {};
  CUdevResource held = {};
  unsigned groups = 2;
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  EXPECT_OK(sim.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_OK(sim.d.DevSmResourceSplitByCount(part, &groups, &all, nullptr, 0, 16));
  EXPECT_OK(sim.d.DevSmResourceSplitByCount(other, &groups, &all, nullptr, 0, 16));
  EXPECT_OK(sim.d.DevResourceGenerateDesc(&desc, part, 2));
  EXPECT_OK(sim.d.GreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  EXPECT_OK(sim.d.GreenCtxGetDevResource(green, &held, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(held.sm.smCount, 32U);
  const CUdevResource twice[2] = {part[0], part[0]};
  const CUdevResource mixed[2] = {part[0], other[1]};
  for (const CUdevResource* const list : {twice, mixed}) {
    CUdevResource given[2] = {list[0], list[1]};
    EXPECT_EQ(sim.d.DevResourceGenerateDesc(&desc, given, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  }
}

TEST(GreenContext, KeepsThePrimaryContextFromBeingReset) {
  Simulated sim;
  const CUgreenCtx green = Green(sim);
  EXPECT_EQ(sim.d.DevicePrimaryCtxReset(0), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_OK(sim.d.GreenCtxDestroy(green));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
}

}  // namespace
}  // namespace cuaudit::sim::green_test
