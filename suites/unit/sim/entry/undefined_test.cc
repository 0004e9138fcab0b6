// SPDX-License-Identifier: MIT
// A world that is told to die where the genuine driver dies, and that it does so nowhere else.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>

#include <cstdint>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::undefined_test {
namespace {

sigjmp_buf back;
volatile int code;

// True when the call dies of SIGSEGV. The program has a handler of its own, and goes on behind the call.
template <typename F>
bool Dies(F call) {
  struct sigaction handler {};
  struct sigaction before {};
  handler.sa_sigaction = [](int, siginfo_t* about, void*) {
    code = about->si_code;
    siglongjmp(back, 1);
  };
  handler.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &handler, &before);
  const bool died = sigsetjmp(back, 1) != 0;
  if (!died) call();
  sigaction(SIGSEGV, &before, nullptr);
  return died;
}

constexpr const char* kPtx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry plain()\n{\n ret;\n}\n";
constexpr WorldOptions kCrashing = {.device_bytes = std::uint64_t{64} << 20, .undefined = OnUndefined::Crash};

TEST(Undefined, IsAFaultThatTheProgramsHandlerSeesAndTheWorldSurvives) {
  const Simulated sim(kCrashing);
  CUstream s = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.StreamDestroy(s));
  EXPECT_TRUE(Dies([&] { (void)sim.d.StreamDestroy(s); }));
  EXPECT_GT(code, 0) << "a fault, not a signal that somebody sent";
  EXPECT_TRUE(Dies([&] {
    (void)sim.d.LaunchHostFunc(
        s, [](void*) {}, nullptr);
  }));
  EXPECT_TRUE(Dies([&] { (void)sim.d.EventQuery(reinterpret_cast<CUevent>(std::uintptr_t{0x1234560})); })) << "invented";
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.StreamDestroy(s));
}

TEST(Undefined, IsAnErrorInAnyOtherWorld) {
  const Simulated sim;
  CUstream s = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.StreamDestroy(s));
  EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.StreamDestroy(s), CUDA_ERROR_INVALID_HANDLE); }));
}

TEST(Undefined, IsNotWhatTheGenuineDriverKnows) {
  const Simulated sim(kCrashing);
  CUmodule m = nullptr;
  CUcontext c = nullptr;
  CUevent e = nullptr;
  CUgraph g = nullptr;
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(sim.d.ModuleUnload(m));
  EXPECT_OK(sim.d.GraphCreate(&g, 0));
  EXPECT_OK(sim.d.GraphDestroy(g));
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_FALSE(Dies([&] {
    EXPECT_EQ(sim.d.ModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.GraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(sim.d.EventDestroy(e), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(sim.d.StreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.StreamDestroy(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.EventDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.EventRecord(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  }));
}

TEST(Undefined, IsAStreamOfAContextThatWasDestroyedAndNoneOfAReleasedOne) {
  const Simulated sim(kCrashing);
  CUcontext c = nullptr;
  CUstream s = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_TRUE(Dies([&] { (void)sim.d.StreamDestroy(s); }));
  EXPECT_TRUE(Dies([&] { (void)sim.d.StreamSynchronize(s); }));
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&c, 0));
  EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.StreamDestroy(s), CUDA_ERROR_INVALID_CONTEXT) << "the context has begun anew"; }));
}

// Of what was in a context that is reset the genuine driver knows; of some kinds it does not when the context is destroyed or released.
TEST(Undefined, IsWhatEndedWithItsContextUnlessTheDriverKnowsThat) {
  enum class End { Destroyed, Released, Reset };
  for (const End end : {End::Destroyed, End::Released, End::Reset}) {
    SCOPED_TRACE(static_cast<int>(end));
    const Simulated sim(kCrashing);
    CUcontext c = nullptr;
    CUarray array = nullptr;
    CUevent event = nullptr;
    CUtexref reference = nullptr;
    const CUDA_ARRAY_DESCRIPTOR shape{16, 16, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    const bool own = end == End::Destroyed;
    EXPECT_OK(own ? sim.d.CtxCreate(&c, nullptr, 0, 0) : CUDA_SUCCESS);
    EXPECT_OK(sim.d.ArrayCreate(&array, &shape));
    EXPECT_OK(sim.d.EventCreate(&event, 0));
    EXPECT_OK(sim.d.TexRefCreate(&reference));
    EXPECT_OK(own ? sim.d.CtxDestroy(c) : end == End::Reset ? sim.d.DevicePrimaryCtxReset(0) : sim.d.DevicePrimaryCtxRelease(0));
    EXPECT_OK(own ? CUDA_SUCCESS : sim.d.DevicePrimaryCtxRetain(&c, 0));
    EXPECT_EQ(Dies([&] { EXPECT_EQ(sim.d.ArrayDestroy(array), CUDA_ERROR_CONTEXT_IS_DESTROYED); }), end == End::Released);
    EXPECT_EQ(Dies([&] { EXPECT_EQ(sim.d.EventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED); }), end == End::Released);
    EXPECT_EQ(Dies([&] { EXPECT_NE(sim.d.TexRefDestroy(reference), CUDA_SUCCESS); }), end != End::Reset);
  }
}

TEST(Undefined, IsTheEndOfAGraphWhoseUserObjectWasReleasedForAnother) {
  const Simulated sim(kCrashing);
  CUgraph holder = nullptr, other = nullptr;
  CUuserObject object = nullptr;
  EXPECT_OK(sim.d.GraphCreate(&holder, 0));
  EXPECT_OK(sim.d.GraphCreate(&other, 0));
  EXPECT_OK(sim.d.UserObjectCreate(
      &object, nullptr, [](void*) {}, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_OK(sim.d.GraphRetainUserObject(holder, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_OK(sim.d.GraphReleaseUserObject(other, object, 1));
  EXPECT_OK(sim.d.UserObjectRelease(object, 1));
  EXPECT_OK(sim.d.GraphDestroy(other));
  EXPECT_TRUE(Dies([&] { (void)sim.d.GraphDestroy(holder); }));
}

TEST(Undefined, IsASettingWithoutAValueOrOfAReleasedContext) {
  for (const bool crashes : {false, true}) {
    const Simulated sim({.device_bytes = std::uint64_t{64} << 20, .undefined = crashes ? OnUndefined::Crash : OnUndefined::Error});
    CUmemoryPool pool = nullptr;
    EXPECT_OK(sim.d.DeviceGetDefaultMemPool(&pool, 0));
    EXPECT_EQ(Dies([&] { EXPECT_EQ(sim.d.ThreadExchangeStreamCaptureMode(nullptr), CUDA_ERROR_INVALID_VALUE); }), crashes);
    EXPECT_EQ(
        Dies([&] { EXPECT_EQ(sim.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr), CUDA_ERROR_INVALID_VALUE); }),
        crashes);
    EXPECT_FALSE(Dies([&] {
      EXPECT_EQ(sim.d.MemPoolSetAttribute(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr), CUDA_ERROR_INVALID_VALUE);
    })) << "no pool is known first";
    EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
    unsigned flags = 99;
    EXPECT_OK(sim.d.CtxGetFlags(&flags));
    EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1), CUDA_ERROR_CONTEXT_IS_DESTROYED); }));
    EXPECT_EQ(Dies([&] { EXPECT_EQ(sim.d.CtxSetFlags(CU_CTX_SCHED_SPIN), CUDA_ERROR_CONTEXT_IS_DESTROYED); }), crashes);
    EXPECT_OK(sim.d.CtxSetCurrent(nullptr));
    EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.CtxSetFlags(CU_CTX_SCHED_SPIN), CUDA_ERROR_INVALID_CONTEXT); }));
  }
}

// Uses of a destroyed object that the genuine driver answers, without a crash.
TEST(Undefined, IsNotWhatTheGenuineDriverAnswersForADestroyedObject) {
  const Simulated sim(kCrashing);
  CUmodule m = nullptr;
  CUevent e = nullptr, live = nullptr;
  CUgraph g = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_HOST;
  CUmipmappedArray levels = nullptr;
  CUlinkState link = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  EXPECT_OK(sim.d.EventCreate(&live, 0));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.EventDestroy(e));
  EXPECT_OK(sim.d.GraphCreate(&g, 0));
  EXPECT_OK(sim.d.GraphAddEmptyNode(&node, g, nullptr, 0));
  EXPECT_OK(sim.d.GraphDestroyNode(node));
  EXPECT_OK(sim.d.MipmappedArrayCreate(&levels, &shape, 2));
  EXPECT_OK(sim.d.MipmappedArrayDestroy(levels));
  EXPECT_OK(sim.d.LinkCreate(0, nullptr, nullptr, &link));
  EXPECT_OK(sim.d.LinkDestroy(link));
  EXPECT_TRUE(Dies([&] { (void)sim.d.MipmappedArrayDestroy(levels); }));
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_FALSE(Dies([&] {
    float milliseconds = 0;
    EXPECT_EQ(sim.d.MipmappedArrayDestroy(levels), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(sim.d.EventElapsedTime(&milliseconds, live, e), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(sim.d.GraphNodeGetType(node, &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EMPTY);
    EXPECT_OK(sim.d.GraphAddEventRecordNode(&node, g, nullptr, 0, e));
    EXPECT_EQ(sim.d.LinkAddFile(link, CU_JIT_INPUT_PTX, "/nonexistent", 0, nullptr, nullptr), CUDA_ERROR_FILE_NOT_FOUND);
  }));
  EXPECT_TRUE(Dies([&] {
    CUgraphExec x = nullptr;
    (void)sim.d.GraphInstantiateWithFlags(&x, g, 0);
  }));
  EXPECT_OK(sim.d.EventRecord(live, nullptr));
  EXPECT_TRUE(Dies([&] {
    float milliseconds = 0;
    (void)sim.d.EventElapsedTime(&milliseconds, live, e);
  }));
  EXPECT_TRUE(Dies([&] { (void)sim.d.LinkAddFile(link, CU_JIT_INPUT_PTX, "/dev/null", 0, nullptr, nullptr); }));
  EXPECT_TRUE(Dies([&] { (void)sim.d.GraphNodeGetType(reinterpret_cast<CUgraphNode>(std::uintptr_t{0x1234560}), &type); })) << "invented";
}

TEST(Undefined, IsACopyToADestroyedArrayUnlessAGraphIsToDoItLater) {
  const Simulated sim(kCrashing);
  CUarray array = nullptr;
  CUgraph g = nullptr;
  CUgraphNode node = nullptr;
  CUdeviceptr p = 0;
  unsigned char bytes[16] = {};
  const CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  EXPECT_OK(sim.d.MemAlloc(&p, 64));
  EXPECT_OK(sim.d.GraphCreate(&g, 0));
  EXPECT_OK(sim.d.ArrayCreate(&array, &shape));
  EXPECT_OK(sim.d.ArrayDestroy(array));
  EXPECT_TRUE(Dies([&] { (void)sim.d.MemcpyHtoA(array, 0, bytes, sizeof(bytes)); }));
  EXPECT_TRUE(Dies([&] { (void)sim.d.MemcpyHtoAAsync(array, 0, bytes, sizeof(bytes), nullptr); }));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = p;
  copy.WidthInBytes = 16;
  copy.Height = copy.Depth = 1;
  EXPECT_OK(sim.d.GraphAddMemcpyNode(&node, g, nullptr, 0, &copy, nullptr));
  copy.srcArray = reinterpret_cast<CUarray>(std::uintptr_t{0x1234560});
  EXPECT_EQ(sim.d.GraphAddMemcpyNode(&node, g, nullptr, 0, &copy, nullptr), CUDA_ERROR_INVALID_HANDLE) << "invented";
}

}  // namespace
}  // namespace cuaudit::sim::undefined_test
