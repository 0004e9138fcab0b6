// SPDX-License-Identifier: MIT
// A tensor that a side stream reads, step by step, and waits that a fault plan refuses.
#include <atomic>
#include <thread>

#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::recipe_test {
namespace {

// The five-step recipe for a tensor that a side stream reads: (1) the consumer reads it on the side stream, (2) an event is recorded
// there, (3) the tensor is stashed, (4) the allocating stream waits for the event, (5) the stash is dropped, so the memory is used
// again. Once right, and in every way it goes wrong, under every schedule.

using driver::MisuseRule;

enum class Recipe {
  Right,
  RecordedTooLate,   // behind work that does not read the tensor: safe, and waits for too much
  RecordedTooEarly,  // before the last read
  DroppedEarly,      // used again before the wait
  WaitElsewhere,     // another stream waits
};

constexpr std::size_t kBytes = 4096;
constexpr std::size_t kLarge = std::size_t{8} << 20;
constexpr std::uint64_t kRead = 1;
constexpr std::uint64_t kReuse = 2;

struct Followed {
  int read = 0;        // what the consumer saw: 1 is the tensor, 2 the bytes of the next one
  float reuse_ms = 0;  // when the memory was written again
  std::vector<driver::Misuse> seen;
};

Followed Follow(Recipe recipe, Schedule schedule) {
  Witnessed w(schedule);
  CUstream owner = w.Stream();
  CUstream side = w.Stream();
  CUstream wrong = w.Stream();
  CUdeviceptr tensor = w.Memory(kBytes);
  CUdeviceptr result = w.Memory(kBytes);
  CUdeviceptr unrelated = w.Memory(kLarge);
  CUevent written = w.Event();
  CUevent read = w.Event();
  CUevent begin = nullptr;
  CUevent end = nullptr;
  EXPECT_OK(w.d.EventCreate(&begin, 0));
  EXPECT_OK(w.d.EventCreate(&end, 0));
  EXPECT_OK(w.d.EventRecord(begin, owner));
  EXPECT_OK(w.d.MemsetD8Async(tensor, 1, kBytes, owner));
  EXPECT_OK(w.d.EventRecord(written, owner));
  EXPECT_OK(w.d.StreamWaitEvent(side, written, 0));

  if (recipe == Recipe::RecordedTooEarly) {
    EXPECT_OK(w.d.EventRecord(read, side));
  }
  EXPECT_OK(w.At(kRead).MemcpyDtoDAsync(result, tensor, kBytes, side));
  if (recipe != Recipe::RecordedTooLate && recipe != Recipe::RecordedTooEarly) {
    EXPECT_OK(w.d.EventRecord(read, side));
  }
  EXPECT_OK(w.d.MemsetD8Async(unrelated, 3, kLarge, side));
  if (recipe == Recipe::RecordedTooLate) {
    EXPECT_OK(w.d.EventRecord(read, side));
  }

  if (recipe != Recipe::DroppedEarly) {
    EXPECT_OK(w.d.StreamWaitEvent(recipe == Recipe::WaitElsewhere ? wrong : owner, read, 0));
  }
  EXPECT_OK(w.At(kReuse).MemsetD8Async(tensor, 2, kBytes, owner));
  EXPECT_OK(w.d.EventRecord(end, owner));
  if (recipe == Recipe::DroppedEarly) {
    EXPECT_OK(w.d.StreamWaitEvent(owner, read, 0));
  }

  EXPECT_OK(w.d.EventSynchronize(end));
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  Followed outcome;
  unsigned char byte = 0;
  EXPECT_OK(w.d.MemcpyDtoH(&byte, result, 1));
  outcome.read = byte;
  EXPECT_OK(w.d.EventElapsedTime(&outcome.reuse_ms, begin, end));
  outcome.seen = w.record.seen;
  return outcome;
}

class FiveStepRecipe : public testing::TestWithParam<Schedule> {
 protected:
  static void ExpectUnordered(const Followed& outcome) {
    ASSERT_EQ(outcome.seen.size(), 1U);
    EXPECT_EQ(driver::Name(outcome.seen[0].rule), driver::Name(MisuseRule::UnorderedAccess));
    EXPECT_EQ(outcome.seen[0].origin, kReuse);
    EXPECT_EQ(outcome.seen[0].other, kRead);
    EXPECT_EQ(outcome.seen[0].bytes, kBytes);
  }
  // The verdict is the same under every schedule; the bytes are spoiled only where the schedule takes the liberty.
  static int Spoiled() { return GetParam() == Schedule::Lazy || GetParam() == Schedule::Adversarial ? 2 : 0; }
};

TEST_P(FiveStepRecipe, DoneRightIsSilentAndWaitsForTheReadOnly) {
  const Followed outcome = Follow(Recipe::Right, GetParam());
  EXPECT_TRUE(outcome.seen.empty());
  EXPECT_EQ(outcome.read, 1);
  EXPECT_FLOAT_EQ(outcome.reuse_ms, 0.006012F);  // six operations, none of them the unrelated one
}

TEST_P(FiveStepRecipe, RecordedTooLateIsSafeAndWaitsForWorkItNeedsNot) {
  const Followed outcome = Follow(Recipe::RecordedTooLate, GetParam());
  EXPECT_TRUE(outcome.seen.empty());
  EXPECT_EQ(outcome.read, 1);
  EXPECT_GT(outcome.reuse_ms, Follow(Recipe::Right, GetParam()).reuse_ms + 0.008F);
}

TEST_P(FiveStepRecipe, RecordedTooEarlyIsARace) {
  const Followed outcome = Follow(Recipe::RecordedTooEarly, GetParam());
  ExpectUnordered(outcome);
  if (Spoiled() != 0) {
    EXPECT_EQ(outcome.read, Spoiled());
  }
}

TEST_P(FiveStepRecipe, DroppedEarlyIsARace) {
  const Followed outcome = Follow(Recipe::DroppedEarly, GetParam());
  ExpectUnordered(outcome);
  if (Spoiled() != 0) {
    EXPECT_EQ(outcome.read, Spoiled());
  }
}

TEST_P(FiveStepRecipe, WaitingOnTheWrongStreamIsARace) {
  const Followed outcome = Follow(Recipe::WaitElsewhere, GetParam());
  ExpectUnordered(outcome);
  if (Spoiled() != 0) {
    EXPECT_EQ(outcome.read, Spoiled());
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, FiveStepRecipe, testing::ValuesIn(kSchedules), NameOf);

// Waits that a fault plan refuses: the work runs, the host does not know of it, and a misuse that only the wait would have prevented is
// marked.

using driver::CallId;

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

// The host can wait for the stream without the event.
TEST_P(RefusedWait, TheRecordOfAnEventIsNone) {
  void* pinned = nullptr;
  EXPECT_OK(w.d.MemAllocHost(&pinned, 4096));
  EXPECT_OK(w.At(1).MemcpyHtoDAsync(p, pinned, 4096, s));
  const std::uint64_t arguments[] = {0, reinterpret_cast<std::uintptr_t>(s)};
  NoteRefusedCall(w.sim.world, CallId::EventRecord, arguments);
  EXPECT_OK(w.At(2).MemFreeHost(pinned));
  ExpectOne(MisuseRule::HostFreedInUse, false);
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
}  // namespace cuaudit::sim::recipe_test
