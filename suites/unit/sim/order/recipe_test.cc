// SPDX-License-Identifier: MIT
// The five-step recipe for a tensor that a side stream reads: (1) the consumer reads it on the side stream, (2) an event is recorded
// there, (3) the tensor is stashed, (4) the allocating stream waits for the event, (5) the stash is dropped, so the memory is used
// again. Once right, and in every way it goes wrong, under every schedule.
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::recipe_test {
namespace {

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

struct Outcome {
  int read = 0;        // what the consumer saw: 1 is the tensor, 2 the bytes of the next one
  float reuse_ms = 0;  // when the memory was written again
  std::vector<driver::Misuse> seen;
};

Outcome Follow(Recipe recipe, Schedule schedule) {
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
  Outcome outcome;
  unsigned char byte = 0;
  EXPECT_OK(w.d.MemcpyDtoH(&byte, result, 1));
  outcome.read = byte;
  EXPECT_OK(w.d.EventElapsedTime(&outcome.reuse_ms, begin, end));
  outcome.seen = w.record.seen;
  return outcome;
}

class FiveStepRecipe : public testing::TestWithParam<Schedule> {
 protected:
  static void ExpectUnordered(const Outcome& outcome) {
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
  const Outcome outcome = Follow(Recipe::Right, GetParam());
  EXPECT_TRUE(outcome.seen.empty());
  EXPECT_EQ(outcome.read, 1);
  EXPECT_FLOAT_EQ(outcome.reuse_ms, 0.006012F);  // six operations, none of them the unrelated one
}

TEST_P(FiveStepRecipe, RecordedTooLateIsSafeAndWaitsForWorkItNeedsNot) {
  const Outcome outcome = Follow(Recipe::RecordedTooLate, GetParam());
  EXPECT_TRUE(outcome.seen.empty());
  EXPECT_EQ(outcome.read, 1);
  EXPECT_GT(outcome.reuse_ms, Follow(Recipe::Right, GetParam()).reuse_ms + 0.008F);
}

TEST_P(FiveStepRecipe, RecordedTooEarlyIsARace) {
  const Outcome outcome = Follow(Recipe::RecordedTooEarly, GetParam());
  ExpectUnordered(outcome);
  if (Spoiled() != 0) {
    EXPECT_EQ(outcome.read, Spoiled());
  }
}

TEST_P(FiveStepRecipe, DroppedEarlyIsARace) {
  const Outcome outcome = Follow(Recipe::DroppedEarly, GetParam());
  ExpectUnordered(outcome);
  if (Spoiled() != 0) {
    EXPECT_EQ(outcome.read, Spoiled());
  }
}

TEST_P(FiveStepRecipe, WaitingOnTheWrongStreamIsARace) {
  const Outcome outcome = Follow(Recipe::WaitElsewhere, GetParam());
  ExpectUnordered(outcome);
  if (Spoiled() != 0) {
    EXPECT_EQ(outcome.read, Spoiled());
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, FiveStepRecipe, testing::ValuesIn(kSchedules), NameOf);

}  // namespace
}  // namespace cuaudit::sim::recipe_test
