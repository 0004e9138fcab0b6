// SPDX-License-Identifier: MIT
// What the host knows to be done, and what it does not: behind host functions, green contexts and frees of host memory.
#include <atomic>
#include <thread>
#include <vector>

#include "faults/sim/state/world_state.h"
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::host_knowledge_test {
namespace {

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

}  // namespace
}  // namespace cuaudit::sim::host_knowledge_test
