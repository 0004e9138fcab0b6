// SPDX-License-Identifier: MIT
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "faults/driver/call_id.h"
#include "suites/support/sim_world.h"

namespace cuaudit::sim {
namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace
}  // namespace cuaudit::sim

// Counts what the process takes from malloc while the simulator works. A sanitizer has its own.
#ifdef CUAUDIT_MALLOC_HOOKS
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t), void (*)(const volatile void*));
[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](auto...) { cuaudit::sim::allocations.fetch_add(1, std::memory_order_relaxed); }, [](auto...) {});
#else
extern "C" void* __libc_malloc(std::size_t);
// The build hides symbols, and clang this one too; operator new is in another library and would not find it.
extern "C" [[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  cuaudit::sim::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
#endif

namespace cuaudit::sim {
namespace {

using driver::Kind;

TEST(World, BooksNeverUseMalloc) {
  Simulated sim;
  const std::size_t before = allocations.load();
  CUstream s = nullptr;
  CUdeviceptr p = 0;
  CUgraph g = nullptr;
  CUgraphNode n = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.MemAlloc(&p, 1 << 20));
  EXPECT_OK(sim.d.MemsetD8Async(p, 1, 1 << 20, s));
  EXPECT_OK(sim.d.GraphCreate(&g, 0));
  EXPECT_OK(sim.d.GraphAddEmptyNode(&n, g, nullptr, 0));
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_EQ(allocations.load(), before);
  // Volatile: an optimiser leaves out an allocation that nobody uses.
  void* volatile block = malloc(1);
  EXPECT_EQ(allocations.load(), before + 1);
  int* volatile number = new int(1);
  EXPECT_EQ(allocations.load(), before + 2);
  delete number;
  free(block);
}

TEST(World, RunsOutOfMemoryAtItsSize) {
  Simulated sim({.device_bytes = std::uint64_t{64} << 20});
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  EXPECT_OK(sim.d.MemAlloc(&p, 48 << 20));
  EXPECT_EQ(sim.d.MemAlloc(&q, 32 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(sim.d.MemFree(p));
  EXPECT_OK(sim.d.MemAlloc(&q, 32 << 20));
}

TEST(World, FragmentsMergeAgain) {
  Simulated sim({.device_bytes = std::uint64_t{64} << 20});
  CUdeviceptr blocks[64];
  for (int round = 0; round < 3; ++round) {
    for (CUdeviceptr& p : blocks) ASSERT_EQ(sim.d.MemAlloc(&p, 1 << 20), CUDA_SUCCESS);
    for (std::size_t i = 0; i < 64; i += 2) EXPECT_OK(sim.d.MemFree(blocks[i]));
    for (std::size_t i = 1; i < 64; i += 2) EXPECT_OK(sim.d.MemFree(blocks[i]));
    CUdeviceptr all = 0;
    ASSERT_EQ(sim.d.MemAlloc(&all, 64 << 20), CUDA_SUCCESS);
    EXPECT_OK(sim.d.MemFree(all));
  }
}

TEST(World, StaleHandlesStayStale) {
  Simulated sim;
  CUevent old = nullptr;
  EXPECT_OK(sim.d.EventCreate(&old, 0));
  EXPECT_OK(sim.d.EventDestroy(old));
  for (int i = 0; i < 5000; ++i) {
    CUevent e = nullptr;
    ASSERT_EQ(sim.d.EventCreate(&e, 0), CUDA_SUCCESS);
    ASSERT_NE(e, old);
    ASSERT_EQ(sim.d.EventDestroy(e), CUDA_SUCCESS);
  }
  EXPECT_EQ(sim.d.EventDestroy(old), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(sim.d.StreamDestroy(reinterpret_cast<CUstream>(old)), CUDA_ERROR_INVALID_HANDLE);
}

TEST(World, HandlesOfAnotherWorldAreUnknown) {
  Simulated one;
  Simulated two;
  CUstream s = nullptr;
  EXPECT_OK(one.d.StreamCreate(&s, 0));
  EXPECT_EQ(two.d.StreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_OK(one.d.StreamDestroy(s));
}

TEST(World, CurrentContextIsPerThread) {
  Simulated sim;
  CUcontext seen = sim.context;
  CUdeviceptr p = 0;
  CUresult result = CUDA_SUCCESS;
  std::thread other([&] {
    EXPECT_OK(sim.d.CtxGetCurrent(&seen));
    result = sim.d.MemAlloc(&p, 16);
  });
  other.join();
  EXPECT_EQ(seen, nullptr);
  EXPECT_EQ(result, CUDA_ERROR_INVALID_CONTEXT);
}

TEST(World, TwoWorldsInTwoThreadsDoNotMeet) {
  const auto life = [](std::uint64_t* left) {
    Simulated sim;
    for (int i = 0; i < 300; ++i) {
      CUstream s = nullptr;
      CUdeviceptr p = 0;
      EXPECT_OK(sim.d.StreamCreate(&s, 0));
      EXPECT_OK(sim.d.MemAllocAsync(&p, 512, s));
      EXPECT_OK(sim.d.MemFreeAsync(p, s));
      if (i % 3 == 0) continue;
      EXPECT_OK(sim.d.StreamDestroy(s));
    }
    *left = sim.Live(Kind::Stream);
  };
  std::uint64_t left[2] = {};
  std::thread one(life, &left[0]);
  std::thread two(life, &left[1]);
  one.join();
  two.join();
  EXPECT_EQ(left[0], 100U);
  EXPECT_EQ(left[1], 100U);
}

TEST(World, ThreadsShareOneWorld) {
  Simulated sim;
  std::atomic<int> ran{0};
  const auto work = [&] {
    EXPECT_OK(sim.d.CtxSetCurrent(sim.context));
    for (int i = 0; i < 100; ++i) {
      CUstream s = nullptr;
      EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
      EXPECT_OK(sim.d.LaunchHostFunc(
          s, [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); }, &ran));
      EXPECT_OK(i % 2 == 0 ? sim.d.StreamSynchronize(s) : sim.d.CtxSynchronize(nullptr));
      EXPECT_OK(sim.d.StreamDestroy(s));
    }
  };
  std::thread one(work);
  std::thread two(work);
  one.join();
  two.join();
  EXPECT_EQ(ran.load(), 200);
  EXPECT_EQ(sim.Live(Kind::Stream), 0U);
}

TEST(World, BooksCountReferencesAndStackEntries) {
  Simulated sim;
  CUcontext c = nullptr;
  EXPECT_EQ(sim.Live(Kind::PrimaryContext), 1U);
  EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&c, 0));
  EXPECT_OK(sim.d.CtxPushCurrent(c));
  EXPECT_EQ(sim.Live(Kind::PrimaryContext), 2U);
  EXPECT_EQ(sim.Live(Kind::ContextStackEntry), 2U);
  CUdeviceptr p = 0;
  CUevent e = nullptr;
  EXPECT_OK(sim.d.MemAlloc(&p, 16));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  EXPECT_EQ(sim.Live(Kind::DeviceMemory), 0U);
  EXPECT_EQ(sim.Live(Kind::Event), 0U);
  EXPECT_EQ(sim.Live(Kind::PrimaryContext), 2U);  // a reset releases nobody's reference
  EXPECT_EQ(sim.d.MemAlloc(&p, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  EXPECT_EQ(sim.Live(Kind::PrimaryContext), 0U);
  EXPECT_EQ(sim.d.DevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(World, ARetainAfterAResetRevivesTheContext) {
  Simulated sim;
  CUcontext c = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  EXPECT_EQ(sim.d.MemAlloc(&p, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&c, 0));
  EXPECT_OK(sim.d.MemAlloc(&p, 16));
  EXPECT_OK(sim.d.MemFree(p));
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
}

TEST(World, WithoutAContextAnObjectsOwnWillDoUnlessItIsLost) {
  Simulated sim;
  CUstream s = nullptr;
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  void* h = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.MemAlloc(&p, 16));
  EXPECT_OK(sim.d.MemAllocHost(&h, 16));
  EXPECT_OK(sim.d.CtxSetCurrent(nullptr));
  EXPECT_OK(sim.d.MemAllocAsync(&q, 16, s));
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_EQ(sim.d.StreamSynchronize(nullptr), CUDA_ERROR_INVALID_CONTEXT);  // no object says which context
  EXPECT_EQ(sim.d.MemAllocAsync(&q, 16, CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_OK(sim.d.MemFree(0));  // freeing null needs no context
  EXPECT_OK(sim.d.MemFreeHost(nullptr));
  EXPECT_EQ(sim.d.MemFreeAsync(0, nullptr), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_OK(sim.d.CtxSetCurrent(sim.context));
  // A queued copy that meets freed memory loses the context.
  EXPECT_OK(sim.d.MemcpyHtoDAsync(q, h, 16, s));
  EXPECT_OK(sim.d.MemFree(q));  // memory of a pool goes back without waiting
  EXPECT_EQ(sim.d.StreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sim.d.MemFree(p), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUcontext popped = nullptr;
  EXPECT_OK(sim.d.CtxPopCurrent(&popped));
  EXPECT_EQ(sim.d.MemFree(p), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sim.d.StreamDestroy(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sim.Live(Kind::DeviceMemory), 1U);
  EXPECT_EQ(sim.Live(Kind::Stream), 1U);
}

TEST(World, AHandleThatDiedWithItsContextIsToldFromADestroyedOne) {
  Simulated sim;
  CUcontext c = nullptr;
  CUevent mine = nullptr;
  CUevent its = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.EventCreate(&mine, 0));
  EXPECT_OK(sim.d.EventCreate(&its, 0));
  EXPECT_OK(sim.d.EventDestroy(mine));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_EQ(sim.d.EventDestroy(mine), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(sim.d.EventDestroy(its), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(sim.d.EventQuery(its), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(sim.d.CtxDestroy(c), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST(World, ALinkStateOutlivesItsContext) {
  Simulated sim;
  CUcontext c = nullptr;
  CUlinkState link = nullptr;
  void* cubin = nullptr;
  std::size_t bytes = 0;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.LinkCreate(0, nullptr, nullptr, &link));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_EQ(sim.Live(Kind::LinkState), 1U);
  EXPECT_OK(sim.d.LinkComplete(link, &cubin, &bytes));
  EXPECT_OK(sim.d.LinkDestroy(link));
  EXPECT_EQ(sim.Live(Kind::LinkState), 0U);
}

TEST(World, APrimaryContextThatNobodyRetainsIsCurrentButRefusesWork) {
  Simulated sim;
  CUdeviceptr p = 0;
  CUcontext popped = nullptr;
  EXPECT_OK(sim.d.CtxPopCurrent(&popped));
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  EXPECT_OK(sim.d.CtxPushCurrent(sim.context));
  EXPECT_EQ(sim.d.MemAlloc(&p, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(sim.d.MemFree(0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST(World, ForkedChildIsRefused) {
  Simulated sim;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CUdeviceptr p = 0;
    _exit(sim.d.MemAlloc(&p, 16) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#if CUAUDIT_COUNTS_MALLOC
TEST(World, RefusedAddressSpaceIsNoCrash) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    DropSpareWorlds();
    rlimit limit{std::size_t{2} << 20, std::size_t{2} << 20};
    setrlimit(RLIMIT_AS, &limit);
    _exit(CreateWorld({}) == nullptr ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(World, ModestAddressSpaceGivesASmallerDevice) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    DropSpareWorlds();
    rlimit limit{std::size_t{3} << 30, std::size_t{3} << 30};
    setrlimit(RLIMIT_AS, &limit);
    World* const world = CreateWorld({});
    std::size_t bytes = 0;
    if (world == nullptr || Driver(world).Init(0) != CUDA_SUCCESS) _exit(1);
    _exit(Driver(world).DeviceTotalMem(&bytes, 0) == CUDA_SUCCESS && bytes < (std::size_t{3} << 30) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

TEST(World, EveryEntryPointAnswers) {
  Simulated sim;
  std::size_t modelled = 0;
  for (std::size_t i = 0; i < driver::kCallCount; ++i) {
    EXPECT_NE(sim.d.table->entry[i], nullptr) << driver::kCalls[i].symbol;
    modelled += sim.d.table->modelled[i] ? 1U : 0U;
  }
  EXPECT_GT(modelled, 300U);
  CUmulticastGranularity_flags option{};
  std::size_t bytes = 0;
  CUmulticastObjectProp properties{};
  EXPECT_EQ(sim.d.MulticastGetGranularity(&bytes, &properties, option), CUDA_ERROR_NOT_SUPPORTED);
}

// Their numbers come round after 1024 worlds.
TEST(World, AHandleOfAWorldLongGoneIsStale) {
  constexpr int kRound = 1024;
  const WorldOptions small{.device_bytes = std::uint64_t{64} << 20};
  std::vector<CUstream> streams;
  for (int round = 0; round < 4; ++round) {
    {
      const Simulated sim(small);
      for (const CUstream stream : streams) EXPECT_EQ(sim.d.StreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
      streams.emplace_back();
      EXPECT_OK(sim.d.StreamCreate(&streams.back(), 0));
      EXPECT_OK(sim.d.StreamQuery(streams.back()));
      for (std::size_t i = 0; i + 1 < streams.size(); ++i) EXPECT_EQ(sim.d.StreamQuery(streams[i]), CUDA_ERROR_INVALID_HANDLE);
    }
    for (int i = 1; i < kRound; ++i) DestroyWorld(CreateWorld(small));
  }
}

}  // namespace
}  // namespace cuaudit::sim
