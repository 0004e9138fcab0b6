// SPDX-License-Identifier: MIT
// Work that nobody waits for any more ends, without the program's code and memory.
#include <atomic>
#include <cstdint>
#include <vector>

#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::hollow_test {
namespace {

using driver::Kind;

void Count(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

// The user object lives as long as its launch. The host function behind it may use what the program has freed.
TEST(RunHollow, EndsLaunchesAndCallsNoHostFunction) {
  Witnessed w(Schedule::Lazy);
  CUstream s = w.Stream();
  std::atomic<int> destroyed{0};
  std::atomic<int> ran{0};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  CUuserObject object = nullptr;
  CUDA_HOST_NODE_PARAMS host = {};
  host.fn = Count;
  host.userData = &ran;
  EXPECT_OK(w.d.GraphCreate(&graph, 0));
  EXPECT_OK(w.d.GraphAddHostNode(&node, graph, nullptr, 0, &host));
  EXPECT_OK(w.d.UserObjectCreate(&object, &destroyed, Count, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_OK(w.d.GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_OK(w.d.GraphLaunch(executable, s));
  EXPECT_OK(w.d.LaunchHostFunc(s, Count, &ran));
  EXPECT_OK(w.d.GraphExecDestroy(executable));
  EXPECT_OK(w.d.GraphDestroy(graph));
  EXPECT_EQ(destroyed, 0);
  RunHollow(w.sim.world);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(ran, 0);
  EXPECT_OK(w.d.LaunchHostFunc(s, Count, &ran));
  EXPECT_OK(w.d.StreamSynchronize(s));
  EXPECT_EQ(ran, 1) << "later work is done as ever";
}

// A stream that waits for a word, with a free of stream-ordered memory behind the wait.
struct Waiting {
  Waiting() {
    EXPECT_OK(w.d.MemHostAlloc(&host, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
    EXPECT_OK(w.d.MemHostGetDevicePointer(&word, host, 0));
    Set(0);
    EXPECT_OK(w.d.MemAllocAsync(&block, 4096, t));
    EXPECT_OK(w.d.StreamSynchronize(t));
  }
  void Queue(CUdeviceptr awaited) {
    EXPECT_OK(w.d.StreamWaitValue32(t, awaited, 1, CU_STREAM_WAIT_VALUE_EQ));
    EXPECT_OK(w.d.MemFreeAsync(block, t));
  }
  void Set(std::uint32_t value) const { *static_cast<volatile std::uint32_t*>(host) = value; }
  std::uint64_t Left() const { return w.sim.Live(Kind::StreamOrderedMemory); }

  Witnessed w{Schedule::Lazy};
  CUstream s = w.Stream();
  CUstream t = w.Stream();
  void* host = nullptr;
  CUdeviceptr word = 0;
  CUdeviceptr block = 0;
  std::atomic<int> ran{0};
};

TEST(RunHollow, AWriteOfAnotherStreamEndsTheWait) {
  Waiting one;
  one.Queue(one.word);
  EXPECT_OK(one.w.d.StreamWriteValue32(one.s, one.word, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  RunHollow(one.w.sim.world);
  EXPECT_EQ(one.Left(), 0U);
}

// The function would have written the word.
TEST(RunHollow, AFunctionThatIsNotCalledEndsTheWait) {
  Waiting one;
  one.Queue(one.word);
  EXPECT_OK(one.w.d.LaunchHostFunc(one.s, Count, &one.ran));
  RunHollow(one.w.sim.world);
  EXPECT_EQ(one.Left(), 0U);
  EXPECT_EQ(one.ran, 0);
}

TEST(RunHollow, AWaitThatNothingEndsStays) {
  Waiting one;
  one.Queue(one.word);
  EXPECT_OK(one.w.d.StreamWriteValue32(one.s, one.word, 2, CU_STREAM_WRITE_VALUE_DEFAULT));
  RunHollow(one.w.sim.world);
  EXPECT_EQ(one.Left(), 1U) << "a device would hang";
}

// Registered memory is the program's, and may be gone.
TEST(RunHollow, NothingIsWrittenToMemoryOfTheProgram) {
  alignas(4096) static std::uint32_t own[1024];
  own[0] = 0;
  Waiting one;
  CUdeviceptr registered = 0;
  EXPECT_OK(one.w.d.MemHostRegister(own, sizeof(own), CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_OK(one.w.d.MemHostGetDevicePointer(&registered, own, 0));
  one.Queue(registered);
  EXPECT_OK(one.w.d.StreamWriteValue32(one.s, registered, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  RunHollow(one.w.sim.world);
  EXPECT_EQ(own[0], 0U);
  EXPECT_EQ(one.Left(), 0U);
}

// The function belongs to what has ended, and its memory may be gone.
TEST(RunHollow, AFunctionBehindAStuckWaitIsNeverCalled) {
  Waiting one;
  one.Queue(one.word);
  EXPECT_OK(one.w.d.LaunchHostFunc(one.t, Count, &one.ran));
  RunHollow(one.w.sim.world);
  EXPECT_EQ(one.Left(), 1U);
  EXPECT_OK(one.w.d.LaunchHostFunc(one.t, Count, &one.ran));
  one.Set(1);
  EXPECT_OK(one.w.d.CtxSynchronize(nullptr));
  EXPECT_EQ(one.Left(), 0U);
  EXPECT_EQ(one.ran, 1) << "only the one that was queued later";
}

TEST(EachHostArgument, VisitsWhatHasNotBegun) {
  Witnessed w(Schedule::Lazy);
  CUstream s = w.Stream();
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  std::atomic<int> ran[4] = {};
  CUDA_HOST_NODE_PARAMS host = {};
  host.fn = Count;
  host.userData = &ran[2];
  EXPECT_OK(w.d.LaunchHostFunc(s, Count, &ran[0]));
  EXPECT_OK(w.d.StreamSynchronize(s));
  EXPECT_OK(w.d.LaunchHostFunc(s, Count, &ran[1]));
  EXPECT_OK(w.d.GraphCreate(&graph, 0));
  EXPECT_OK(w.d.GraphAddHostNode(&node, graph, nullptr, 0, &host));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_OK(w.d.GraphLaunch(executable, s));
  EXPECT_OK(w.d.StreamAddCallback(
      s, [](CUstream, CUresult, void* counter) { Count(counter); }, &ran[3], 0));
  std::vector<const void*> seen;
  EachHostArgument(w.sim.world, &seen, [](void* to, const void* one) { static_cast<std::vector<const void*>*>(to)->push_back(one); });
  EXPECT_EQ(seen, (std::vector<const void*>{&ran[1], &ran[2], &ran[3]}));
  EXPECT_OK(w.d.StreamSynchronize(s));
  EXPECT_EQ(ran[3], 1);
}

}  // namespace
}  // namespace cuaudit::sim::hollow_test
