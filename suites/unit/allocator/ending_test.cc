// SPDX-License-Identifier: MIT
// Forks, the end of the process or of the context, and what a tracer sees.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "allocator/owned_block.h"
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::ending_test {
namespace {

TEST(Fork, TheChildNeverReachesTheDriver) {
  Allocating a;
  CUstream s = a.Stream();
  const StreamRef ref = a.Ref(s);
  const CUdeviceptr live = a.Get(64 * kKiB, s);
  a.Drop(a.Get(64 * kKiB, s));  // one is in this thread's cache
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    CUdeviceptr out = 1;
    StreamRef other;
    Snapshot snapshot;
    wrong |= a->Allocate(64 * kKiB, ref, &out) == CUDA_ERROR_NOT_INITIALIZED && out == 0 ? 0 : 1;
    wrong |= a->Allocate(0, 64 * kKiB, s, &out) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 2;
    wrong |= a->Free(live) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 4;
    wrong |= a->RecordUse(live, ref) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 8;
    a->SetTracer({.record = [](void*, const TraceEvent&) noexcept {}});
    a->SetTracer({});
    wrong |= a->Allocate(64 * kKiB, ref, &out) == CUDA_ERROR_NOT_INITIALIZED && a->EmptyCache() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 16;
    wrong |= a->Identify(0, s, &other) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 32;
    wrong |= a->Close() == CUDA_ERROR_NOT_INITIALIZED && a->TakeSnapshot(&snapshot) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 64;
    a.allocator.reset();
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(a.Get(64 * kKiB, s) != 0, true);
  a.Drop(live);
}

// In a process where nothing else used the place that the thread keeps for the wiped number: a fresh thread, and two allocators, so that
// one of them has another place.
TEST(Fork, TheChildOfAFreshThreadFindsNothingCached) {
  std::thread([] {
    Allocating first;
    Allocating second;
    int status = -1;
    const StreamRef refs[] = {first.Ref(first.Stream()), second.Ref(second.Stream())};
    CUdeviceptr cached = 0;
    ASSERT_OK(first->Allocate(64 * kKiB, refs[0], &cached));
    ASSERT_OK(first->Free(cached));
    ASSERT_OK(second->Allocate(64 * kKiB, refs[1], &cached));
    const pid_t child = fork();
    if (child == 0) {
      CUdeviceptr out = 1;
      int wrong = first->Allocate(64 * kKiB, refs[0], &out) == CUDA_ERROR_NOT_INITIALIZED && out == 0 ? 0 : 1;
      wrong |= second->Allocate(64 * kKiB, refs[1], &out) == CUDA_ERROR_NOT_INITIALIZED && out == 0 ? 0 : 2;
      wrong |= second->Free(cached) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 4;
      _exit(wrong);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_OK(second->Free(cached));
  }).join();
}

// Who takes turns between allocators finds what each keeps for this thread, and asks no driver: so it does not hear of the capture.
TEST(ThreadOfTwoAllocators, TakesTurnsWithoutADetour) {
  Options options = {.capture_check_interval = 1000};
  Allocating a(options);
  Allocating b(options);
  const std::pair<Allocating*, StreamRef> both[] = {{&a, a.Ref(a.Stream())}, {&b, b.Ref(b.Stream())}};
  for (int turn = 0; turn < 10; ++turn) {
    for (const auto& [one, ref] : both) {
      CUdeviceptr address = 0;
      EXPECT_OK((*one)->Allocate(4096, ref, &address));
      one->Drop(address);
      if (turn == 5) {
        EXPECT_OK(one->d.StreamBeginCapture(ref.handle(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      }
    }
  }
  for (const auto& [one, ref] : both) {
    CUgraph graph = nullptr;
    EXPECT_OK(one->d.StreamEndCapture(ref.handle(), &graph));
    EXPECT_OK(one->d.GraphDestroy(graph));
  }
}

// A thread-local object that was made before the thread's first allocation is destroyed after the thread's cache: what it allocates then
// must not make another cache, which nobody would ever take over.
TEST(ThreadEnd, AllocatingAfterTheCacheHasGoneMakesNoOtherCache) {
  struct Late {
    Allocator* allocator = nullptr;
    StreamRef stream;
    CUdeviceptr address = 0;
    CUresult result = CUDA_SUCCESS;
    ~Late() {
      if (allocator == nullptr) return;
      result = allocator->Allocate(64 * kKiB, stream, &address);
      if (result == CUDA_SUCCESS) result = allocator->Free(address);
      if (result != CUDA_SUCCESS) std::abort();
    }
  };
  Allocating a;
  const StreamRef ref = a.Ref(a.Stream());
  for (int i = 0; i < 100; ++i) {
    std::thread([&a, ref] {
      thread_local Late late;
      late.allocator = a.allocator.get();
      late.stream = ref;
      CUdeviceptr address = 0;
      EXPECT_OK(a->Allocate(64 * kKiB, ref, &address));
      EXPECT_OK(a->Free(address));
    }).join();
  }
  EXPECT_EQ(a.Stats().thread_caches, 1U) << "each thread takes over the cache of the one before it";
  EXPECT_EQ(a.Stats().allocation[0].current, 0);
}

// At the moment of the fork a lock of the allocator is held, by whom does not matter: nobody will let go of it in the child.
TEST(Fork, TheChildNeverWaitsForALockThatWasHeld) {
  Allocating a;
  CUstream s = a.Stream();
  const StreamRef ref = a.Ref(s);
  struct InChild {
    Allocator* allocator;
    StreamRef stream;
    pid_t child;
  } in{a.allocator.get(), ref, 0};
  Tracer tracer = {.self = &in};
  tracer.record = [](void* self, const TraceEvent& event) noexcept {
    auto* const me = static_cast<InChild*>(self);
    if (event.action != TraceAction::FreeCompleted || me->child != 0) return;  // told with the lock of the block's stream held
    me->child = fork();
    if (me->child != 0) return;
    alarm(20);
    Allocator* const allocator = me->allocator;
    Statistics statistics;
    Snapshot snapshot;
    CUdeviceptr base = 0;
    std::size_t size = 0;
    PoolId pool;
    int wrong = 0;
    allocator->GetStatistics(0, &statistics);
    wrong |= statistics.reserved_bytes[0].current == 0 ? 0 : 1;
    allocator->ResetPeaks(0);
    allocator->ResetAccumulated(0);
    wrong |= allocator->TakeSnapshot(&snapshot) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 2;
    wrong |= allocator->FindBlock(event.address, &base, &size) ? 4 : 0;
    wrong |= allocator->Allocate(4096, me->stream, &base) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 8;
    wrong |= allocator->Trim(0, 0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 16;
    wrong |= allocator->CreatePool({}, &pool) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 32;
    wrong |= allocator->AddOomObserver({}) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 64;
    wrong |= allocator->AddFreeMemoryCallback({}) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 128;
    _exit(wrong);
  };
  a->SetTracer(tracer);
  a.Drop(a.Get(3 * kMiB, s));
  (void)a.Stats();  // looks at what was freed
  a->SetTracer({});
  ASSERT_GT(in.child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(in.child, &status, 0), in.child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Exit, DriverObjectsAreLeftAloneOnceTheDriverIsShutDown) {
  sim::World* const world = sim::CreateWorld({.device_bytes = 64 * kMiB});
  const driver::DriverRef d = sim::Driver(world);
  ASSERT_OK(d.Init(0));
  const DeviceConfig config;
  std::unique_ptr<Allocator> allocator;
  ASSERT_OK(Allocator::Create(d, &config, 1, {}, &allocator));
  CUcontext context = nullptr;
  ASSERT_OK(d.DevicePrimaryCtxRetain(&context, 0));
  ASSERT_OK(d.CtxSetCurrent(context));
  CUstream s = nullptr;
  ASSERT_OK(d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUdeviceptr x = 0;
  CUdeviceptr y = 0;
  ASSERT_OK(allocator->Allocate(0, 4096, s, &x));
  ASSERT_OK(allocator->Allocate(0, 4 * kMiB, s, &y));
  StreamRef ref;
  ASSERT_OK(allocator->Identify(0, s, &ref));
  CUdeviceptr z = 0;
  ASSERT_OK(allocator->Allocate(2 * kMiB, ref, &z));
  sim::Shutdown(world);
  EXPECT_OK(allocator->Free(x));
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(allocator->Allocate(0, 4096, s, &x), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(allocator->RecordUse(y, s), CUDA_ERROR_DEINITIALIZED);
  EXPECT_OK(allocator->Free(z));
  EXPECT_EQ(allocator->Allocate(2 * kMiB, ref, &z), CUDA_ERROR_DEINITIALIZED) << "nor is what the thread's cache holds handed out";
  EXPECT_OK(allocator->Free(y));
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_DEINITIALIZED);
  EXPECT_NE(std::string(allocator->LastErrorText()).find("left alone"), std::string::npos);
  allocator.reset();
  EXPECT_EQ(sim::LiveCount(world, driver::Kind::DeviceMemory), 2U);
  sim::DestroyWorld(world);
}

TEST(Trace, TellsOfEachStepInOrder) {
  struct Seen {
    std::vector<TraceEvent> events;
    int stacks = 0;
  } seen;
  Allocating a({.reuse = Reuse::Wait});
  Tracer tracer = {.self = &seen};
  tracer.capture = [](void* self) noexcept -> void* {
    ++static_cast<Seen*>(self)->stacks;
    return self;
  };
  tracer.record = [](void* self, const TraceEvent& event) noexcept { static_cast<Seen*>(self)->events.push_back(event); };
  a->SetTracer(tracer);
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  a.Use(x, 12 * kMiB, s, t);
  a.Drop(x);
  EXPECT_EQ(a.Get(12 * kMiB, s), x);
  EXPECT_EQ(a.Look().segments[0].blocks[0].stack, &seen);
  a.Drop(x);
  ASSERT_OK(a->EmptyCache());
  std::vector<TraceAction> actions;
  for (const TraceEvent& event : seen.events) actions.push_back(event.action);
  EXPECT_EQ(actions,
            (std::vector<TraceAction>{TraceAction::SegmentAlloc, TraceAction::Alloc, TraceAction::UseRecorded, TraceAction::FreeRequested,
                                      TraceAction::FreeCompleted, TraceAction::UseWaited, TraceAction::Alloc, TraceAction::FreeRequested,
                                      TraceAction::FreeCompleted, TraceAction::SegmentFree}));
  EXPECT_EQ(seen.stacks, 4);
  EXPECT_EQ(seen.events[5].other, a.Ref(t).id());
  EXPECT_EQ(seen.events[5].sequence, seen.events[2].sequence);
  a->SetTracer({});
  a.Drop(a.Get(4096, s));
  EXPECT_EQ(seen.events.size(), 10U);
}

TEST(OwnedBlocks, FreeThemselves) {
  Allocating a;
  CUstream s = a.Stream();
  CUdeviceptr address = 0;
  {
    OwnedBlock block;
    EXPECT_OK(OwnedBlock::Allocate(a.allocator.get(), 0, 4096, s, &block));
    address = block.address();
    OwnedBlock moved(std::move(block));
    EXPECT_EQ(moved.address(), address);
    EXPECT_OK(moved.RecordUse(s));
    OwnedBlock third;
    third = std::move(moved);
    EXPECT_EQ(third.bytes(), 4096U);
  }
  EXPECT_EQ(a.Stats().allocation[0].current, 0);
  EXPECT_EQ(a->Free(address), CUDA_ERROR_INVALID_VALUE);
}

// Unsupported (allocator.h, "Contexts"): this is what happens. The cached path asks the driver nothing, so it answers with what is gone.
TEST(Reset, OfTheDeviceIsNotSeenByTheCachedPath) {
  Allocating a;
  ASSERT_OK(a->Close(nullptr));
  const DeviceConfig config;
  std::unique_ptr<Allocator> allocator;
  ASSERT_OK(Allocator::Create(a.d, &config, 1, {}, &allocator));
  CUdeviceptr x = 0, gone = 0, more = 0;
  ASSERT_OK(allocator->Allocate(0, 4096, nullptr, &x));
  ASSERT_OK(allocator->Free(x));
  ASSERT_OK(a.d.DevicePrimaryCtxReset(0));
  EXPECT_OK(allocator->Allocate(0, 4096, nullptr, &gone));
  EXPECT_EQ(gone, x);
  CUmemorytype type = {};
  EXPECT_NE(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, gone), CUDA_SUCCESS);
  EXPECT_OK(allocator->Free(gone));
  EXPECT_EQ(allocator->Allocate(0, 64 * kMiB, nullptr, &more), CUDA_ERROR_CONTEXT_IS_DESTROYED);  // the driver is asked for new memory
  EXPECT_EQ(allocator->Close(nullptr), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  allocator.reset();
  EXPECT_OK(a.d.DevicePrimaryCtxRelease(0));  // its reference, which Close kept
}

}  // namespace
}  // namespace cuaudit::alloc::ending_test
