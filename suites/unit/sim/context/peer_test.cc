// SPDX-License-Identifier: MIT
// Contexts beside others: green contexts on parts of a device, and peers on another one.
#include "suites/support/sim_world.h"
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::peer_test {
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

// A context of each of two devices; that of device 0 is current.
struct Pair {
  Pair() : sim({.device_bytes = std::uint64_t{512} << 20, .device_count = 2}) {
    EXPECT_OK(sim.d.CtxCreate(&second, nullptr, 0, 1));
    EXPECT_OK(sim.d.CtxCreate(&first, nullptr, 0, 0));
  }
  Simulated sim;
  CUcontext first = nullptr;
  CUcontext second = nullptr;
};

TEST(Peer, AccessIsASwitchOfOneDirection) {
  Pair w;
  CUcontext popped = nullptr;
  int can = 0;
  EXPECT_OK(w.sim.d.DeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_EQ(w.sim.d.CtxDisablePeerAccess(w.second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_OK(w.sim.d.CtxEnablePeerAccess(w.second, 0));
  EXPECT_EQ(w.sim.d.CtxEnablePeerAccess(w.second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(w.sim.Live(Kind::PeerAccess), 1U);
  EXPECT_OK(w.sim.d.CtxPopCurrent(&popped));
  EXPECT_EQ(w.sim.d.CtxDisablePeerAccess(w.first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_OK(w.sim.d.CtxPushCurrent(w.first));
  EXPECT_OK(w.sim.d.CtxDisablePeerAccess(w.second));
  EXPECT_EQ(w.sim.d.CtxDisablePeerAccess(w.second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_EQ(w.sim.Live(Kind::PeerAccess), 0U);
}

TEST(Peer, AccessDiesWithEitherContext) {
  Pair w;
  EXPECT_OK(w.sim.d.CtxEnablePeerAccess(w.second, 0));
  EXPECT_OK(w.sim.d.CtxDestroy(w.second));
  EXPECT_EQ(w.sim.Live(Kind::PeerAccess), 0U);
  EXPECT_EQ(w.sim.d.CtxDisablePeerAccess(w.second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  // A primary context keeps its handle: what it could reach it has to ask for again.
  CUcontext primary = nullptr;
  EXPECT_OK(w.sim.d.DevicePrimaryCtxRetain(&primary, 1));
  EXPECT_OK(w.sim.d.CtxEnablePeerAccess(primary, 0));
  EXPECT_OK(w.sim.d.DevicePrimaryCtxRelease(1));
  EXPECT_EQ(w.sim.d.CtxEnablePeerAccess(primary, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_OK(w.sim.d.DevicePrimaryCtxRetain(&primary, 1));
  EXPECT_EQ(w.sim.d.CtxDisablePeerAccess(primary), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_OK(w.sim.d.CtxEnablePeerAccess(primary, 0));
  EXPECT_OK(w.sim.d.CtxDestroy(w.first));
  EXPECT_EQ(w.sim.Live(Kind::PeerAccess), 0U);
}

TEST(Peer, OneDeviceIsNoPeerOfItself) {
  Pair w;
  CUcontext other = nullptr;
  int can = 1;
  EXPECT_OK(w.sim.d.DeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
  EXPECT_OK(w.sim.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_EQ(w.sim.d.CtxEnablePeerAccess(w.first, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

TEST(Peer, CopiesNeedNoAccess) {
  Pair w;
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  const int in = 7;
  int out = 0;
  EXPECT_OK(w.sim.d.MemAlloc(&p, 64));
  EXPECT_OK(w.sim.d.MemcpyHtoD(p, &in, sizeof(in)));
  EXPECT_OK(w.sim.d.CtxPushCurrent(w.second));
  EXPECT_OK(w.sim.d.MemAlloc(&q, 64));
  EXPECT_OK(w.sim.d.MemcpyPeer(q, w.second, p, w.first, sizeof(in)));
  EXPECT_OK(w.sim.d.MemcpyDtoH(&out, q, sizeof(out)));
  EXPECT_EQ(out, 7);
  EXPECT_EQ(w.sim.d.MemcpyPeer(q, reinterpret_cast<CUcontext>(&out), p, w.first, sizeof(in)), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(Peer, APoolsAccessIsKeptPerDevice) {
  Pair w;
  CUmemoryPool pool = nullptr;
  CUmemAccessDesc desc = {};
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  desc.location.id = 1;
  EXPECT_OK(w.sim.d.DeviceGetDefaultMemPool(&pool, 0));
  EXPECT_OK(w.sim.d.MemPoolGetAccess(&flags, pool, &desc.location));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_OK(w.sim.d.MemPoolSetAccess(pool, &desc, 1));
  EXPECT_OK(w.sim.d.MemPoolGetAccess(&flags, pool, &desc.location));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  EXPECT_EQ(w.sim.d.MemPoolSetAccess(pool, &desc, 1), CUDA_ERROR_NOT_SUPPORTED);
}

// A stream, an allocation and 64 bytes of what is copied, in a context of each of two devices; that of device 0 is current.
class PeerCopy : public testing::TestWithParam<Schedule> {
 protected:
  PeerCopy() : w(GetParam(), 1, 2) {
    EXPECT_OK(w.d.CtxCreate(&second, nullptr, 0, 1));
    q = w.Memory();
    t = w.Stream();
    EXPECT_OK(w.d.CtxSetCurrent(w.sim.context));
  }
  void Fill(CUdeviceptr to, int value, CUstream stream, CUcontext where) {
    EXPECT_OK(w.d.CtxSetCurrent(where));
    EXPECT_OK(w.At(++count).MemsetD8Async(to, static_cast<unsigned char>(value), 64, stream));
    EXPECT_OK(w.d.CtxSetCurrent(w.sim.context));
  }
  int Read(CUdeviceptr from) {
    unsigned char byte = 0;
    EXPECT_OK(w.d.MemcpyDtoH(&byte, from, 1));
    return byte;
  }
  Witnessed w;
  CUcontext second = nullptr;
  std::uint64_t count = 0;
  CUdeviceptr p = w.Memory();
  CUdeviceptr q = 0;
  CUstream s = w.Stream();
  CUstream t = nullptr;
};

// cuMemcpyPeer comes after everything in both contexts, whatever their streams, and before everything that follows there.
TEST_P(PeerCopy, TheSynchronousOneIsABarrierOfBothContexts) {
  Fill(p, 1, s, w.sim.context);
  Fill(q, 7, t, second);
  EXPECT_OK(w.At(++count).MemcpyPeer(p, w.sim.context, q, second, 64));
  Fill(q, 8, t, second);
  EXPECT_OK(w.d.CtxSetCurrent(second));
  CUstream late = w.Stream();
  EXPECT_OK(w.d.CtxSetCurrent(w.sim.context));
  EXPECT_EQ(Read(p), 7);
  Fill(p, 9, s, w.sim.context);
  EXPECT_OK(w.At(++count).MemcpyPeer(p, w.sim.context, q, second, 64));
  Fill(q + 64, 8, late, second);
  EXPECT_EQ(Read(p), 8);
  w.ExpectNone();
}

// So are copies through the default stream between two devices, by whatever call.
TEST_P(PeerCopy, TheDefaultStreamIsOne) {
  Fill(q, 7, t, second);
  EXPECT_OK(w.At(++count).MemcpyDtoDAsync(p, q, 64, nullptr));
  Fill(q, 8, t, second);
  EXPECT_EQ(Read(p), 7);
  Fill(p, 1, s, w.sim.context);
  EXPECT_OK(w.At(++count).Memcpy(p, q, 64));
  Fill(q, 3, t, second);
  EXPECT_EQ(Read(p), 8);
  w.ExpectNone();
}

// In a stream of its own nothing else orders it.
TEST_P(PeerCopy, AnotherStreamIsNone) {
  Fill(q, 7, t, second);
  EXPECT_OK(w.At(2).MemcpyPeerAsync(p, w.sim.context, q, second, 64, s));
  w.ExpectOne(driver::MisuseRule::UnorderedAccess, 2, 1);
}

INSTANTIATE_TEST_SUITE_P(Schedules, PeerCopy, testing::ValuesIn(kSchedules), NameOf);

}  // namespace
}  // namespace cuaudit::sim::peer_test
