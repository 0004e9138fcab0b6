// SPDX-License-Identifier: MIT
// Contexts: two threads in the end of one, and what each keeps of its own: settings, callbacks, texture references, attachments.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "faults/sim/state/world_state.h"
#include "suites/support/sim_world.h"

namespace cuaudit::sim::ending_test {
namespace {

// Two threads in one context's end, while a host function of its streams lets the second one in.

// A host function that makes another thread act and waits for it, but not for ever: the other may be waiting for this one.
class Interruption {
 public:
  explicit Interruption(std::function<void()> act) : act_(std::move(act)) {}
  ~Interruption() {
    if (thread_.joinable()) thread_.join();
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  static void Run(void* self) { static_cast<Interruption*>(self)->Run(); }
  void Join() { thread_.join(); }

 private:
  void Run() {
    thread_ = std::thread([this] {
      act_();
      const std::lock_guard<std::mutex> locked(lock_);
      over_ = true;
      told_.notify_all();
    });
    std::unique_lock<std::mutex> locked(lock_);
    (void)told_.wait_for(locked, std::chrono::seconds(2), [this] { return over_; });
  }
  std::function<void()> act_;
  std::mutex lock_;
  std::condition_variable told_;
  bool over_ = false;
  std::thread thread_;
};

CUcontext Another(const Simulated& sim, CUstream* stream) {
  CUcontext context = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&context, nullptr, 0, 0));
  EXPECT_OK(sim.d.StreamCreate(stream, CU_STREAM_NON_BLOCKING));
  return context;
}

TEST(Ending, OfTwoThreadsThatDestroyAContextOneIsRefused) {
  const Simulated sim;
  CUstream stream = nullptr;
  CUcontext context = Another(sim, &stream);
  CUresult second = CUDA_SUCCESS;
  Interruption other([&] { second = sim.d.CtxDestroy(context); });
  EXPECT_OK(sim.d.LaunchHostFunc(stream, Interruption::Run, &other));
  EXPECT_OK(sim.d.CtxDestroy(context));
  other.Join();
  EXPECT_EQ(second, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(sim.Live(driver::Kind::Context), 0U);
  EXPECT_EQ(sim.Live(driver::Kind::Stream), 0U);
  // The record is in nobody's free list twice.
  CUcontext one = nullptr;
  CUcontext two = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&one, nullptr, 0, 0));
  EXPECT_OK(sim.d.CtxCreate(&two, nullptr, 0, 0));
  EXPECT_NE(one, two);
  EXPECT_OK(sim.d.CtxDestroy(two));
  EXPECT_OK(sim.d.CtxDestroy(one));
}

TEST(Ending, WhoRetainsThePrimaryContextWhileItsWorkFinishesKeepsIt) {
  const Simulated sim;
  CUstream stream = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUcontext again = nullptr;
  Interruption other([&] { EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&again, 0)); });
  EXPECT_OK(sim.d.LaunchHostFunc(stream, Interruption::Run, &other));
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  other.Join();
  EXPECT_OK(sim.d.StreamQuery(stream));  // it is the same context still
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  EXPECT_EQ(sim.d.StreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(sim.Live(driver::Kind::Stream), 0U);
}

TEST(Ending, OfTwoThreadsThatResetADeviceBothSucceedAndOneEndsIt) {
  const Simulated sim;
  CUstream stream = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUresult second = CUDA_ERROR_UNKNOWN;
  std::thread resetter;
  Interruption other([&] {
    resetter = std::thread([&] { second = sim.d.DevicePrimaryCtxReset(0); });  // waits for the host function
  });
  EXPECT_OK(sim.d.LaunchHostFunc(stream, Interruption::Run, &other));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  other.Join();
  resetter.join();
  EXPECT_OK(second);
  EXPECT_EQ(sim.Live(driver::Kind::Stream), 0U);
}

// A host function that ends once another thread waits for it.
struct Hold {
  World* world;
  std::atomic<bool> entered{false};
  static void Run(void* self) { static_cast<Hold*>(self)->Run(); }
  void Run() {
    entered.store(true);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (bool waits = false; !waits && std::chrono::steady_clock::now() < end; std::this_thread::yield()) {
      pthread_mutex_lock(&world->lock);
      waits = world->waiting_turns != 0;
      pthread_mutex_unlock(&world->lock);
    }
  }
};

// What was waited for has run, and its context is gone before the waiting thread gets its turn.
TEST(Ending, AWaitInAContextThatAnotherThreadDestroysSaysSo) {
  enum class Wait { Stream, Legacy, Event, Context };
  for (const Wait wait : {Wait::Stream, Wait::Legacy, Wait::Event, Wait::Context}) {
    const Simulated sim;
    Hold hold{sim.world};
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    EXPECT_OK(sim.d.CtxCreate(&context, nullptr, 0, 0));
    EXPECT_OK(sim.d.StreamCreate(&stream, 0));
    EXPECT_OK(sim.d.EventCreate(&event, 0));
    EXPECT_OK(sim.d.LaunchHostFunc(stream, Hold::Run, &hold));
    EXPECT_OK(sim.d.EventRecord(event, stream));
    std::thread destroyer([&] { EXPECT_OK(sim.d.CtxDestroy(context)); });
    while (!hold.entered.load()) std::this_thread::yield();
    CUresult result = CUDA_ERROR_UNKNOWN;
    if (wait == Wait::Stream) result = sim.d.StreamSynchronize(stream);
    if (wait == Wait::Legacy) result = sim.d.StreamSynchronize(nullptr);
    if (wait == Wait::Event) result = sim.d.EventSynchronize(event);
    if (wait == Wait::Context) result = sim.d.CtxSynchronize(nullptr);
    destroyer.join();
    EXPECT_EQ(result, CUDA_ERROR_CONTEXT_IS_DESTROYED) << static_cast<int>(wait);
    EXPECT_EQ(sim.Live(driver::Kind::Context), 0U);
  }
}

TEST(Ending, AnAllocationWhosePoolAnotherThreadDestroysIsRefused) {
  const Simulated sim;
  CUstream stream = nullptr;
  CUmemoryPool pool = nullptr;
  CUmemPoolProps shape{};
  shape.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  shape.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUdeviceptr all = 0;
  CUdeviceptr p = 0;
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_OK(sim.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.MemPoolCreate(&pool, &shape));
  EXPECT_OK(sim.d.MemGetInfo(&free, &total));
  EXPECT_OK(sim.d.MemAlloc(&all, free));
  Interruption other([&] { EXPECT_OK(sim.d.MemPoolDestroy(pool)); });
  EXPECT_OK(sim.d.LaunchHostFunc(stream, Interruption::Run, &other));
  EXPECT_EQ(sim.d.MemAllocFromPoolAsync(&p, 4096, pool, stream), CUDA_ERROR_INVALID_VALUE);
  other.Join();
  EXPECT_OK(sim.d.MemFree(all));
}

// The memory went with its context, and its address is another allocation's when the queued free has its turn.
TEST(QueuedFree, OfMemoryThatWentWithItsContextFreesNothingElse) {
  const Simulated sim;
  CUcontext other = nullptr;
  CUdeviceptr gone = 0;
  CUdeviceptr kept = 0;
  EXPECT_OK(sim.d.MemAlloc(&gone, 0x200));
  EXPECT_OK(sim.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_OK(sim.d.MemFreeAsync(gone, nullptr));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  EXPECT_OK(sim.d.MemAlloc(&kept, 0x10000));
  EXPECT_EQ(kept, gone);
  EXPECT_OK(sim.d.StreamSynchronize(nullptr));
  EXPECT_OK(sim.d.MemFree(kept));
}

// A pool's memory outlives the context it was taken in, so that its address is nobody else's before the queued free has had its turn.
TEST(QueuedFree, FreesAlthoughTheContextOfTheMemoryIsGone) {
  const Simulated sim;
  CUcontext other = nullptr;
  CUdeviceptr gone = 0;
  CUdeviceptr kept = 0;
  EXPECT_OK(sim.d.MemAllocAsync(&gone, 0x200, nullptr));
  EXPECT_OK(sim.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_OK(sim.d.MemFreeAsync(gone, nullptr));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  EXPECT_OK(sim.d.MemAlloc(&kept, 0x10000));
  EXPECT_NE(kept, gone);
  EXPECT_EQ(sim.Live(driver::Kind::StreamOrderedMemory), 1U);
  EXPECT_OK(sim.d.StreamSynchronize(nullptr));
  EXPECT_EQ(sim.Live(driver::Kind::StreamOrderedMemory), 0U);
  EXPECT_OK(sim.d.MemFree(kept));
}

using driver::Kind;

TEST(Setting, AContextKeepsItsOwnCoredumpWords) {
  Simulated sim;
  bool on = true;
  std::size_t size = sizeof(on);
  EXPECT_OK(sim.d.CoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_OK(sim.d.CoredumpGetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_FALSE(on);
  EXPECT_OK(sim.d.CoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_TRUE(on);
  CUcontext c = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.CoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
  EXPECT_FALSE(on);
  EXPECT_OK(sim.d.CtxDestroy(c));
}

TEST(Setting, ThePrimaryContextsFlagsAreGoneWhenItsLastHolderReleasesIt) {
  const Simulated sim;
  CUcontext context = nullptr;
  const auto flags = [&] {
    unsigned now = 99;
    int active = 99;
    EXPECT_OK(sim.d.DevicePrimaryCtxGetState(0, &now, &active));
    return now;
  };
  EXPECT_OK(sim.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
  EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&context, 0));
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  EXPECT_EQ(flags(), CU_CTX_SCHED_BLOCKING_SYNC) << "another one holds it";
  EXPECT_OK(sim.d.DevicePrimaryCtxRelease(0));
  EXPECT_EQ(flags(), 0U);
  EXPECT_OK(sim.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
  EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&context, 0));
  EXPECT_EQ(flags(), CU_CTX_SCHED_SPIN) << "set while nobody held it";
}

TEST(Setting, AHeapAndABufferMayBeLargerThanTheDevice) {
  const Simulated sim;
  for (const CUlimit limit : {CU_LIMIT_MALLOC_HEAP_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE}) {
    constexpr std::size_t kPeta = std::size_t{1} << 50;
    std::size_t now = 0;
    EXPECT_OK(sim.d.CtxSetLimit(limit, kPeta));
    EXPECT_OK(sim.d.CtxGetLimit(&now, limit));
    EXPECT_EQ(now, kPeta);
    EXPECT_EQ(sim.d.CtxSetLimit(limit, kPeta + 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(sim.d.CtxGetLimit(&now, limit));
    EXPECT_EQ(now, kPeta);
  }
}

TEST(Setting, CallbacksAreCountedUntilUnregistered) {
  Simulated sim;
#if CUDA_VERSION >= 12090
  CUlogsCallbackHandle handle = nullptr;
  EXPECT_OK(sim.d.LogsRegisterCallback([](void*, CUlogLevel, char*, std::size_t) {}, nullptr, &handle));
  EXPECT_EQ(sim.Live(Kind::Callback), 1U);
  EXPECT_OK(sim.d.LogsUnregisterCallback(handle));
  EXPECT_EQ(sim.Live(Kind::Callback), 0U);
  EXPECT_EQ(sim.d.LogsUnregisterCallback(handle), CUDA_ERROR_INVALID_VALUE);
#else
  EXPECT_EQ(sim.Live(Kind::Callback), 0U);
#endif
}

TEST(Setting, TextureReferencesDieWithTheirContextAndTheirModule) {
  constexpr const char* kPtx =
      ".version 6.0\n.target sm_60\n.address_size 64\n.global .texref picture;\n.visible .entry k()\n{\n ret;\n}\n";
  Simulated sim;
  CUcontext c = nullptr;
  CUtexref made = nullptr;
  CUtexref declared = nullptr;
  CUtexref again = nullptr;
  CUmodule m = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.TexRefCreate(&made));
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(sim.d.ModuleGetTexRef(&declared, m, "picture"));
  EXPECT_OK(sim.d.ModuleGetTexRef(&again, m, "picture"));
  EXPECT_EQ(declared, again);
  EXPECT_EQ(sim.Live(Kind::TextureReference), 1U);  // the module's is no resource of the program
  EXPECT_OK(sim.d.ModuleUnload(m));
  EXPECT_EQ(sim.d.TexRefSetFlags(declared, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(sim.d.ModuleGetTexRef(&declared, m, "picture"));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_EQ(sim.Live(Kind::TextureReference), 0U);
  EXPECT_EQ(sim.Live(Kind::Module), 0U);
}

TEST(Setting, AttachedContextsNeedAsManyDetaches) {
  Simulated sim;
  CUcontext c = nullptr;
  CUcontext same = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.CtxAttach(&same, 0));
  EXPECT_OK(sim.d.CtxDetach(c));
  EXPECT_EQ(sim.Live(Kind::Context), 1U);
  EXPECT_OK(sim.d.CtxDetach(c));
  EXPECT_EQ(sim.Live(Kind::Context), 0U);
}

TEST(Setting, OnlyTheCurrentContextIsDetached) {
  Simulated sim;
  CUcontext c = nullptr;
  CUcontext other = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_EQ(sim.d.CtxDetach(c), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(sim.Live(Kind::Context), 2U);
  EXPECT_OK(sim.d.CtxDetach(other));
  EXPECT_EQ(sim.Live(Kind::Context), 1U);
}

TEST(Setting, EveryErrorHasANameAndAText) {
  Simulated sim;
  int known = 0;
  for (int code = 0; code < 1000; ++code) {
    const char* name = nullptr;
    const char* text = nullptr;
    const CUresult named = sim.d.GetErrorName(static_cast<CUresult>(code), &name);
    EXPECT_EQ(sim.d.GetErrorString(static_cast<CUresult>(code), &text), named);
    if (named != CUDA_SUCCESS) continue;
    ++known;
    EXPECT_EQ(std::strncmp(name, "CUDA_", 5), 0);
    EXPECT_NE(text[0], '\0');
  }
  EXPECT_EQ(known, 101);
}

}  // namespace
}  // namespace cuaudit::sim::ending_test
