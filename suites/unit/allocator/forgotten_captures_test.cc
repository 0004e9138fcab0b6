// SPDX-License-Identifier: MIT
// Captures at their ends: a stream that goes after its capture, and random work in and out of many captures.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <iterator>
#include <random>
#include <string>

#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/passing_driver.h"

namespace cuaudit::alloc::forgotten_captures_test {
namespace {

// A stream that is destroyed after its capture and never named again: what it keeps from being released is given back as soon as anything
// tells that the capture is over, and counted until then.

class Forgotten : public testing::Test {
 protected:
  Forgotten() {
    Options options = {.cross_stream = CrossStream::Ready};
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

// Random work in and out of captures that were announced, through StreamRefs from before, handles, and StreamRefs made in them; each graph
// runs on a stream of its own, beside everything else. Whatever the world calls a misuse is memory given out too early.

class Beside {
 public:
  Beside(std::uint64_t seed, sim::Schedule schedule) : random_(seed), a_(AnyOptions(), Setting{schedule, 1024 * kMiB, 1, "h200"}) {
    for (int i = 0; i < kStreams; ++i) {
      s_[i] = a_.Stream();
      before_[i] = a_.Ref(s_[i]);
    }
    u_ = a_.Stream();
  }
  ~Beside() {
    if (origin_ >= 0) End();
    for (const CUstream stream : a_.streams) EXPECT_OK(a_.d.StreamSynchronize(stream));
    for (const CUgraphExec exec : execs_) EXPECT_OK(a_.d.GraphExecDestroy(exec));
    for (const Live& block : live_) a_.Drop(block.address);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  void Step() {
    const int i = Below(kStreams);
    const int what = Below(20);
    if (what < 8) return Allocate(i);
    if (what < 13) return FreeAny();
    if (what < 15) return UseAny(i);
    if (what == 15) return origin_ >= 0 ? Fork(i) : Begin(i);
    if (what == 16) return origin_ >= 0 ? End() : Begin(i);
    if (what < 19) return Launch();
    if (origin_ >= 0) return;
    EXPECT_OK(a_.d.StreamSynchronize(s_[i]));
  }
  std::size_t misuses() const { return a_.misuse.size(); }
  std::size_t launches = 0, captures = 0, moved = 0, uses = 0;

 private:
  static constexpr int kStreams = 3;
  struct Live {
    CUdeviceptr address;
    std::size_t bytes;
    int owner;
    bool captured;
  };

  int Below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  Options AnyOptions() {
    Options options;
    options.reuse = Below(2) == 0 ? Reuse::Poll : Reuse::Wait;
    options.cross_stream = Below(2) == 0 ? CrossStream::Never : CrossStream::Ready;
    options.thread_cache = Below(4) != 0;
    options.capture_reuse_by_topology = Below(3) != 0;
    return options;
  }
  void Allocate(int i) {
    static constexpr std::size_t kBytes[] = {4 * kKiB, 300 * kKiB, 3 * kMiB, 12 * kMiB};
    const std::size_t bytes = kBytes[Below(static_cast<int>(std::size(kBytes)))];
    if (live_.size() == 24) return;
    CUdeviceptr address = 0;
    const int how = Below(3);
    const CUresult result = how == 0   ? a_->Allocate(0, bytes, s_[i], &address)
                            : how == 1 ? a_->Allocate(bytes, before_[i], &address)
                                       : a_->Allocate(bytes, a_.Ref(s_[i]), &address);
    ASSERT_EQ(result, CUDA_SUCCESS) << a_.LastText();
    moved += inside_[i] && how == 1;
    a_.Write(address, bytes, s_[i]);
    live_.push_back({address, bytes, i, inside_[i]});
  }
  void Free(std::size_t at) {
    a_.Drop(live_[at].address);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void FreeAny() {
    if (!live_.empty()) Free(static_cast<std::size_t>(Below(static_cast<int>(live_.size()))));
  }
  // By another stream, on the same side of the capture.
  void UseAny(int user) {
    if (live_.empty()) return;
    const Live& block = live_[static_cast<std::size_t>(Below(static_cast<int>(live_.size())))];
    if (user == block.owner || inside_[user] != block.captured || inside_[block.owner] != block.captured) return;
    a_.Order(s_[block.owner], s_[user]);
    if (block.bytes < kMiB) a_.Write(block.address, block.bytes, s_[user]);
    EXPECT_OK(Below(2) == 0 ? a_->RecordUse(block.address, before_[user]) : a_->RecordUse(block.address, s_[user])) << a_.LastText();
    ++uses;
    // Later uses of the block are behind this one.
    if (block.bytes < kMiB) a_.Order(s_[user], s_[block.owner]);
  }
  void Begin(int i) {
    if (captures == 4) return;
    ++captures;
    ASSERT_OK(a_.d.StreamBeginCapture(s_[i], CU_STREAM_CAPTURE_MODE_RELAXED));
    origin_ = i;
    inside_[i] = true;
    EXPECT_NE(a_.Ref(s_[i]), before_[i]);
  }
  void Fork(int i) {
    if (inside_[i]) return;
    a_.Order(s_[origin_], s_[i]);
    inside_[i] = true;
    EXPECT_NE(a_.Ref(s_[i]), before_[i]);
  }
  void End() {
    for (std::size_t at = live_.size(); at-- != 0;) {
      if (live_[at].captured) Free(at);
    }
    for (int i = 0; i < kStreams; ++i) {
      if (inside_[i] && i != origin_) a_.Order(s_[i], s_[origin_]);
    }
    CUgraph graph = nullptr;
    EXPECT_OK(a_.d.StreamEndCapture(s_[origin_], &graph));
    execs_.push_back(nullptr);
    EXPECT_OK(a_.d.GraphInstantiateWithFlags(&execs_.back(), graph, 0));
    EXPECT_OK(a_.d.GraphDestroy(graph));
    std::fill(std::begin(inside_), std::end(inside_), false);
    origin_ = -1;
  }
  void Launch() {
    if (execs_.empty()) return;
    EXPECT_OK(a_.d.GraphLaunch(execs_[static_cast<std::size_t>(Below(static_cast<int>(execs_.size())))], u_));
    ++launches;
  }

  std::mt19937_64 random_;
  Allocating a_;
  CUstream s_[kStreams] = {};
  StreamRef before_[kStreams];
  CUstream u_ = nullptr;
  bool inside_[kStreams] = {};
  int origin_ = -1;
  std::vector<Live> live_;
  std::vector<CUgraphExec> execs_;
};

class RandomCaptures : public testing::TestWithParam<sim::Schedule> {};

TEST_P(RandomCaptures, AreKeptApartFromWhatRunsBesideThem) {
  std::size_t launches = 0;
  std::size_t moved = 0;
  std::size_t uses = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Beside one(seed, GetParam());
    for (int i = 0; i < 120; ++i) {
      one.Step();
      ASSERT_EQ(one.misuses(), 0U) << "seed " << seed << ", step " << i;
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << i;
    }
    launches += one.launches;
    moved += one.moved;
    uses += one.uses;
  }
  EXPECT_GT(launches, 100U) << "or little was tested";
  EXPECT_GT(moved, 50U);
  EXPECT_GT(uses, 50U);
}

INSTANTIATE_TEST_SUITE_P(All, RandomCaptures, testing::ValuesIn(kSchedules), NameOf);

// In a primary context it is never captured, but the allocator cannot know that of one that was given.
TEST(NullStream, OfAContextThatWasGivenIsAskedAboutEachTime) {
  Allocating a;
  RefusingDriver counting(a.d, 0, CUDA_ERROR_UNKNOWN);
  std::unique_ptr<Allocator> allocator;
  const DeviceConfig config{0, a.contexts[0]};
  ASSERT_OK(Allocator::Create(counting.ref(), &config, 1, {}, &allocator));
  StreamRef stream;
  ASSERT_OK(allocator->Identify(0, nullptr, &stream));
  const std::uint64_t before = counting.calls();
  ASSERT_OK(allocator->Identify(0, nullptr, &stream));
  EXPECT_GT(counting.calls(), before);

  CUstream blocking = nullptr;
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamCreate(&blocking, CU_STREAM_DEFAULT));
  ASSERT_OK(a.d.StreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr x = 0;
  StreamRef beside;
  EXPECT_OK(allocator->Identify(0, nullptr, &beside));
  EXPECT_EQ(beside.id(), stream.id());
  EXPECT_OK(allocator->Allocate(4 * kKiB, beside, &x));
  EXPECT_OK(allocator->Free(x));
  EXPECT_OK(a.d.StreamEndCapture(blocking, &graph));  // nothing ended it
  EXPECT_OK(a.d.GraphDestroy(graph));
  EXPECT_OK(a.d.StreamDestroy(blocking));
  EXPECT_OK(allocator->Close());
}

// A green context's null stream is its own, and can be captured (contract question green_stream.standard_captured).
TEST(NullStream, OfAGreenContextMayBeCaptured) {
  for (const CUstream null : {CUstream{}, CU_STREAM_LEGACY}) {
    const CUstream other = null == nullptr ? CU_STREAM_LEGACY : nullptr;  // another name of it
    Allocating a;
    CUdevResource all = {};
    CUdevResourceDesc resources = nullptr;
    CUgreenCtx green = nullptr;
    DeviceConfig config;
    ASSERT_OK(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    ASSERT_OK(a.d.DevResourceGenerateDesc(&resources, &all, 1));
    ASSERT_OK(a.d.GreenCtxCreate(&green, resources, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    ASSERT_OK(a.d.CtxFromGreenCtx(&config.context, green));
    std::unique_ptr<Allocator> allocator;
    ASSERT_OK(Allocator::Create(a.d, &config, 1, {}, &allocator));
    ASSERT_OK(a.d.CtxPushCurrent(config.context));
    StreamRef outside, inside, after;
    CUdeviceptr cached = 0, captured = 0;
    ASSERT_OK(allocator->Identify(0, null, &outside));
    ASSERT_OK(allocator->Allocate(4 * kKiB, outside, &cached));
    ASSERT_OK(allocator->Free(cached));

    ASSERT_OK(a.d.StreamBeginCapture(null, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(allocator->Identify(0, other, &inside)) << allocator->LastErrorText();
    EXPECT_NE(inside.id(), outside.id());
    EXPECT_OK(allocator->Allocate(4 * kKiB, outside, &captured)) << allocator->LastErrorText();  // stands for `inside` by now
    EXPECT_NE(captured, cached);
    EXPECT_OK(a.d.MemsetD8Async(captured, 7, 4 * kKiB, null));
    CUdeviceptr by_handle = 0;
    EXPECT_OK(allocator->Allocate(0, 4 * kKiB, other, &by_handle));
    EXPECT_OK(allocator->Free(by_handle));
    CUgraph graph = nullptr;
    EXPECT_OK(a.d.StreamEndCapture(null, &graph));
    EXPECT_OK(a.d.GraphDestroy(graph));
    EXPECT_OK(allocator->Free(captured));

    EXPECT_OK(allocator->Identify(0, null, &after));
    EXPECT_EQ(after.id(), outside.id());
    CUdeviceptr refused = 0;
    EXPECT_EQ(allocator->Allocate(4 * kKiB, inside, &refused), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_OK(allocator->Close());
    EXPECT_OK(a.d.CtxPopCurrent(&config.context));
    EXPECT_OK(a.d.GreenCtxDestroy(green));
  }
}

}  // namespace
}  // namespace cuaudit::alloc::forgotten_captures_test
