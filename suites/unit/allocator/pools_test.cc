// SPDX-License-Identifier: MIT
// Private pools, captures, checkpoints, expandable segments.
#include <gmock/gmock.h>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc {
namespace {

TEST(Pools, RoutedAllocationsStayInThem) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  PoolId pool;
  ASSERT_OK(a->CreatePool({}, &pool));
  const CUdeviceptr outside = a.Get(4 * kMiB, s);
  struct Only {
    StreamRef stream;
  } only{a.Ref(s)};
  const Route route{[](void* self, StreamRef stream) noexcept { return stream == static_cast<Only*>(self)->stream; }, &only};
  ASSERT_OK(a->BeginAllocateToPool(0, pool, route));
  EXPECT_EQ(a->BeginAllocateToPool(0, pool, route), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(a->ReleasePool({0, 77}), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr inside = a.Get(4 * kMiB, s);
  const CUdeviceptr other = a.Get(4 * kMiB, t);
  a.Drop(inside);
  EXPECT_EQ(a.Get(4 * kMiB, s), inside);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_EQ(a->EndAllocateToPool(0, pool), CUDA_ERROR_ILLEGAL_STATE);
  a.Drop(inside);
  EXPECT_NE(a.Get(4 * kMiB, s), inside);
  int in_pool = 0;
  for (const SnapshotSegment& segment : a.Look().segments) in_pool += segment.pool == pool;
  EXPECT_EQ(in_pool, 1);
  a.Drop(outside);
  a.Drop(other);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(40 * kMiB));  // the pool's stays while it has users: a graph may know its addresses
  ASSERT_OK(a->ReleasePool(pool));
  ASSERT_OK(a->ReleasePool(pool));  // Begin had added one
  EXPECT_EQ(a->ReleasePool(pool), CUDA_ERROR_INVALID_VALUE);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(20 * kMiB));
}

TEST(Pools, AUsersOwnMemory) {
  struct Source {
    driver::DriverRef d;
    int held = 0;
    std::size_t bytes = 0;
  };
  Allocating a;
  Source source{a.d, 0, 0};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  PoolOptions options;
  options.user = &source;
  options.acquire = [](void* user, int, std::size_t bytes, CUstream, CUdeviceptr* out) noexcept {
    Source* const one = static_cast<Source*>(user);
    ++one->held;
    one->bytes = bytes;
    return one->d.MemAlloc(out, bytes);
  };
  options.release = [](void* user, int, CUdeviceptr address, std::size_t) noexcept {
    --static_cast<Source*>(user)->held;
    return static_cast<Source*>(user)->d.MemFree(address);
  };
  PoolId pool;
  ASSERT_OK(a->CreatePool(options, &pool));
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_EQ(source.held, 1);
  EXPECT_EQ(source.bytes, 20 * kMiB);
  a.Use(x, 4 * kMiB, s, t);
  a.Drop(x);
  ASSERT_OK(a->EmptyCache(pool));  // waits for the use
  EXPECT_EQ(source.held, 0);
  options.release = nullptr;
  EXPECT_EQ(a->CreatePool(options, &pool), CUDA_ERROR_INVALID_VALUE);
}

TEST(Pools, LendWhenNothingElseIsLeft) {
  Allocating a;
  CUstream s = a.Stream();
  PoolOptions options;
  options.use_on_oom = true;
  PoolId pool;
  ASSERT_OK(a->CreatePool(options, &pool));
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(200 * kMiB, s);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  a.Drop(x);
  EXPECT_EQ(a.Get(150 * kMiB, s), x);
  EXPECT_EQ(a.Stats().served_shared_pool, 1U);
}

TEST(Pools, ThatAreGoneLeaveTheirRecordToTheNext) {
  Allocating a;
  CUstream s = a.Stream();
  std::uint64_t last = 0;
  for (int round = 0; round < 100; ++round) {
    PoolId pool;
    ASSERT_OK(a->CreatePool({}, &pool));
    EXPECT_GT(pool.second, last);
    last = pool.second;
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    const CUdeviceptr x = a.Get(1000, s);
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    a.Drop(x);
    ASSERT_OK(a->ReleasePool(pool));
    ASSERT_OK(a->ReleasePool(pool));
    ASSERT_OK(a->EmptyCache());
  }
  EXPECT_EQ(a.Reserved(), 0);
}

class Capturing : public Allocating {
 public:
  explicit Capturing(const Options& options = {}) : Allocating(options) {
    EXPECT_OK(allocator->CreatePool({}, &pool));
    Begin();
  }
  void Begin() {
    EXPECT_OK(allocator->BeginAllocateToPool(0, pool, {}));
    EXPECT_OK(d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  }
  void End() {
    CUgraph graph = nullptr;
    EXPECT_OK(d.StreamEndCapture(s, &graph));
    EXPECT_OK(allocator->EndAllocateToPool(0, pool));
    EXPECT_OK(d.GraphDestroy(graph));
  }
  void Fork() {
    EXPECT_OK(d.EventRecord(event, s));
    EXPECT_OK(d.StreamWaitEvent(t, event, 0));
  }
  void Join() {
    EXPECT_OK(d.EventRecord(event, t));
    EXPECT_OK(d.StreamWaitEvent(s, event, 0));
  }
  ~Capturing() { EXPECT_OK(d.EventDestroy(event)); }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;
  CUstream s = Stream();
  CUstream t = Stream();
  CUevent event = MakeEvent();
  PoolId pool;

 private:
  CUevent MakeEvent() {
    CUevent made = nullptr;
    EXPECT_OK(d.EventCreate(&made, CU_EVENT_DISABLE_TIMING));
    return made;
  }
};

TEST(Captures, GrowingAndReusingDoesNotDisturbThem) {
  Capturing a;
  for (int i = 0; i < 4; ++i) {
    const CUdeviceptr x = a.Get(12 * kMiB, a.s);
    a.Write(x, 12 * kMiB, a.s);
    a.Drop(x);
  }
  EXPECT_EQ(a.Stats().segment[0].current, 1);
  a.End();
}

TEST(Captures, AUseInOneIsDeferredUntilItsEnd) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    Options options;
    options.reuse = reuse;
    Capturing a(options);
    const CUdeviceptr x = a.Get(12 * kMiB, a.s);
    a.Write(x, 12 * kMiB, a.s);
    a.Fork();
    a.Write(x, 12 * kMiB, a.t);
    EXPECT_OK(a->RecordUse(x, a.t)) << a.LastText();
    a.Drop(x);
    const CUdeviceptr y = a.Get(12 * kMiB, a.s);
    EXPECT_NE(y, x);
    a.Write(y, 12 * kMiB, a.s);
    a.Join();
    EXPECT_EQ(a.Stats().uses_captured, 1U);
    a.End();
    a.Begin();  // the next capture that shares the pool
    EXPECT_EQ(a.Get(12 * kMiB, a.s), x);
    a.End();
  }
}

TEST(Captures, TheGraphMayOrderAUseBefore) {
  for (const bool by_topology : {true, false}) {
    Options options;
    options.capture_reuse_by_topology = by_topology;
    Capturing a(options);
    const CUdeviceptr x = a.Get(12 * kMiB, a.s);
    a.Write(x, 12 * kMiB, a.s);
    a.Fork();
    a.Write(x, 12 * kMiB, a.t);
    EXPECT_OK(a->RecordUse(x, a.t));
    a.Drop(x);
    a.Write(a.Get(12 * kMiB, a.s), 12 * kMiB, a.s);
    a.Join();
    const CUdeviceptr y = a.Get(12 * kMiB, a.s);
    a.Write(y, 12 * kMiB, a.s);
    EXPECT_EQ(y == x, by_topology);
    EXPECT_EQ(a.Stats().served_capture_order, by_topology ? 1U : 0U);
    a.End();
  }
}

TEST(Captures, RecordStreamInOneIsDeferredToo) {
  Capturing a;
  const CUdeviceptr x = a.Get(12 * kMiB, a.s);
  a.Write(x, 12 * kMiB, a.s);
  EXPECT_OK(a->RecordStream(x, a.t));
  a.Fork();
  a.Write(x, 12 * kMiB, a.t);
  a.Drop(x);
  EXPECT_NE(a.Get(12 * kMiB, a.s), x);
  a.Join();
  a.End();
}

TEST(Captures, WithoutAPoolEndWhenAStreamOfTheirsIsSeenOutside) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(12 * kMiB, t);
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(a->RecordUse(x, s)) << a.LastText();
  a.Drop(x);
  EXPECT_NE(a.Get(12 * kMiB, t), x);
  EXPECT_OK(a->EmptyCache());
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(s, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
  const CUdeviceptr z = a.Get(512, s);
  EXPECT_OK(a->RecordUse(a.Get(512, t), s));  // here it is seen
  EXPECT_EQ(a.Get(12 * kMiB, t), x);
  a.Drop(z);
}

TEST(Captures, AStreamInOneHasAnIdentityOfItsOwn) {
  for (const bool is_known : {false, true}) {
    Allocating a;
    CUstream s = a.Stream();
    StreamRef outside;
    if (is_known) outside = a.Ref(s);
    for (const CUstreamCaptureMode mode :
         {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
      ASSERT_OK(a.d.StreamBeginCapture(s, mode));
      const StreamRef inside = a.Ref(s);
      EXPECT_NE(inside, outside);
      EXPECT_EQ(inside, a.Ref(s)) << "the same throughout the capture";
      EXPECT_EQ(inside.handle(), s);
      EXPECT_EQ(inside.device(), 0);
      const CUdeviceptr x = a.Get(512, s);
      EXPECT_OK(a->RecordUse(x, s)) << a.LastText();
      a.Drop(x);
      EXPECT_EQ(a.Get(512, s), x) << "what the capture freed serves it again";
      a.Drop(x);
      CUgraph graph = nullptr;
      ASSERT_OK(a.d.StreamEndCapture(s, &graph));
      ASSERT_OK(a.d.GraphDestroy(graph));
      if (!is_known) outside = a.Ref(s);
      EXPECT_EQ(a.Ref(s), outside);
      EXPECT_EQ(outside.id() >> 63, 0U);
      EXPECT_EQ(inside.id() >> 63, 1U);
      EXPECT_NE(a.Get(512, s), x) << "a graph may have it";
    }
    EXPECT_EQ(a.Stats().uses_own_stream, 3U);
  }
}

// What a destroyed stream freed while it was busy is not handed to the capture of a stream that has its handle.
TEST(Captures, ARecycledHandleIsNotTheStreamThatHadIt) {
  Allocating a;
  for (int i = 0; i < 64; ++i) {
    CUstream s = a.Stream();
    const CUdeviceptr x = a.Get(12 * kMiB, s);
    a.Write(x, 12 * kMiB, s);
    a.Drop(x);
    a.Destroy(s);
    CUstream t = a.Stream();
    ASSERT_OK(a.d.StreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const CUdeviceptr y = a.Get(12 * kMiB, t);
    EXPECT_NE(y, x);
    a.Drop(y);
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(t, &graph));
    ASSERT_OK(a.d.GraphDestroy(graph));
    ASSERT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(), 0);
  }
}

TEST(Captures, ATrustedHandleKeepsItsIdentity) {
  Options options;
  options.trust_stream_handles = true;
  Allocating a(options);
  CUstream s = a.Stream();
  const StreamRef outside = a.Ref(s);
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(a.Ref(s), outside);
  CUstream other = a.Stream();
  EXPECT_EQ(a.Ref(other).id() >> 63, 0U) << "beside the capture";
  a.Drop(a.Get(512, nullptr));
  a.Drop(a.Get(512, CU_STREAM_PER_THREAD));
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(s, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
}

TEST(Captures, AnInvalidatedOneIsRefused) {
  Allocating a;
  CUstream s = a.Stream();
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  unsigned long long id = 0;
  EXPECT_EQ(a.d.StreamGetId(s, &id), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUdeviceptr x = 0;
  EXPECT_EQ(a->Allocate(0, 512, s, &x), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(x, 0U);
  CUgraph graph = nullptr;
  EXPECT_EQ(a.d.StreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  a.Drop(a.Get(512, s));
}

TEST(Captures, NoStreamIsMadeToWaitInsideForWhatIsOutside) {
  Options options;
  options.reuse = Reuse::Wait;
  Allocating a(options);
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  a.Use(x, 12 * kMiB, s, t);
  a.Drop(x);
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const CUdeviceptr y = a.Get(12 * kMiB, s);
  EXPECT_NE(y, x);
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(s, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
  EXPECT_EQ(a.Get(12 * kMiB, s), x);
}

TEST(Checkpoints, RestoreHowAPoolWasCutUp) {
  Allocating a;
  CUstream s = a.Stream();
  PoolId pool;
  ASSERT_OK(a->CreatePool({}, &pool));
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  const CUdeviceptr y = a.Get(2 * kMiB, s);
  const CUdeviceptr z = a.Get(3 * kMiB, s);
  a.Drop(y);
  Checkpoint checkpoint;
  ASSERT_OK(a->TakeCheckpoint(0, pool, &checkpoint));
  ASSERT_EQ(checkpoint.segments.size(), 1U);
  EXPECT_EQ(checkpoint.segments[0].blocks.size(), 4U);
  a.Drop(x);
  a.Drop(z);
  const CUdeviceptr w = a.Get(9 * kMiB, s);
  const CUdeviceptr v = a.Get(14 * kMiB, s);
  RestoreResult result;
  ASSERT_OK(a->RestoreCheckpoint(checkpoint, &result)) << a.LastText();
  EXPECT_THAT(result.freed, testing::UnorderedElementsAre(w, v));
  EXPECT_THAT(result.allocated, testing::UnorderedElementsAre(x, z));
  EXPECT_EQ(a.Stats().allocated_bytes[0].current, static_cast<std::int64_t>(7 * kMiB));
  EXPECT_EQ(a.Get(2 * kMiB, s), y);
  EXPECT_EQ(a->Free(w), x == w ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  a.Drop(z);
  checkpoint.segments[0].address += 512;
  EXPECT_EQ(a->RestoreCheckpoint(checkpoint, &result), CUDA_ERROR_INVALID_VALUE);
  checkpoint.pool = {0, 99};
  EXPECT_EQ(a->RestoreCheckpoint(checkpoint, &result), CUDA_ERROR_INVALID_VALUE);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
}

TEST(Checkpoints, AreNotTakenOfWhatIsStillUsed) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  PoolId pool;
  ASSERT_OK(a->CreatePool({}, &pool));
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  a.Use(x, 4 * kMiB, s, t);
  a.Drop(x);
  Checkpoint checkpoint;
  EXPECT_EQ(a->TakeCheckpoint(0, pool, &checkpoint), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  ASSERT_OK(a->EmptyCache(pool));
  EXPECT_OK(a->TakeCheckpoint(0, pool, &checkpoint));
}

class Expandable : public testing::TestWithParam<sim::Schedule> {
 protected:
  static Options Chosen() {
    Options options;
    options.expandable_segments = true;
    return options;
  }
  Allocating a{Chosen(), {.schedule = GetParam()}};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
};

TEST_P(Expandable, OneSegmentGrows) {
  const CUdeviceptr x = a.Get(30 * kMiB, s);
  const CUdeviceptr y = a.Get(30 * kMiB, s);
  EXPECT_EQ(y, x + 30 * kMiB);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(60 * kMiB));
  a.Drop(x);
  a.Drop(y);
  const CUdeviceptr z = a.Get(75 * kMiB, s);  // what a plain segment could not: grow what is free
  EXPECT_EQ(z, x);
  a.Write(z, 75 * kMiB, s);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(80 * kMiB));
  EXPECT_EQ(a.Stats().segment[0].current, 1);
  EXPECT_EQ(a.Look().segments.size(), 1U);
  a.Drop(z);
}

TEST_P(Expandable, WholePagesGoBackFromTheMiddle) {
  CUdeviceptr part[5];
  for (CUdeviceptr& one : part) one = a.Get(20 * kMiB, s);
  a.Use(part[2], 20 * kMiB, s, t);
  a.Write(part[1], 20 * kMiB, s);
  a.Drop(part[1]);
  a.Drop(part[2]);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(60 * kMiB));
  EXPECT_EQ(a.Look().segments.size(), 2U);
  const CUdeviceptr again = a.Get(40 * kMiB, s);  // mapped anew at the lowest address
  EXPECT_EQ(again, part[1]);
  a.Write(again, 40 * kMiB, s);
  EXPECT_EQ(a.Look().segments.size(), 1U);
}

TEST_P(Expandable, SmallAndLargeApart) {
  const CUdeviceptr x = a.Get(1000, s);
  const CUdeviceptr y = a.Get(3 * kMiB, s);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(22 * kMiB));
  a.Write(x, 1000, s);
  a.Write(y, 3 * kMiB, s);
  a.Drop(x);
  a.Drop(y);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  a.Drop(a.Get(1000, s));
}

TEST_P(Expandable, RunningOutIsTheEndOfTheSame) {
  (void)a.Get(200 * kMiB, s);
  CUdeviceptr none = 1;
  EXPECT_EQ(a->Allocate(0, 100 * kMiB, s, &none), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(200 * kMiB));
  (void)a.Get(40 * kMiB, s);
}

INSTANTIATE_TEST_SUITE_P(All, Expandable, testing::ValuesIn(kSchedules), NameOf);

TEST(ExpandableWithoutVirtualMemory, FallsBackVisibly) {
  Options options;
  options.expandable_segments = true;
  Allocating a(options, {.profile = "small"});
  CUstream s = a.Stream();
  (void)a.Get(30 * kMiB, s);
  EXPECT_EQ(a.Stats().fallbacks, 1U);
  EXPECT_FALSE(a.Look().segments[0].expandable);
}

}  // namespace
}  // namespace cuaudit::alloc
