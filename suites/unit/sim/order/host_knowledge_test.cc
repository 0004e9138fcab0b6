// SPDX-License-Identifier: MIT
// What the host knows to be done, and work that nobody waits for any more.
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "faults/sim/state/world_state.h"
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::host_knowledge_test {
namespace {

// What the host knows to be done, and what it does not: behind host functions, green contexts and frees of host memory.

using driver::MisuseRule;

constexpr std::size_t kBytes = 4096;

bool Attend(void*) { return true; }

class NotKnown : public testing::TestWithParam<Schedule> {
 protected:
  Witnessed w{GetParam()};
};

// Nothing may be said of any of these.
class Known : public testing::TestWithParam<Schedule> {
 protected:
  explicit Known(bool (*on_awaited)(void*) = nullptr) : w(GetParam(), 1, 1, on_awaited) {}
  ~Known() override { w.ExpectNone(); }
  void Fill(CUdeviceptr to, CUstream stream) { EXPECT_OK(w.At(++count).MemsetD8Async(to, 1, kBytes, stream)); }
  Witnessed w;
  std::uint64_t count = 0;
  CUdeviceptr p = w.Memory();
  CUdeviceptr q = w.Memory();
  CUstream s = w.Stream();
  CUstream t = w.Stream();
};

// A world to whose host functions somebody attends.
class KnownAttended : public Known {
 protected:
  KnownAttended() : Known(Attend) {}
};

void Nothing(void*) {}

// Under Fifo and Random the function runs inside the very call that queues it.
TEST_P(NotKnown, BehindAHostFunctionThatNobodyWaitedFor) {
  CUdeviceptr p = w.Memory();
  CUstream s = w.Stream();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.d.LaunchHostFunc(s, Nothing, nullptr));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 64, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

// Under Adversarial and Fifo the wait runs the function of the other stream too.
TEST_P(NotKnown, BehindAHostFunctionOfAnotherStreamThanTheOneWaitedFor) {
  CUdeviceptr p = w.Memory();
  CUstream s = w.Stream();
  CUstream t = w.Stream();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.d.LaunchHostFunc(s, Nothing, nullptr));
  EXPECT_OK(w.d.MemsetD8Async(w.Memory(), 1, 64, t));
  EXPECT_OK(w.d.StreamSynchronize(t));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 64, t));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

TEST_P(NotKnown, BehindAHostFunctionThatSomebodyAttendsTo) {
  Witnessed attended(GetParam(), 1, 1, Attend);
  CUdeviceptr p = attended.Memory();
  CUstream s = attended.Stream();
  CUstream t = attended.Stream();
  EXPECT_OK(attended.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(attended.d.LaunchHostFunc(s, Nothing, nullptr));
  EXPECT_OK(attended.d.LaunchHostFunc(t, Nothing, nullptr));  // newer and older ones are left alone
  EXPECT_OK(attended.d.StreamSynchronize(t));
  EXPECT_OK(attended.At(2).MemsetD8Async(p, 1, 64, t));
  attended.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

// A green context's end of work is not its primary context's.
TEST_P(NotKnown, BehindTheSynchronizationOfAGreenContextAlone) {
  CUdevResource all = {};
  CUdevResourceDesc resources = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext view = nullptr;
  EXPECT_OK(w.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_OK(w.d.DevResourceGenerateDesc(&resources, &all, 1));
  EXPECT_OK(w.d.GreenCtxCreate(&green, resources, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  EXPECT_OK(w.d.CtxFromGreenCtx(&view, green));
  CUdeviceptr p = w.Memory();
  CUdeviceptr q = w.Memory();
  CUstream outside = w.Stream();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, outside));
  EXPECT_OK(w.d.CtxPushCurrent(view));
  CUstream inside = w.Stream();
  EXPECT_OK(w.At(2).MemsetD8Async(q, 1, 4096, inside));
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  EXPECT_OK(w.At(3).MemsetD8Async(q, 1, 64, w.Stream()));
  w.ExpectNone();
  EXPECT_OK(w.At(4).MemsetD8Async(p, 1, 64, inside));
  w.ExpectOne(MisuseRule::UnorderedAccess, 4, 1);
}

// The genuine driver waits, but nothing says that it must.
TEST_P(NotKnown, PinnedMemoryFreedUnderACopyOfItsOwnContext) {
  CUdeviceptr p = w.Memory();
  void* pinned = nullptr;
  EXPECT_OK(w.d.MemAllocHost(&pinned, 4096));
  EXPECT_OK(w.At(1).MemcpyHtoDAsync(p, pinned, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemFreeHost(pinned));
  w.ExpectOne(MisuseRule::HostFreedInUse, 2, 1);
}

TEST_P(NotKnown, MemoryUnregisteredUnderACopyThatWritesIt) {
  alignas(4096) static char memory[4096];
  CUdeviceptr p = w.Memory();
  EXPECT_OK(w.d.MemHostRegister(memory, sizeof(memory), 0));
  EXPECT_OK(w.At(1).MemcpyDtoHAsync(memory, p, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemHostUnregister(memory));
  w.ExpectOne(MisuseRule::HostFreedInUse, 2, 1);
}

void* Registered(Witnessed* w, CUdeviceptr* alias) {
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_OK(w->d.MemHostRegister(memory, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_OK(w->d.MemHostGetDevicePointer(alias, memory, 0));
  return memory;
}

// A device still reads the unmapped pages, so the simulated copy must not crash the program.
TEST_P(NotKnown, RegisteredMemoryUnmappedUnderACopyThatReadsIt) {
  CUdeviceptr alias = 0;
  void* const memory = Registered(&w, &alias);
  EXPECT_OK(w.At(1).MemcpyHtoDAsync(w.Memory(), memory, kBytes, w.Stream()));
  ASSERT_EQ(munmap(memory, kBytes), 0);
  EXPECT_OK(w.At(2).MemHostUnregister(memory));
  w.ExpectOne(MisuseRule::HostFreedInUse, 2, 1);
}

// The wait shows it: the work runs, and the memory is not there.
TEST(Unmapped, RegisteredMemoryUnderWorkThatIsWaitedFor) {
  for (const int work : {0, 1, 2, 3}) {
    Witnessed w(Schedule::Lazy);
    CUdeviceptr alias = 0;
    void* const memory = Registered(&w, &alias);
    CUdeviceptr p = w.Memory();
    CUstream s = w.Stream();
    const driver::DriverRef d = w.At(1);
    const CUresult queued = work == 0   ? d.MemcpyHtoDAsync(p, memory, kBytes, s)
                            : work == 1 ? d.MemcpyDtoHAsync(memory, p, kBytes, s)
                            : work == 2 ? d.MemsetD32Async(alias, 1, kBytes / 4, s)
                                        : d.StreamWriteValue32(s, alias, 1, 0);
    EXPECT_OK(queued);
    ASSERT_EQ(munmap(memory, kBytes), 0);
    EXPECT_OK(w.At(2).StreamSynchronize(s));
    w.ExpectOne(MisuseRule::HostFreedInUse, 2, 1);
  }
}

void Set(void* flag) { static_cast<std::atomic<int>*>(flag)->store(1); }

// As in every whole program; a world alone runs it inside the call that queues it, from which nobody learns.
TEST_P(KnownAttended, AHostFunctionTellsWhoAsks) {
  std::atomic<int> told{0};
  Fill(p, s);
  EXPECT_OK(w.d.LaunchHostFunc(s, Set, &told));
  EXPECT_EQ(told, 0);
  Fill(q, s);
  while (told == 0) (void)w.d.StreamQuery(s);
  Fill(p, t);
}

TEST_P(KnownAttended, AHostFunctionTellsWhoWaitsOnTheCpu) {
  std::atomic<int> told{0};
  Fill(p, s);
  EXPECT_OK(w.d.LaunchHostFunc(s, Set, &told));
  EXPECT_OK(w.d.MemsetD8Async(w.Memory(), 1, 64, w.Stream()));
  Attendance attendance;
  while (told == 0) (void)RunUnattended(w.sim.world, &attendance);
  Fill(p, t);
}

TEST(KnownLazily, ACopyTellsWhoWaitsForTheBytesItWrites) {
  Witnessed w(Schedule::Lazy, 1, 1, Attend);
  CUstream s = w.Stream();
  CUdeviceptr p = w.Memory();
  void* pinned = nullptr;
  EXPECT_OK(w.d.MemAllocHost(&pinned, kBytes));
  EXPECT_OK(w.At(1).MemcpyDtoHAsync(pinned, p, kBytes, s));
  Attendance attendance;
  EXPECT_EQ(RunUnattended(w.sim.world, &attendance), 0U);
  EXPECT_EQ(RunUnattended(w.sim.world, &attendance), 1U);
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, kBytes, w.Stream()));
  w.ExpectNone();
}

TEST_P(Known, AHostFunctionTellsOtherThreads) {
  std::atomic<int> told{0};
  Fill(p, s);
  EXPECT_OK(w.d.LaunchHostFunc(s, Set, &told));
  std::thread other([&] {
    while (told == 0) std::this_thread::yield();  // any call could run it
    EXPECT_OK(w.d.CtxSetCurrent(w.sim.context));
    EXPECT_OK(w.d.MemsetD8Async(p, 1, kBytes, t));
  });
  while (told == 0) (void)w.d.StreamQuery(s);
  other.join();
}

TEST_P(Known, PinnedMemoryFreedBehindTheCopyThatTheHostWaitedFor) {
  void* pinned = nullptr;
  CUevent e = w.Event();
  EXPECT_OK(w.d.MemAllocHost(&pinned, kBytes));
  EXPECT_OK(w.At(++count).MemcpyDtoHAsync(pinned, p, kBytes, s));
  EXPECT_OK(w.d.EventRecord(e, s));
  Fill(p, s);
  EXPECT_OK(w.d.EventSynchronize(e));
  EXPECT_OK(w.At(++count).MemFreeHost(pinned));
}

// The driver has taken the bytes along, or was done with them, when the call returned.
TEST_P(Known, PageableMemoryGivenBackRightAfterTheCall) {
  std::vector<char> pageable(kBytes, 1);
  EXPECT_OK(w.At(++count).MemcpyHtoDAsync(p, pageable.data(), kBytes, s));
  pageable.assign(kBytes, 2);
  EXPECT_OK(w.At(++count).MemcpyDtoHAsync(pageable.data(), p, kBytes, s));
  EXPECT_EQ(pageable.at(kBytes - 1), 1);
  pageable.clear();
  pageable.shrink_to_fit();
  EXPECT_OK(w.d.StreamSynchronize(s));
}

INSTANTIATE_TEST_SUITE_P(Schedules, NotKnown, testing::ValuesIn(kSchedules), NameOf);
INSTANTIATE_TEST_SUITE_P(Schedules, Known, testing::ValuesIn(kSchedules), NameOf);
INSTANTIATE_TEST_SUITE_P(Schedules, KnownAttended, testing::ValuesIn(kSchedules), NameOf);

// Work that nobody waits for any more ends, without the program's code and memory.

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
}  // namespace cuaudit::sim::host_knowledge_test
