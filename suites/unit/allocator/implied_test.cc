// SPDX-License-Identifier: MIT
// Waits that earlier ones imply are skipped and counted, others are made: else the simulated device proves misuse.
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::implied_test {
namespace {

class Implied : public testing::TestWithParam<sim::Schedule> {
 protected:
  static Options Waiting() { return {.reuse = Reuse::Wait, .thread_cache = false}; }
  // A block of `owner` that `user` goes on using when it is free.
  CUdeviceptr Used(std::size_t bytes, CUstream owner, CUstream user) {
    const CUdeviceptr x = a.Get(bytes, owner);
    a.Write(x, bytes, owner);
    a.Use(x, bytes, owner, user);
    return x;
  }
  // It is given out again, and written to at once.
  void Again(CUdeviceptr x, std::size_t bytes, CUstream owner) {
    EXPECT_EQ(a.Get(bytes, owner), x);
    a.Write(x, bytes, owner);
  }
  void Expect(std::uint64_t waits, std::uint64_t elided) {
    EXPECT_EQ(a.Stats().waits_issued, waits);
    EXPECT_EQ(a.Stats().waits_elided, elided);
  }

  Implied() {
    gate.Hold(t);
    gate.Hold(u);
  }

  Allocating a{Waiting(), {.schedule = GetParam()}};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
  Gate gate{a.d};  // the allocator looks whether uses are over: none is
};

constexpr std::size_t kX = 12 * kMiB;
constexpr std::size_t kY = 14 * kMiB;
constexpr std::size_t kZ = 16 * kMiB;

TEST_P(Implied, ByAnEarlierWaitForTheSameStream) {
  const CUdeviceptr x = Used(kX, s, t);
  const CUdeviceptr y = Used(kY, s, t);
  a.Drop(x);
  a.Drop(y);
  Again(y, kY, s);  // waits for the later use
  Expect(1, 0);
  Again(x, kX, s);
  Expect(1, 1);
}

TEST_P(Implied, NotByAWaitForAnEarlierUse) {
  const CUdeviceptr x = Used(kX, s, t);
  const CUdeviceptr y = Used(kY, s, t);
  a.Drop(x);
  a.Drop(y);
  Again(x, kX, s);
  Expect(1, 0);
  Again(y, kY, s);
  Expect(2, 0);
}

// What is over asks for no wait, and none is spared.
TEST_P(Implied, NothingByWorkThatIsOver) {
  const CUdeviceptr x = Used(kX, s, t);
  const CUdeviceptr y = Used(kY, s, t);
  a.Drop(x);
  a.Drop(y);
  gate.Open();
  Again(y, kY, s);
  Again(x, kX, s);
  Expect(0, 0);
  EXPECT_EQ(a.Stats().served_pending, 0U);
}

// t waits for u, s waits for t: s has waited for u.
TEST_P(Implied, ByAThirdStreamThatHadWaited) {
  const CUdeviceptr y = Used(kY, s, u);
  const CUdeviceptr z = Used(kZ, t, u);
  a.Drop(z);
  Again(z, kZ, t);
  Expect(1, 0);
  const CUdeviceptr x = Used(kX, s, t);
  a.Drop(x);
  Again(x, kX, s);  // waits for t
  Expect(2, 0);
  a.Drop(y);
  Again(y, kY, s);  // has waited for u by that
  Expect(2, 1);
}

// The same, but t was used before it waited for u.
TEST_P(Implied, NotByAUseFromBeforeThatStreamWaited) {
  const CUdeviceptr y = Used(kY, s, u);
  const CUdeviceptr x = Used(kX, s, t);
  const CUdeviceptr z = Used(kZ, t, u);
  a.Drop(z);
  Again(z, kZ, t);
  Expect(1, 0);
  a.Drop(x);
  Again(x, kX, s);
  Expect(2, 0);
  a.Drop(y);
  Again(y, kY, s);
  Expect(3, 0);
}

// And u was used again after t had waited for it.
TEST_P(Implied, NotWhenTheThirdStreamWentOn) {
  const CUdeviceptr z = Used(kZ, t, u);
  a.Drop(z);
  Again(z, kZ, t);
  const CUdeviceptr y = Used(kY, s, u);
  const CUdeviceptr x = Used(kX, s, t);
  a.Drop(x);
  Again(x, kX, s);
  Expect(2, 0);
  a.Drop(y);
  Again(y, kY, s);
  Expect(3, 0);
}

// Of the uses of one block, whichever was told of first.
TEST_P(Implied, ByAnotherUseOfTheSameBlock) {
  for (const bool earlier_first : {true, false}) {
    gate.Hold(t);
    gate.Hold(u);
    const Statistics before = a.Stats();
    const CUdeviceptr x = a.Get(kX, s);
    a.Write(x, kX, s);
    if (earlier_first) a.Use(x, kX, s, u);
    const CUdeviceptr z = Used(kZ, t, u);
    a.Drop(z);
    Again(z, kZ, t);
    a.Drop(z);
    a.Order(u, t);  // as the program has to: both write
    a.Use(x, kX, s, t);
    if (!earlier_first) {
      // Told of late, by a use of u that t has waited for.
      const CUdeviceptr w = Used(kZ, t, u);
      a.Drop(w);
      Again(w, kZ, t);
      a.Drop(w);
      a.Order(t, u);
      a.Use(x, kX, s, u);
      const CUdeviceptr v = Used(kZ, t, u);
      a.Drop(v);
      Again(v, kZ, t);
      a.Drop(v);
      EXPECT_OK(a->RecordUse(x, t));
    }
    const std::uint64_t waits = a.Stats().waits_issued;
    a.Drop(x);
    Again(x, kX, s);
    a.Drop(x);
    EXPECT_EQ(a.Stats().waits_issued, waits + 1);
    EXPECT_EQ(a.Stats().waits_elided, before.waits_elided + 1);
    gate.Open();
    EXPECT_OK(a->EmptyCache());
  }
}

// What was waited for through others is what was true when they were stamped, however many streams there are in between.
// A wait that a user made behind its own use does not order that use. So one wait, for the later use, is enough.
TEST_P(Implied, NotByAWaitBehindTheUse) {
  for (const bool swapped : {false, true}) {
    CUstream const earlier = swapped ? t : u;
    CUstream const later = swapped ? u : t;
    const CUdeviceptr x = a.Get(kX, s);
    a.Write(x, kX, s);
    a.Use(x, kX, s, earlier);
    const CUdeviceptr z = Used(kZ, later, earlier);
    a.Drop(z);
    Again(z, kZ, later);  // `later` waits for `earlier`
    a.Order(earlier, later);
    a.Use(x, kX, s, later);
    const CUdeviceptr y = Used(kY, earlier, later);
    a.Drop(y);
    Again(y, kY, earlier);  // `earlier` waits for `later`
    const std::uint64_t waits = a.Stats().waits_issued;
    a.Drop(x);
    Again(x, kX, s);
    EXPECT_EQ(a.Stats().waits_issued, waits + 1);
    for (const CUdeviceptr each : {x, y, z}) a.Drop(each);
    gate.Open();
    gate.Hold(t);
    gate.Hold(u);
  }
}

// What is cut off a block that was waited for asks for no other wait.
TEST_P(Implied, ForThePartThatIsLeft) {
  const CUdeviceptr x = Used(40 * kMiB, s, t);
  a.Drop(x);
  Again(x, kX, s);
  a.Write(a.Get(20 * kMiB, s), 20 * kMiB, s);
  Expect(1, 0);
  EXPECT_EQ(a.Stats().served_pending, 1U);
}

// One wait less is no reason to cut up a much larger block.
TEST_P(Implied, ButOfBlocksOfLikeSizeAlone) {
  const CUdeviceptr x = Used(kX, s, t);
  a.Order(t, u);
  a.Use(x, kX, s, u);
  const CUdeviceptr y = Used(60 * kMiB, s, t);
  a.Drop(x);
  a.Drop(y);
  Again(x, kX, s);
}

TEST_P(Implied, AlongAChainOfStreams) {
  constexpr int kStreams = 8;
  CUstream stream[kStreams];
  for (CUstream& one : stream) one = a.Stream();
  gate.Hold(stream[0]);
  CUdeviceptr first[kStreams];
  for (int i = 1; i < kStreams; ++i) first[i] = Used(kX, stream[i], stream[0]);
  for (int i = 1; i < kStreams; ++i) {
    // Each waits for the one before it.
    const CUdeviceptr link = i == 1 ? 0 : Used(kZ, stream[i], stream[i - 1]);
    if (i == 1) {
      const CUdeviceptr own = Used(kZ, stream[1], stream[0]);
      a.Drop(own);
      Again(own, kZ, stream[1]);
      continue;
    }
    a.Drop(link);
    Again(link, kZ, stream[i]);
  }
  const std::uint64_t waits = a.Stats().waits_issued;
  EXPECT_EQ(waits, static_cast<std::uint64_t>(kStreams - 1));
  for (int i = 1; i < kStreams; ++i) {
    a.Drop(first[i]);
    Again(first[i], kX, stream[i]);
  }
  Expect(waits, kStreams - 1);
}

TEST_P(Implied, IsTold) {
  std::vector<TraceEvent> seen;
  Tracer tracer;
  tracer.self = &seen;
  tracer.record = [](void* self, const TraceEvent& event) noexcept { static_cast<std::vector<TraceEvent>*>(self)->push_back(event); };
  a->SetTracer(tracer);
  const CUdeviceptr x = Used(kX, s, t);
  const CUdeviceptr y = Used(kY, s, t);
  a.Drop(x);
  a.Drop(y);
  Again(y, kY, s);
  Again(x, kX, s);
  std::vector<TraceEvent> elided;
  for (const TraceEvent& event : seen) {
    if (event.action == TraceAction::UseElided) elided.push_back(event);
  }
  ASSERT_EQ(elided.size(), 1U);
  EXPECT_EQ(elided[0].address, x);
  EXPECT_EQ(elided[0].stream, a.Ref(s).id());
  EXPECT_EQ(elided[0].other, a.Ref(t).id());
  EXPECT_EQ(elided[0].sequence, 1U);
  a->SetTracer({});
}

INSTANTIATE_TEST_SUITE_P(All, Implied, testing::ValuesIn(kSchedules), NameOf);

}  // namespace
}  // namespace cuaudit::alloc::implied_test
