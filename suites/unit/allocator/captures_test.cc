// SPDX-License-Identifier: MIT
// Memory in captures: what the graph orders, what is deferred, what is left alone.
#include <algorithm>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::captures_test {
namespace {

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
    Capturing a({.reuse = reuse});
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
    Capturing a({.capture_reuse_by_topology = by_topology});
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

// An event of a capture stands for captured work, and outside all goes on as ever meanwhile.
TEST(Captures, KeepingABlockUntilAnEventOfOneDefersItToo) {
  for (const bool by_topology : {true, false}) {
    Options options;
    options.reuse = by_topology ? Reuse::Wait : Reuse::Poll;
    options.capture_reuse_by_topology = by_topology;
    Capturing a(options);
    const CUdeviceptr x = a.Get(12 * kMiB, a.s);
    a.Write(x, 12 * kMiB, a.s);
    a.Fork();
    a.Write(x, 12 * kMiB, a.t);
    EXPECT_OK(a.d.EventRecord(a.event, a.t));
    EXPECT_OK(a->KeepAliveUntil(x, a.event)) << a.LastText();
    EXPECT_EQ(a.Stats().uses_captured, 1U);
    a.Drop(x);
    const CUdeviceptr y = a.Get(12 * kMiB, a.s);
    EXPECT_NE(y, x);
    a.Write(y, 12 * kMiB, a.s);
    CUevent eager = nullptr;
    EXPECT_OK(a.d.EventCreate(&eager, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(a.d.EventRecord(eager, a.Stream()));
    for (int i = 0; i < 2; ++i) EXPECT_OK(a->KeepAliveUntil(y, eager)) << a.LastText();
    EXPECT_OK(a.d.EventDestroy(eager));
    a.Join();
    const CUdeviceptr z = a.Get(12 * kMiB, a.s);
    EXPECT_EQ(z == x, by_topology);
    a.End();
    a.Drop(y);
    a.Drop(z);
    for (int user = 0; user < 2; ++user) EXPECT_OK(a->ReleasePool(a.pool));  // its maker, and who began
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(), 0);
    EXPECT_EQ(a.Stats().blocks_pending, 0U);
  }
}

// What is cached there may be what a graph was captured with.
TEST(Captures, AreNotDeprivedOfWhatTheyFreed) {
  for (const bool by_garbage : {false, true}) {
    Options options;
    if (by_garbage) {
      options.memory_fraction = 0.5;  // of 256 MiB
      options.garbage_collection_threshold = 0.25;
    } else {
      options.max_split_size = 32 * kMiB;
    }
    Capturing a(options);
    const CUdeviceptr x = a.Get(100 * kMiB, a.s);
    a.Write(x, 100 * kMiB, a.s);
    a.Drop(x);
    CUdeviceptr y = 0;
    EXPECT_EQ(a->Allocate(0, 120 * kMiB, a.s, &y), by_garbage ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
    EXPECT_EQ(a->Allocate(0, 120 * kMiB, a.s, &y), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(a.Stats().num_device_free, 0);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    EXPECT_OK(a.d.StreamEndCapture(a.s, &graph));
    EXPECT_OK(a->EndAllocateToPool(0, a.pool));
    EXPECT_OK(a.d.GraphInstantiateWithFlags(&exec, graph, 0));
    EXPECT_OK(a.d.GraphDestroy(graph));
    EXPECT_OK(a.d.GraphLaunch(exec, a.s));
    EXPECT_OK(a.d.StreamSynchronize(a.s));
    EXPECT_OK(a.d.GraphExecDestroy(exec));
  }
}

TEST(Captures, WithoutAPoolKeepWhatTheyUsedUntilAllIsSynchronised) {
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
  // What that stream had been given before its capture is not known by the identity it had in it: only synchronising settles that.
  EXPECT_NE(a.Get(12 * kMiB, t), x);
  const std::int64_t before = static_cast<std::int64_t>(a.Reserved());
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(before - static_cast<std::int64_t>(a.Reserved()), static_cast<std::int64_t>(12 * kMiB));
  a.Drop(z);
}

// A stream that was known before its capture is known to be the same after it, so its next recording tells of all it was given before.
TEST(Captures, WithoutAPoolGiveBackWhatTheyUsedOnceAKnownStreamIsSeenOutside) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    for (const bool by_handle : {true, false}) {
      Allocating a({.reuse = reuse});
      CUstream s = a.Stream();
      CUstream t = a.Stream();
      const StreamRef known = a.Ref(s);
      const CUdeviceptr x = a.Get(12 * kMiB, t);
      a.Write(x, 12 * kMiB, t);
      a.Order(t, s);
      a.Write(x, 12 * kMiB, s);  // told of by the capture alone
      ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
      EXPECT_OK(a->RecordUse(x, s)) << a.LastText();
      a.Drop(x);
      const CUdeviceptr y = a.Get(12 * kMiB, t);
      EXPECT_NE(y, x);
      a.Drop(y);
      CUgraph graph = nullptr;
      ASSERT_OK(a.d.StreamEndCapture(s, &graph));
      ASSERT_OK(a.d.GraphDestroy(graph));
      CUdeviceptr z = 0;
      if (by_handle) {
        z = a.Get(512, s);
      } else {
        EXPECT_OK(a->Allocate(512, known, &z)) << a.LastText();
      }
      if (reuse == Reuse::Poll) {
        EXPECT_OK(a.d.StreamSynchronize(s));
      }
      const CUdeviceptr w = a.Get(12 * kMiB, t);
      const CUdeviceptr v = a.Get(12 * kMiB, t);
      EXPECT_EQ(std::minmax(w, v), std::minmax(x, y));
      a.Write(w, 12 * kMiB, t);
      a.Write(v, 12 * kMiB, t);
      EXPECT_EQ(a.Stats().waits_issued, reuse == Reuse::Wait ? 1U : 0U);
      EXPECT_EQ(a.Stats().num_device_alloc, 3);
    }
  }
}

// Whose context must not be synchronised while it captures, the user's or the block's: what waits for that stays, and nothing fails.
TEST(Captures, OnAnotherDeviceKeepWhatOnlyItsContextCouldSettle) {
  Allocating a({}, {.devices = 2});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream far = a.Stream(1);
  const StreamRef user = a.Ref(s);
  for (const bool captured : {true, false}) {
    const CUdeviceptr x = a.Get(12 * kMiB, far, 1);
    const PoolId pool = a.Pool();
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(a->RecordUse(x, user)) << a.LastText();
    a.Drop(x);
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(s, &graph));
    ASSERT_OK(a.d.GraphDestroy(graph));
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    if (captured) {
      ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
      ASSERT_OK(a.d.StreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_RELAXED));
    }
    EXPECT_OK(a->EmptyCache()) << a.LastText();
    EXPECT_EQ(a.Reserved(1), captured ? static_cast<std::int64_t>(12 * kMiB) : 0);
    if (!captured) continue;
    ASSERT_OK(a.d.StreamEndCapture(t, &graph));
    ASSERT_OK(a.d.GraphDestroy(graph));
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(1), 0);
  }
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
  Allocating a({.trust_stream_handles = true});
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
  Allocating a({.reuse = Reuse::Wait});
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

}  // namespace
}  // namespace cuaudit::alloc::captures_test
