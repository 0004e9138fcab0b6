// SPDX-License-Identifier: MIT
// A stream that is destroyed after its capture and never named again: what it keeps from being released is given back as soon as anything
// tells that the capture is over, and counted until then.
#define __CUDA_API_VERSION_INTERNAL
#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/recycled_handle.h"

namespace cuaudit::alloc::forgotten_captures_test {
namespace {

class Forgotten : public testing::Test {
 protected:
  Forgotten() {
    Options options;
    options.cross_stream = CrossStream::Ready;
    const DeviceConfig config;
    EXPECT_OK(Allocator::Create(recycled.ref(), &config, 1, options, &allocator));
    recycled.means = a.Stream();
    x = Get(4 * kKiB, t);
    // Memory that only waiting for the whole context tells to be free.
    EXPECT_OK(allocator->Free(Get(kLent, u)));
    EXPECT_OK(allocator->RetireStream(0, u));
    EXPECT_OK(a.d.StreamSynchronize(u));
    const CUdeviceptr lent = Get(kLent, t);
    a.Write(lent, kLent, t);
    EXPECT_OK(allocator->Free(lent));
  }
  ~Forgotten() override { EXPECT_OK(allocator->Close()); }

  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(0, bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  StreamRef Ref(CUstream stream) {
    StreamRef ref;
    EXPECT_OK(allocator->Identify(0, stream, &ref)) << allocator->LastErrorText();
    return ref;
  }
  Statistics Stats() {
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    return statistics;
  }
  void Begin() { ASSERT_OK(a.d.StreamBeginCapture(recycled.means, CU_STREAM_CAPTURE_MODE_RELAXED)); }
  void End() {
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(recycled.means, &graph));
    ASSERT_OK(a.d.GraphDestroy(graph));
  }
  // The stream behind the handle ends; the next one has its handle.
  void Replace() {
    a.Destroy(recycled.means);
    recycled.means = a.Stream();
  }
  void ExpectKept(std::uint64_t streams) {
    const std::uint64_t left = Stats().left_for_captures;
    EXPECT_OK(allocator->EmptyCache()) << allocator->LastErrorText();
    EXPECT_EQ(Stats().reserved_bytes[0].current, static_cast<std::int64_t>(kLent + 2 * kMiB));
    EXPECT_EQ(Stats().streams_in_capture, streams);
    EXPECT_GT(Stats().left_for_captures, left);
  }
  void ExpectReleased() {
    EXPECT_OK(allocator->Free(x)) << allocator->LastErrorText();
    EXPECT_OK(allocator->EmptyCache()) << allocator->LastErrorText();
    EXPECT_EQ(Stats().streams_in_capture, 0U);
    EXPECT_EQ(Stats().reserved_bytes[0].current, 0);
  }

  static constexpr std::size_t kLent = 12 * kMiB;
  Allocating a;
  RecycledHandle recycled{a.d};
  CUstream handle = recycled.handle();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
  CUdeviceptr x = 0;  // live, of t
  std::unique_ptr<Allocator> allocator;
};

TEST_F(Forgotten, IsCountedUntilItsHandleIsSeenOutside) {
  EXPECT_EQ(Stats().left_for_captures, 0U);
  Begin();
  (void)Ref(handle);
  ExpectKept(1);
  End();
  Replace();
  ExpectKept(1);  // nobody may ask about the handle, which could be nobody's
  (void)Ref(handle);
  ExpectReleased();
}

// It was known before, and a use told of the capture.
TEST_F(Forgotten, IsFoundUnderTheNameItHasOutside) {
  const StreamRef outside = Ref(handle);
  Begin();
  EXPECT_OK(allocator->RecordUse(x, outside)) << allocator->LastErrorText();
  EXPECT_EQ(Stats().uses_captured, 1U);
  End();
  Replace();
  ExpectKept(1);
  EXPECT_NE(Ref(handle), outside);
  ExpectReleased();
}

// Of two streams of a capture that are both gone one handle is seen again, in another capture.
TEST_F(Forgotten, IsOverForAllItsStreamsWhenAHandleOfItIsInAnother) {
  CUstream fork = a.Stream();
  CUevent event = nullptr;
  ASSERT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Begin();
  (void)Ref(handle);
  ASSERT_OK(a.d.EventRecord(event, recycled.means));
  ASSERT_OK(a.d.StreamWaitEvent(fork, event, 0));
  (void)Ref(fork);
  ExpectKept(2);
  End();
  ASSERT_OK(a.d.EventDestroy(event));
  a.Destroy(fork);
  Replace();
  Begin();
  (void)Ref(handle);
  ExpectKept(1);  // the new one
  End();
  (void)Ref(handle);
  ExpectReleased();
}

// All that the allocator knows of the capture is an event of it, which took a stream of its own along: that one it asks.
TEST_F(Forgotten, OfAnEventIsFoundAtOnce) {
  CUevent event = nullptr;
  ASSERT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Begin();
  ASSERT_OK(a.d.EventRecord(event, recycled.means));
  EXPECT_OK(allocator->KeepAliveUntil(x, event)) << allocator->LastErrorText();
  ExpectKept(1);
  End();
  ASSERT_OK(a.d.EventDestroy(event));
  ExpectReleased();
}

}  // namespace
}  // namespace cuaudit::alloc::forgotten_captures_test
