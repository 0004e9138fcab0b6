// SPDX-License-Identifier: MIT
// RecordUse: whoever is handed memory again must find its uses over or wait for them. The simulated driver's oracle tells when not.
#include <tuple>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::uses_test {
namespace {

using Case = std::tuple<Reuse, sim::Schedule>;

class Uses : public testing::TestWithParam<Case> {
 protected:
  static Options Chosen() { return {.reuse = std::get<0>(GetParam())}; }
  static Setting On() { return {.schedule = std::get<1>(GetParam()), .devices = 2}; }
  bool Waits() const { return std::get<0>(GetParam()) == Reuse::Wait; }
  Allocating a{Chosen(), On()};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
};

// On a device that is behind.
class UsesNotOver : public Uses {};

TEST_P(Uses, TheNextOwnerComesBehindTheUse) {
  for (int round = 0; round < 10; ++round) {
    const CUdeviceptr x = a.Get(4 * kMiB, s);
    a.Write(x, 4 * kMiB, s);
    a.Use(x, 4 * kMiB, s, t);
    a.Drop(x);
    const CUdeviceptr y = a.Get(4 * kMiB, s);
    a.Write(y, 4 * kMiB, s);
    a.Drop(y);
  }
  EXPECT_EQ(a.Stats().uses_recorded, 10U);
}

TEST_P(UsesNotOver, WaitReusesAtOnceAndPollDoesNot) {
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  a.Use(x, 4 * kMiB, s, t);
  for (int i = 0; i < 20; ++i) a.Write(x, 4 * kMiB, t);
  EXPECT_OK(a->RecordUse(x, t));
  a.Drop(x);
  const CUdeviceptr rest = a.Get(16 * kMiB, s);  // what is left of the segment is ready: it comes first
  EXPECT_NE(rest, x);
  const std::int64_t reserved = a.Reserved();
  const CUdeviceptr y = a.Get(4 * kMiB, s);
  a.Write(y, 4 * kMiB, s);
  EXPECT_EQ(y == x, Waits());
  EXPECT_EQ(a.Reserved() == reserved, Waits());
  EXPECT_EQ(a.Stats().served_pending, Waits() ? 1U : 0U);
  EXPECT_EQ(a.Stats().waits_issued, Waits() ? 1U : 0U);
  EXPECT_NE(a.Stats().polls, 0U);  // what is over counts as ready, so both look
}

TEST_P(Uses, TheOwnStreamIsNoUse) {
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  a.Write(x, 4 * kMiB, s);
  EXPECT_OK(a->RecordUse(x, s));
  EXPECT_OK(a->RecordStream(x, s));
  a.Drop(x);
  EXPECT_EQ(a.Get(4 * kMiB, s), x);
  EXPECT_EQ(a.Stats().uses_own_stream, 1U);
  EXPECT_EQ(a.Stats().uses_recorded, 0U);
  EXPECT_EQ(a.Stats().events_created, 0U);
}

TEST_P(Uses, SeveralStreamsAddUp) {
  for (int round = 0; round < 5; ++round) {
    const CUdeviceptr x = a.Get(2 * kMiB, s);
    a.Write(x, 2 * kMiB, s);
    a.Order(s, t);
    a.Order(s, u);
    EXPECT_OK(a.d.MemcpyDtoDAsync(a.Get(2 * kMiB, t), x, 2 * kMiB, t));
    EXPECT_OK(a.d.MemcpyDtoDAsync(a.Get(2 * kMiB, u), x, 2 * kMiB, u));
    EXPECT_OK(a->RecordUse(x, t));
    EXPECT_OK(a->RecordUse(x, u));
    EXPECT_OK(a->RecordUse(x, u));
    a.Drop(x);
    const CUdeviceptr y = a.Get(2 * kMiB, s);
    a.Write(y, 2 * kMiB, s);
    a.Drop(y);
  }
  EXPECT_EQ(a.Stats().uses_merged, 5U);
}

TEST_P(Uses, RecordStreamCoversWhatComesAfterIt) {
  for (int round = 0; round < 10; ++round) {
    const CUdeviceptr x = a.Get(3 * kMiB, s);
    EXPECT_OK(a->RecordStream(x, t));
    a.Order(s, t);
    a.Write(x, 3 * kMiB, t);
    a.Drop(x);
    const CUdeviceptr y = a.Get(3 * kMiB, s);
    a.Write(y, 3 * kMiB, s);
    a.Drop(y);
  }
  EXPECT_EQ(a.Stats().uses_recorded, 0U);  // not RecordUse's
}

TEST_P(Uses, BothKindsOnOneBlock) {
  for (int round = 0; round < 10; ++round) {
    const CUdeviceptr x = a.Get(3 * kMiB, s);
    a.Use(x, kMiB, s, t);
    EXPECT_OK(a->RecordStream(x, u));
    a.Order(s, u);
    a.Write(x + kMiB, kMiB, u);
    a.Drop(x);
    const CUdeviceptr y = a.Get(3 * kMiB, s);
    a.Write(y, 3 * kMiB, s);
    a.Drop(y);
  }
}

TEST_P(Uses, EveryPartOfASplitBlockRemembers) {
  for (int round = 0; round < 10; ++round) {
    const CUdeviceptr x = a.Get(20 * kMiB, s);
    a.Use(x, 20 * kMiB, s, t);
    a.Order(t, u);
    a.Use(x, 20 * kMiB, s, u);
    a.Drop(x);
    CUdeviceptr part[4];
    for (CUdeviceptr& one : part) {
      one = a.Get(4 * kMiB, s);
      a.Write(one, 4 * kMiB, s);
    }
    for (const CUdeviceptr one : part) a.Drop(one);
  }
}

TEST_P(Uses, MergedBlocksRememberBoth) {
  for (int round = 0; round < 10; ++round) {
    const CUdeviceptr x = a.Get(6 * kMiB, s);
    const CUdeviceptr y = a.Get(6 * kMiB, s);
    a.Use(x, 6 * kMiB, s, t);
    a.Use(y, 6 * kMiB, s, u);
    a.Drop(x);
    a.Drop(y);
    const CUdeviceptr z = a.Get(9 * kMiB, s);
    a.Write(z, 9 * kMiB, s);
    a.Drop(z);
  }
}

TEST_P(Uses, AnotherDevicesStream) {
  CUstream far = a.Stream(1);
  for (int round = 0; round < 10; ++round) {
    const CUdeviceptr x = a.Get(4 * kMiB, s);
    a.Write(x, 4 * kMiB, s);
    CUevent event = nullptr;
    EXPECT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(a.d.EventRecord(event, s));
    EXPECT_OK(a.d.StreamWaitEvent(far, event, 0));
    EXPECT_OK(a.d.EventDestroy(event));
    const CUdeviceptr there = a.Get(4 * kMiB, far, 1);
    EXPECT_OK(a.d.MemcpyPeerAsync(there, a.contexts[1], x, a.contexts[0], 4 * kMiB, far));
    EXPECT_OK(a->RecordUse(x, far)) << a.LastText();
    a.Drop(x);
    a.Drop(there);
    const CUdeviceptr y = a.Get(4 * kMiB, s);
    a.Write(y, 4 * kMiB, s);
    a.Drop(y);
  }
}

TEST_P(Uses, ReleasingWaitsForThem) {
  for (int round = 0; round < 5; ++round) {
    const CUdeviceptr x = a.Get(12 * kMiB, s);
    a.Use(x, 12 * kMiB, s, t);
    a.Drop(x);
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(), 0);
  }
}

TEST_P(Uses, RunningOutOfMemoryWaitsForThem) {
  const CUdeviceptr x = a.Get(200 * kMiB, s);
  a.Use(x, 200 * kMiB, s, t);
  a.Drop(x);
  const CUdeviceptr y = a.Get(210 * kMiB, u);
  a.Write(y, 210 * kMiB, u);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(210 * kMiB));
}

TEST_P(Uses, ManyInATightLoopStayBounded) {
  std::vector<std::string> warnings;
  a->SetWarning({.self = &warnings,
                 .warn = [](void* self, const char* text) noexcept { static_cast<std::vector<std::string>*>(self)->emplace_back(text); }});
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  a.Order(s, t);
  for (int i = 0; i < 2000; ++i) {
    if (i % 100 == 0) a.Write(x, 4 * kMiB, t);
    EXPECT_OK(a->RecordUse(x, t));
  }
  EXPECT_LE(a.Stats().events_created, 80U);
  if (std::get<1>(GetParam()) == sim::Schedule::Lazy) {
    EXPECT_GT(a.Stats().stamps_shared, 1000U);
  }
  ASSERT_EQ(warnings.size(), a.Stats().stamps_shared == 0 ? 0U : 1U);
  for (const std::string& warning : warnings) EXPECT_NE(warning.find("has 64 recorded uses"), std::string::npos) << warning;
  a.Drop(x);
  const CUdeviceptr y = a.Get(4 * kMiB, s);
  a.Write(y, 4 * kMiB, s);
}

TEST(UsesByWords, ManyOnAStalledStreamStayBoundedAndEndOneByOne) {
  Options options;
  options.completion = Completion::StreamWrites;
  options.reuse = Reuse::Poll;
  Allocating a(options);
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  Gate early(a.d);
  Gate late(a.d);
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  const CUdeviceptr y = a.Get(12 * kMiB, s);
  early.Hold(t);
  for (int i = 0; i < 2000; ++i) EXPECT_OK(a->RecordUse(i < 1000 ? x : y, t));
  EXPECT_GT(a.Stats().stamps_shared, 1900U);
  a.Drop(x);
  EXPECT_NE(a.Get(12 * kMiB, s), x);
  early.Open();
  late.Hold(t);
  EXPECT_OK(a->RecordUse(y, t));
  a.Drop(y);
  EXPECT_EQ(a.Get(12 * kMiB, s), x);
  EXPECT_NE(a.Get(12 * kMiB, s), y);
  late.Open();
  EXPECT_EQ(a.Get(12 * kMiB, s), y);
}

// Once a stream is in a capture, nothing but its next recording outside tells of what it did before.
TEST_P(Uses, BeforeACaptureThatToldOfThem) {
  for (int round = 0; round < 3; ++round) {
    const bool promised = round == 2;
    const bool known = round != 0;  // outside, before the capture: by the end of the first round at the latest
    const CUdeviceptr x = a.Get(12 * kMiB, s);
    a.Write(x, 12 * kMiB, s);
    a.Order(s, t);
    for (int i = 0; i < 3; ++i) a.Write(x, 12 * kMiB, t);
    if (promised) {
      EXPECT_OK(a->RecordStream(x, t));
    }
    ASSERT_OK(a.d.StreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (!promised) {
      EXPECT_OK(a->RecordUse(x, t)) << a.LastText();
    }
    a.Drop(x);
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(t, &graph));
    ASSERT_OK(a.d.GraphDestroy(graph));
    const CUdeviceptr seen = a.Get(512, t);  // here the capture is seen to be over
    const CUdeviceptr other = a.Get(512, s);
    EXPECT_OK(a->RecordUse(other, t));
    const CUdeviceptr y = a.Get(12 * kMiB, s);
    if (!known) {
      EXPECT_NE(y, x);  // told of by what the stream was in its capture, and nobody knows who that was: only synchronising settles that
    } else if (Waits()) {
      EXPECT_EQ(y, x);
    }
    a.Write(y, 12 * kMiB, s);
    for (const CUdeviceptr one : {seen, other, y}) a.Drop(one);
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(), 0);
  }
}

// The end of the route is the end of the capture, for memory of the shared pool as well.
TEST_P(Uses, BeforeARoutedCaptureDoNotKeepMemoryReserved) {
  StreamRef routed = a.Ref(t);
  Route route;
  route.user = &routed;
  route.applies = [](void* user, StreamRef stream) noexcept { return static_cast<StreamRef*>(user)->handle() == stream.handle(); };
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  a.Write(x, 12 * kMiB, s);
  a.Order(s, t);
  a.Write(x, 12 * kMiB, t);
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, route));
  ASSERT_OK(a.d.StreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(a->RecordUse(x, t)) << a.LastText();
  a.Drop(x);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(12 * kMiB));
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(t, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
}

// A pool that merely lent a block to captured work may end before the capture does.
TEST_P(Uses, InACaptureDoNotEndWithAPoolThatLentABlock) {
  const PoolId lender = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, lender, {}));
  const CUdeviceptr x = a.Get(12 * kMiB, u);
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));  // the later route wins
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const CUdeviceptr y = a.Get(12 * kMiB, s);
  a.Order(s, t);
  EXPECT_OK(a->RecordUse(x, t)) << a.LastText();
  a.Write(y, 12 * kMiB, t);
  EXPECT_OK(a->EndAllocateToPool(0, lender));
  EXPECT_OK(a->RecordUse(y, t)) << a.LastText();
  a.Drop(y);
  EXPECT_NE(a.Get(12 * kMiB, s), y);
  a.Order(t, s);
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(s, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
  ASSERT_OK(a->EndAllocateToPool(0, pool));
}

TEST_P(Uses, KeptAliveUntilAnEventThatIsDestroyed) {
  for (int round = 0; round < 5; ++round) {
    const CUdeviceptr x = a.Get(4 * kMiB, s);
    a.Order(s, t);
    a.Write(x, 4 * kMiB, t);
    CUevent event = nullptr;
    EXPECT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(a.d.EventRecord(event, t));
    EXPECT_OK(a->KeepAliveUntil(x, event)) << a.LastText();
    EXPECT_OK(a.d.EventDestroy(event));
    a.Drop(x);
    const CUdeviceptr y = a.Get(4 * kMiB, s);
    a.Write(y, 4 * kMiB, s);
    a.Drop(y);
  }
}

TEST_P(Uses, AStreamDestroyedAfterItsUse) {
  for (int round = 0; round < 5; ++round) {
    CUstream brief = a.Stream();
    const CUdeviceptr x = a.Get(4 * kMiB, s);
    a.Use(x, 4 * kMiB, s, brief);
    a.Destroy(brief);
    a.Drop(x);
    const CUdeviceptr y = a.Get(4 * kMiB, s);
    a.Write(y, 4 * kMiB, s);
    a.Drop(y);
  }
}

TEST_P(UsesNotOver, PendingUsesAreInTheSnapshot) {
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  a.Use(x, 12 * kMiB, s, t);
  a.Drop(x);
  const Snapshot look = a.Look();
  ASSERT_EQ(look.segments.size(), 1U);
  ASSERT_EQ(look.segments[0].blocks.size(), 1U);
  const SnapshotBlock& block = look.segments[0].blocks[0];
  EXPECT_EQ(block.state, Waits() ? BlockState::Inactive : BlockState::ActivePendingFree);
  ASSERT_EQ(block.uses.size(), 1U);
  EXPECT_EQ(block.uses[0].stream, a.Ref(t).id());
  EXPECT_EQ(a.Stats().blocks_pending, Waits() ? 0U : 1U);
}

std::string NameOfCase(const testing::TestParamInfo<Case>& chosen) {
  const testing::TestParamInfo<sim::Schedule> schedule(std::get<1>(chosen.param), 0);
  return std::string(std::get<0>(chosen.param) == Reuse::Poll ? "Poll" : "Wait") + NameOf(schedule);
}
INSTANTIATE_TEST_SUITE_P(All, Uses, testing::Combine(testing::Values(Reuse::Poll, Reuse::Wait), testing::ValuesIn(kSchedules)), NameOfCase);
INSTANTIATE_TEST_SUITE_P(All, UsesNotOver,
                         testing::Combine(testing::Values(Reuse::Poll, Reuse::Wait), testing::Values(sim::Schedule::Lazy)), NameOfCase);

// What the tests above would say of an allocator that forgets: the oracle sees it.
TEST(UsesUnprotected, AreSeenByTheOracle) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  a.Order(s, t);
  a.Write(x, 4 * kMiB, t);
  a.Drop(x);
  const CUdeviceptr y = a.Get(4 * kMiB, s);
  ASSERT_EQ(y, x);
  a.Write(y, 4 * kMiB, s);
  ASSERT_FALSE(a.misuse.empty());
  EXPECT_EQ(a.misuse[0].rule, driver::MisuseRule::UnorderedAccess);
  a.misuse.clear();
}

}  // namespace
}  // namespace cuaudit::alloc::uses_test
