// SPDX-License-Identifier: MIT
// A handle that is a new stream's after it was a destroyed one's; finding the records of a handle costs no more the more streams there are.
#define __CUDA_API_VERSION_INTERNAL
#include <cstdint>
#include <string>
#include <thread>

#include "allocator/core/core.h"
#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/passing_driver.h"

namespace cuaudit::alloc::recycled_test {
namespace {

class Recycled : public testing::TestWithParam<Reuse> {
 protected:
  Recycled() {
    Options options = {.reuse = GetParam()};
    const DeviceConfig config;
    EXPECT_OK(Allocator::Create(recycled.ref(), &config, 1, options, &allocator));
    recycled.means = a.Stream();
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(0, bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  // The stream behind the handle ends, its work goes on; the next one has its handle.
  void Replace() {
    a.Destroy(recycled.means);
    recycled.means = a.Stream();
  }
  // t's memory, used by the stream behind the handle as well.
  CUdeviceptr GetAndUse() {
    const CUdeviceptr x = Get(12 * kMiB, t);
    a.Write(x, 12 * kMiB, t);
    a.Order(t, recycled.means);
    a.Write(x, 12 * kMiB, recycled.means);
    return x;
  }
  // Nobody gets the block, whatever the handle's new stream does, before everything is synchronised.
  void ExpectKeptUntilSynchronised(CUdeviceptr x) {
    for (int i = 0; i < 2; ++i) {
      const CUdeviceptr y = Get(12 * kMiB, t);
      EXPECT_NE(y, x);
      a.Write(y, 12 * kMiB, t);
      EXPECT_OK(a.d.StreamSynchronize(recycled.means));
      EXPECT_OK(allocator->Free(Get(512, handle)));
      EXPECT_OK(allocator->Free(y));
    }
    EXPECT_OK(allocator->EmptyCache());
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    EXPECT_EQ(statistics.active_bytes[0].current, 0) << "synchronising settles it";
    EXPECT_OK(allocator->Close());
  }
  Allocating a;
  RecycledHandle recycled{a.d};
  CUstream handle = recycled.handle();
  CUstream t = a.Stream();
  std::unique_ptr<Allocator> allocator;
};

TEST_P(Recycled, ItIsAnotherStreamsMemory) {
  const CUdeviceptr x = Get(12 * kMiB, handle);
  a.Write(x, 12 * kMiB, recycled.means);
  EXPECT_OK(allocator->Free(x));
  Replace();
  const CUdeviceptr y = Get(12 * kMiB, handle);
  EXPECT_NE(y, x);
  a.Write(y, 12 * kMiB, recycled.means);
  EXPECT_OK(allocator->Close());
}

TEST_P(Recycled, ItsUseIsNoUseByTheOwner) {
  const CUdeviceptr x = Get(12 * kMiB, handle);
  a.Write(x, 12 * kMiB, recycled.means);
  CUevent event = nullptr;
  ASSERT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ASSERT_OK(a.d.EventRecord(event, recycled.means));
  Replace();
  ASSERT_OK(a.d.StreamWaitEvent(recycled.means, event, 0));
  ASSERT_OK(a.d.EventDestroy(event));
  a.Write(x, 12 * kMiB, recycled.means);
  EXPECT_OK(allocator->RecordUse(x, handle));
  Statistics statistics;
  allocator->GetStatistics(0, &statistics);
  EXPECT_EQ(statistics.uses_own_stream, 0U);
  EXPECT_EQ(statistics.uses_recorded, 1U);
  EXPECT_OK(allocator->Free(x));
  EXPECT_OK(allocator->Close());
}

// What a stream did before its capture, which told of it, is not over because a new one with its handle is done.
TEST_P(Recycled, AfterACaptureItTellsNothingOfWhoWasCaptured) {
  for (const bool is_replaced : {false, true}) {
    StreamRef known;
    ASSERT_OK(allocator->Identify(0, handle, &known));
    const CUdeviceptr x = GetAndUse();
    ASSERT_OK(a.d.StreamBeginCapture(recycled.means, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(allocator->RecordUse(x, handle)) << allocator->LastErrorText();
    EXPECT_OK(allocator->Free(x));
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(recycled.means, &graph));
    ASSERT_OK(a.d.GraphDestroy(graph));
    if (is_replaced) Replace();
    const CUdeviceptr small = Get(512, handle);  // seen outside
    if (!is_replaced && GetParam() == Reuse::Poll) {
      EXPECT_OK(a.d.StreamSynchronize(recycled.means));
    }
    const CUdeviceptr y = Get(12 * kMiB, t);
    EXPECT_EQ(y == x, !is_replaced);
    a.Write(y, 12 * kMiB, t);
    EXPECT_OK(allocator->Free(y));
    EXPECT_OK(allocator->Free(small));
    EXPECT_OK(allocator->EmptyCache());
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    EXPECT_EQ(statistics.reserved_bytes[0].current, 0);
  }
  EXPECT_OK(allocator->Close());
}

// RecordStream's stream is gone when the block is freed, and its handle another's, who knows nothing of the block.
TEST_P(Recycled, RecordStreamIsNotPaidByWhoHasTheHandleAtFree) {
  const CUdeviceptr x = GetAndUse();
  EXPECT_OK(allocator->RecordStream(x, handle));
  Replace();
  EXPECT_EQ(allocator->Free(x), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_NE(std::string(allocator->LastErrorText()).find("is not that stream's any more"), std::string::npos);
  ExpectKeptUntilSynchronised(x);
}

// The same, and the handle's new stream is being captured: its identity cannot be asked then without ending the capture, so whether it is
// captured must be asked first. The block is kept for that capture and for the named stream's next recording, which never comes: nobody
// has it before everything is synchronised.
TEST_P(Recycled, RecordStreamIsNotPaidByACaptureOfWhoHasTheHandle) {
  const CUdeviceptr x = GetAndUse();
  EXPECT_OK(allocator->RecordStream(x, handle));
  Replace();
  ASSERT_OK(a.d.StreamBeginCapture(recycled.means, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(allocator->Free(x)) << allocator->LastErrorText();
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(recycled.means, &graph)) << "its capture goes on";
  ASSERT_OK(a.d.GraphDestroy(graph));
  ExpectKeptUntilSynchronised(x);
}

// Told of its end, the allocator has what it needs; the handle is not asked about at Free.
TEST_P(Recycled, RecordStreamIsPaidByRetireStream) {
  const CUdeviceptr x = GetAndUse();
  EXPECT_OK(allocator->RecordStream(x, handle));
  EXPECT_OK(allocator->RetireStream(0, handle));
  StreamRef retired;
  ASSERT_OK(allocator->Identify(0, handle, &retired));
  const CUdeviceptr z = Get(512, t);
  EXPECT_EQ(allocator->RecordStream(z, retired), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_OK(allocator->Free(z));
  CUevent end = nullptr;
  ASSERT_OK(a.d.EventCreate(&end, CU_EVENT_DISABLE_TIMING));
  ASSERT_OK(a.d.EventRecord(end, recycled.means));
  a.Destroy(recycled.means);
  recycled.means = reinterpret_cast<CUstream>(std::uintptr_t{8});  // whose use would be refused
  EXPECT_OK(allocator->Free(x)) << allocator->LastErrorText();
  const CUdeviceptr y = Get(12 * kMiB, t);
  EXPECT_EQ(y == x, GetParam() == Reuse::Wait) << "who is made to wait may have it";
  a.Write(y, 12 * kMiB, t);
  EXPECT_OK(a.d.EventSynchronize(end));
  EXPECT_OK(a.d.EventDestroy(end));
  EXPECT_OK(allocator->Free(y));
  const CUdeviceptr w = Get(12 * kMiB, t);
  const CUdeviceptr v = Get(12 * kMiB, t);
  EXPECT_TRUE(w == x || v == x);
  EXPECT_OK(allocator->Close());
}

// Handles that are believed for a while, as the plug-in's are. The driver gives a destroyed stream's handle to another one when the
// destroyed one's work is over, not before.
class Believed : public Recycled {
 protected:
  Believed() {
    EXPECT_OK(allocator->Close());
    Options options = {.reuse = GetParam(), .handle_check_interval = 1000};
    const DeviceConfig config;
    EXPECT_OK(Allocator::Create(recycled.ref(), &config, 1, options, &allocator));
  }
  void ReplaceWhenOver() {
    EXPECT_OK(a.d.StreamSynchronize(recycled.means));
    Replace();
  }
};

// The next stream gets what the one before it left, and its use of that is told of: the simulated device sees every access that is not
// ordered behind the one before it.
TEST_P(Believed, TheNextStreamGetsWhatTheOneBeforeItLeft) {
  CUdeviceptr shared = Get(12 * kMiB, t);
  for (int turn = 0; turn < 6; ++turn) {
    const CUdeviceptr x = Get(12 * kMiB, handle);
    a.Write(x, 12 * kMiB, recycled.means);
    EXPECT_OK(allocator->Free(x));
    const CUdeviceptr y = Get(12 * kMiB, handle);
    EXPECT_EQ(y, x);
    a.Write(y, 12 * kMiB, recycled.means);
    // Used by another stream, waited for by this one: what it has waited for is over for the next stream of the handle too.
    a.Order(recycled.means, t);
    a.Write(y, 12 * kMiB, t);
    EXPECT_OK(allocator->RecordUse(y, t)) << allocator->LastErrorText();
    EXPECT_OK(allocator->Free(y));
    const CUdeviceptr z = Get(12 * kMiB, handle);
    a.Write(z, 12 * kMiB, recycled.means);
    // And a block of another stream that it uses.
    a.Order(t, recycled.means);
    a.Write(shared, 12 * kMiB, recycled.means);
    EXPECT_OK(allocator->RecordUse(shared, handle)) << allocator->LastErrorText();
    EXPECT_OK(allocator->Free(shared));
    shared = Get(12 * kMiB, t);
    a.Write(shared, 12 * kMiB, t);
    EXPECT_OK(allocator->Free(z));
    ReplaceWhenOver();
  }
  EXPECT_OK(allocator->Free(shared));
  EXPECT_OK(allocator->EmptyCache());
  EXPECT_OK(a.d.StreamSynchronize(t));
  EXPECT_OK(allocator->Close());
}

// The next stream is captured, told of by a route or by Identify: it gets nothing that the one before it left, and uses in the capture
// stay until that is over.
TEST_P(Believed, TheNextStreamInACaptureIsAskedWhoItIs) {
  for (const bool routed : {false, true}) {
    const CUdeviceptr x = Get(12 * kMiB, handle);
    const CUdeviceptr used = Get(12 * kMiB, t);
    a.Write(used, 12 * kMiB, t);
    EXPECT_OK(allocator->Free(x));
    ReplaceWhenOver();
    PoolId pool;
    ASSERT_OK(allocator->CreatePool({}, &pool));
    if (routed) {
      ASSERT_OK(allocator->BeginAllocateToPool(0, pool, {}));
    }
    ASSERT_OK(a.d.StreamBeginCapture(recycled.means, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (!routed) {
      StreamRef inside;
      ASSERT_OK(allocator->Identify(0, handle, &inside));
    }
    const CUdeviceptr y = Get(12 * kMiB, handle);
    EXPECT_NE(y, x) << "a graph keeps its addresses";
    EXPECT_OK(allocator->RecordUse(used, handle)) << allocator->LastErrorText();
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    EXPECT_EQ(statistics.uses_captured, routed ? 2U : 1U);
    EXPECT_OK(allocator->Free(used));
    const CUdeviceptr other = Get(12 * kMiB, t);
    EXPECT_NE(other, used);
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(recycled.means, &graph)) << "no question ended it";
    ASSERT_OK(a.d.GraphDestroy(graph));
    if (routed) {
      ASSERT_OK(allocator->EndAllocateToPool(0, pool));
    }
    EXPECT_OK(allocator->Free(y));
    EXPECT_OK(allocator->Free(other));
    if (routed) {
      EXPECT_OK(allocator->ReleasePool(pool));
    }
    EXPECT_OK(allocator->ReleasePool(pool));
    EXPECT_OK(allocator->EmptyCache());
  }
  EXPECT_OK(allocator->Close());
}

INSTANTIATE_TEST_SUITE_P(All, Believed, testing::Values(Reuse::Poll, Reuse::Wait),
                         [](const testing::TestParamInfo<Reuse>& chosen) { return chosen.param == Reuse::Poll ? "Poll" : "Wait"; });
INSTANTIATE_TEST_SUITE_P(All, Recycled, testing::Values(Reuse::Poll, Reuse::Wait),
                         [](const testing::TestParamInfo<Reuse>& chosen) { return chosen.param == Reuse::Poll ? "Poll" : "Wait"; });

// Records looked at by each of `count` streams, on average, once a capture of another one is over.
double VisitedAfterACapture(std::size_t count) {
  Allocating a;
  const DeviceConfig config;
  Core core(a.d, Options());
  EXPECT_OK(core.Open(&config, 1));
  StreamRef ref;
  std::vector<CUstream> streams;
  for (std::size_t i = 0; i < count; ++i) {
    streams.push_back(a.Stream());
    EXPECT_OK(core.identities.Identify(0, streams.back(), &ref));
  }
  EXPECT_EQ(core.streams.records_visited(), 0U) << "before any capture";

  const CUstream captured = a.Stream();
  EXPECT_OK(a.d.StreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(core.identities.Identify(0, captured, &ref));
  const StreamRef inside = ref;
  CUgraph graph = nullptr;
  EXPECT_OK(a.d.StreamEndCapture(captured, &graph));
  EXPECT_OK(a.d.GraphDestroy(graph));
  EXPECT_NE(inside.record()->capture.load(), 0U);
  EXPECT_OK(core.identities.Identify(0, captured, &ref));
  EXPECT_EQ(inside.record()->capture.load(), 0U) << "seen outside";

  const std::uint64_t before = core.streams.records_visited();
  for (const CUstream stream : streams) EXPECT_OK(core.identities.Identify(0, stream, &ref));
  const std::uint64_t visited = core.streams.records_visited() - before;
  EXPECT_GE(visited, count) << "its own record";
  std::size_t live = 0;
  EXPECT_OK(core.Close(&live));
  return static_cast<double>(visited) / static_cast<double>(count);
}

// Of two frees of one pointer the later is told by the block's life: the number must not come back while a call is held up.
TEST(Block, ALifeDoesNotComeBackWithin32Bits) {
  std::uint64_t state = kLive;
  for (int i = 0; i < 256; ++i) state += kOneLife << 24;  // 2^32 lives: under two minutes at full rate
  EXPECT_NE(state, kLive);
  EXPECT_EQ(state & kFlagMask, kLive);
}

TEST(Handles, AskingWhoAStreamIsTakesTwoCallsAndNoCurrentContext) {
  Allocating a;
  RefusingDriver counting(a.d, 0, CUDA_ERROR_UNKNOWN);
  std::unique_ptr<Allocator> allocator;
  const DeviceConfig config;
  ASSERT_OK(Allocator::Create(counting.ref(), &config, 1, {}, &allocator));
  CUstream const stream = a.Stream();
  StreamRef first;
  ASSERT_OK(allocator->Identify(0, stream, &first));
  const std::uint64_t before = counting.calls();
  StreamRef again;
  ASSERT_OK(allocator->Identify(0, stream, &again));
  EXPECT_EQ(counting.calls() - before, 2U) << "whether it is captured, and who it is";
  EXPECT_EQ(again.id(), first.id());
  std::thread without_context([&] {
    StreamRef there;
    EXPECT_OK(allocator->Identify(0, stream, &there)) << allocator->LastErrorText();
    EXPECT_EQ(there.id(), first.id());
    CUcontext left = nullptr;
    EXPECT_OK(a.d.CtxGetCurrent(&left));
    EXPECT_EQ(left, nullptr);
  });
  without_context.join();
  EXPECT_OK(allocator->Close());
}

TEST(Handles, ALegacyStreamIsAskedAboutOnce) {
  Allocating a({}, {.devices = 2});
  RefusingDriver counting(a.d, 0, CUDA_ERROR_UNKNOWN);
  std::unique_ptr<Allocator> allocator;
  const DeviceConfig configs[] = {{0, nullptr}, {1, nullptr}};
  ASSERT_OK(Allocator::Create(counting.ref(), configs, 2, {}, &allocator));
  CUdeviceptr x = 0;
  for (const int device : {0, 1}) {
    StreamRef first;
    ASSERT_OK(allocator->Identify(device, nullptr, &first));
    ASSERT_OK(allocator->Allocate(device, 4096, nullptr, &x));
    EXPECT_OK(allocator->Free(x));
    const std::uint64_t before = counting.calls();
    std::thread without_context([&] {
      StreamRef again;
      EXPECT_OK(allocator->Identify(device, CU_STREAM_LEGACY, &again));
      EXPECT_EQ(again.id(), first.id());
      EXPECT_EQ(again.device(), device);
    });
    without_context.join();
    ASSERT_OK(allocator->Allocate(device, 4096, nullptr, &x));
    EXPECT_EQ(counting.calls() - before, 0U);
    EXPECT_OK(allocator->Free(x));
  }
  ASSERT_OK(allocator->RetireStream(0, nullptr));
  const std::uint64_t before = counting.calls();
  StreamRef retired;
  EXPECT_OK(allocator->Identify(0, nullptr, &retired));
  EXPECT_GT(counting.calls(), before);
  EXPECT_OK(allocator->Close());
}

TEST(Handles, AfterACaptureAStreamLooksAtItsOwnRecordsOnly) {
  EXPECT_LT(VisitedAfterACapture(8), 2.0);
  EXPECT_LT(VisitedAfterACapture(512), 2.0);
}

}  // namespace
}  // namespace cuaudit::alloc::recycled_test
