// SPDX-License-Identifier: MIT
// Waits that a fault plan refuses: the work runs, the host does not know of it, and a misuse that only the wait would have prevented is
// marked.
#include <atomic>
#include <thread>

#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::refused_wait_test {
namespace {

using driver::CallId;
using driver::MisuseRule;

class RefusedWait : public testing::TestWithParam<Schedule> {
 protected:
  template <typename Handle>
  void Refuse(CallId id, Handle handle) {
    const std::uint64_t argument = reinterpret_cast<std::uintptr_t>(handle);
    NoteRefusedCall(w.sim.world, id, &argument);
  }
  // The one misuse, of two calls, and whether only the refused wait made it one.
  void ExpectOne(MisuseRule rule, bool refused) {
    w.ExpectOne(rule, 2, 1);
    if (!w.record.seen.empty()) {
      EXPECT_EQ(w.record.seen[0].refused_wait, refused);
    }
  }
  Witnessed w{GetParam()};
  CUstream s = w.Stream();
  CUstream t = w.Stream();
  CUdeviceptr p = w.Memory();
};

void Count(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

TEST_P(RefusedWait, OfTheStreamExcusesWhatItWouldHaveOrdered) {
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  Refuse(CallId::StreamSynchronize, s);
  EXPECT_OK(w.At(2).MemsetD8Async(p, 2, 4096, t));
  ExpectOne(MisuseRule::UnorderedAccess, true);
}

TEST_P(RefusedWait, OfAQueryOfTheContextAndOfAnEvent) {
  CUevent event = w.Event();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.d.EventRecord(event, s));
  const auto refuse = [&](int which) {
    if (which == 0) Refuse(CallId::StreamQuery, s);
    if (which == 1) Refuse(CallId::CtxSynchronize, s);
    if (which == 2) Refuse(CallId::EventSynchronize, event);
    if (which == 3) Refuse(CallId::EventQuery, event);
  };
  for (int which = 0; which < 4; ++which) {
    w.record.seen.clear();
    EXPECT_OK(w.d.StreamSynchronize(t));
    EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
    EXPECT_OK(w.d.EventRecord(event, s));
    refuse(which);
    EXPECT_OK(w.At(2).MemsetD8Async(p, 2, 4096, t));
    ExpectOne(MisuseRule::UnorderedAccess, true);
    EXPECT_OK(w.d.CtxSynchronize(nullptr));
  }
}

// The stream that was to be waited for comes behind the other one.
TEST_P(RefusedWait, ReachesThroughEvents) {
  CUevent event = w.Event();
  void* pinned = nullptr;
  EXPECT_OK(w.d.MemAllocHost(&pinned, 4096));
  EXPECT_OK(w.At(1).MemcpyHtoDAsync(p, pinned, 4096, s));
  EXPECT_OK(w.d.EventRecord(event, s));
  EXPECT_OK(w.d.StreamWaitEvent(t, event, 0));
  Refuse(CallId::StreamSynchronize, t);
  EXPECT_OK(w.At(2).MemFreeHost(pinned));
  ExpectOne(MisuseRule::HostFreedInUse, true);
}

TEST_P(RefusedWait, OfAnotherStreamExcusesNothing) {
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  Refuse(CallId::StreamSynchronize, t);
  EXPECT_OK(w.At(2).MemsetD8Async(p, 2, 4096, t));
  ExpectOne(MisuseRule::UnorderedAccess, false);
}

TEST_P(RefusedWait, ExcusesNothingThatIsQueuedLater) {
  EXPECT_OK(w.d.MemsetD8Async(p, 1, 4096, s));
  Refuse(CallId::StreamSynchronize, s);
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 2, 4096, t));
  ExpectOne(MisuseRule::UnorderedAccess, false);
}

// Of the stream that the event was to be recorded in, and of what comes before in it.
TEST_P(RefusedWait, ForAnEventThatIsNotRecorded) {
  const auto refuse = [&](CUstream stream) {
    const std::uint64_t arguments[] = {0, reinterpret_cast<std::uintptr_t>(stream)};
    NoteRefusedCall(w.sim.world, CallId::EventRecord, arguments);
  };
  for (CUstream recorded : {s, t}) {
    void* pinned = nullptr;
    w.record.seen.clear();
    EXPECT_OK(w.d.MemAllocHost(&pinned, 4096));
    EXPECT_OK(w.At(1).MemcpyHtoDAsync(p, pinned, 4096, s));
    refuse(recorded);
    EXPECT_OK(w.At(2).MemFreeHost(pinned));
    ExpectOne(MisuseRule::HostFreedInUse, recorded == s);
  }
}

TEST_P(RefusedWait, OfAnotherCallIsNone) {
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  Refuse(CallId::StreamDestroy_v2, s);
  EXPECT_OK(w.At(2).MemsetD8Async(p, 2, 4096, t));
  ExpectOne(MisuseRule::UnorderedAccess, false);
}

// Time passes: on a device the function would have run, too.
TEST_P(RefusedWait, RunsTheWork) {
  std::atomic<int> ran{0};
  EXPECT_OK(w.d.LaunchHostFunc(s, Count, &ran));
  Refuse(CallId::StreamSynchronize, s);
  EXPECT_EQ(ran, 1);
  w.ExpectNone();
}

TEST_P(RefusedWait, WaitsForNoValueThatNobodyWrites) {
  void* host = nullptr;
  CUdeviceptr word = 0;
  EXPECT_OK(w.d.MemHostAlloc(&host, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_OK(w.d.MemHostGetDevicePointer(&word, host, 0));
  *static_cast<volatile std::uint32_t*>(host) = 0;
  EXPECT_OK(w.d.StreamWaitValue32(s, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  Refuse(CallId::StreamSynchronize, s);
  EXPECT_EQ(w.d.StreamQuery(t), CUDA_SUCCESS) << "the context is not lost";
  *static_cast<volatile std::uint32_t*>(host) = 1;
  EXPECT_OK(w.d.StreamSynchronize(s));
}

// While the host function runs, another thread takes one stream out of the list of busy ones and puts another one in.
struct Handover {
  std::atomic<bool> begun{false};
  std::atomic<bool> ends{false};
  static void Run(void* self) {
    static_cast<Handover*>(self)->begun = true;
    static_cast<Handover*>(self)->begun.notify_all();
    static_cast<Handover*>(self)->ends.wait(false);
  }
};

TEST(RefusedWaitOfTheContext, RunsEveryStreamAlthoughTheListOfBusyOnesChanges) {
  Witnessed w(Schedule::Lazy);
  CUstream stuck = w.Stream();
  CUstream slow = w.Stream();
  CUstream last = w.Stream();
  CUstream late = w.Stream();
  void* host = nullptr;
  CUdeviceptr word = 0;
  CUcontext context = nullptr;
  EXPECT_OK(w.d.CtxGetCurrent(&context));
  EXPECT_OK(w.d.MemHostAlloc(&host, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_OK(w.d.MemHostGetDevicePointer(&word, host, 0));
  *static_cast<volatile std::uint32_t*>(host) = 0;
  Handover handover;
  std::atomic<int> ran{0};
  std::atomic<int> ran_late{0};
  EXPECT_OK(w.d.StreamWaitValue32(stuck, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_OK(w.d.LaunchHostFunc(slow, &Handover::Run, &handover));
  EXPECT_OK(w.d.LaunchHostFunc(last, Count, &ran));
  std::thread other([&] {
    handover.begun.wait(false);
    EXPECT_OK(w.d.CtxSetCurrent(context));
    *static_cast<volatile std::uint32_t*>(host) = 1;
    EXPECT_OK(w.d.StreamSynchronize(stuck));
    for (int i = 0; i < 2; ++i) EXPECT_OK(w.d.LaunchHostFunc(late, Count, &ran_late));
    handover.ends = true;
    handover.ends.notify_all();
  });
  const std::uint64_t none = 0;
  NoteRefusedCall(w.sim.world, CallId::CtxSynchronize, &none);
  other.join();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(ran_late, 0) << "queued after the wait began";
  EXPECT_OK(w.d.StreamSynchronize(late));
}

INSTANTIATE_TEST_SUITE_P(Every, RefusedWait, testing::ValuesIn(kSchedules), NameOf);

}  // namespace
}  // namespace cuaudit::sim::refused_wait_test
