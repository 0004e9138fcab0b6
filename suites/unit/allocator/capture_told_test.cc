// SPDX-License-Identifier: MIT
// Captures and StreamRefs from outside them: what the allocator was told of is kept apart, what it was not told of is refused; and a
// process may capture all day.
#include <malloc.h>

#include <string>
#include <thread>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::capture_told_test {
namespace {

struct Case {
  sim::Schedule schedule;
  Reuse reuse;
  bool large;
};

class Told : public testing::TestWithParam<Case> {
 protected:
  static Options With(std::uint32_t interval, bool trusting = false) {
    Options options;
    options.reuse = GetParam().reuse;
    options.capture_check_interval = interval;
    options.trust_stream_handles = trusting;
    return options;
  }
  static Setting On() { return {.schedule = GetParam().schedule}; }

  // Eager work on memory that goes back to the cache; then a capture begins.
  void Begin(Allocating* a) {
    s_ = a->Stream();
    u_ = a->Stream();
    outside_ = a->Ref(s_);
    p_ = Get(a, outside_);
    a->Write(p_, bytes_, s_);
    a->Drop(p_);
    ASSERT_OK(a->d.StreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  }
  CUdeviceptr Get(Allocating* a, StreamRef ref) const {
    CUdeviceptr address = 0;
    EXPECT_OK((*a)->Allocate(bytes_, ref, &address)) << a->LastText();
    return address;
  }
  // The graph runs on another stream, beside what this one did and does.
  void EndAndLaunch(Allocating* a) {
    CUgraph graph = nullptr;
    ASSERT_OK(a->d.StreamEndCapture(s_, &graph));
    ASSERT_OK(a->d.GraphInstantiateWithFlags(&exec_, graph, 0));
    ASSERT_OK(a->d.GraphDestroy(graph));
    ASSERT_OK(a->d.GraphLaunch(exec_, u_));
  }
  void Finish(Allocating* a) const {
    EXPECT_OK(a->d.StreamSynchronize(s_));
    EXPECT_OK(a->d.StreamSynchronize(u_));
    EXPECT_OK(a->d.GraphExecDestroy(exec_));
  }
  void EndUnused(Allocating* a) const {
    CUgraph graph = nullptr;
    ASSERT_OK(a->d.StreamEndCapture(s_, &graph));
    ASSERT_OK(a->d.GraphDestroy(graph));
  }

  const std::size_t bytes_ = GetParam().large ? 12 * kMiB : 4 * kKiB;
  CUstream s_ = nullptr;
  CUstream u_ = nullptr;
  StreamRef outside_;
  CUdeviceptr p_ = 0;
  CUgraphExec exec_ = nullptr;
};

TEST_P(Told, ByIdentifyInIt) {
  Allocating a(With(1000), On());
  Begin(&a);
  EXPECT_NE(a.Ref(s_), outside_);
  const CUdeviceptr q = Get(&a, outside_);
  EXPECT_NE(q, p_);
  a.Write(q, bytes_, s_);
  a.Drop(q);
  EXPECT_EQ(Get(&a, outside_), q) << "what the capture freed serves it again";
  a.Drop(q);
  EndAndLaunch(&a);
  const CUdeviceptr e = Get(&a, outside_);
  EXPECT_EQ(e, p_) << "the stream's own again";
  a.Write(e, bytes_, s_);
  const CUdeviceptr f = Get(&a, outside_);
  EXPECT_NE(f, q) << "the graph has it";
  a.Write(f, bytes_, s_);
  Finish(&a);
}

TEST_P(Told, ByARoute) {
  for (const bool trusting : {false, true}) {
    Allocating a(With(1000, trusting), On());
    const PoolId pool = a.Pool();
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));  // before the eager work, which so comes from the pool as well
    Begin(&a);
    const CUdeviceptr q = trusting ? a.Get(bytes_, s_) : Get(&a, outside_);
    EXPECT_NE(q, p_);
    a.Write(q, bytes_, s_);
    a.Drop(q);
    EndAndLaunch(&a);
    const CUdeviceptr e = Get(&a, outside_);
    EXPECT_EQ(e, p_);
    a.Write(e, bytes_, s_);
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    Finish(&a);
    ASSERT_OK(a->ReleasePool(pool));
  }
}

// A route of other streams is enough: while there is one, each allocation asks.
TEST_P(Told, ByARouteOfOthers) {
  Allocating a(With(1000), On());
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {.applies = [](void*, StreamRef) noexcept { return false; }}));
  Begin(&a);
  const CUdeviceptr q = Get(&a, outside_);
  EXPECT_NE(q, p_);
  a.Write(q, bytes_, s_);
  a.Drop(q);
  EndAndLaunch(&a);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  const CUdeviceptr e = Get(&a, outside_);
  a.Write(e, bytes_, s_);
  const CUdeviceptr f = Get(&a, outside_);
  a.Write(f, bytes_, s_);
  EXPECT_NE(e, q);
  EXPECT_NE(f, q);
  Finish(&a);
}

TEST_P(Told, OrItIsRefused) {
  for (const bool trusting : {false, true}) {
    Allocating a(With(1, trusting), On());
    Begin(&a);
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr q = 1;
      EXPECT_EQ(trusting ? a->Allocate(0, bytes_, s_, &q) : a->Allocate(bytes_, outside_, &q), CUDA_ERROR_ILLEGAL_STATE);
      EXPECT_EQ(q, 0U);
      EXPECT_NE(a.LastText().find("is being captured, and the allocator was not told"), std::string::npos) << a.LastText();
    }
    EndUnused(&a);
    EXPECT_EQ(Get(&a, outside_), p_) << "outside all is as before";
  }
}

// With nothing cached it is seen at once; else after as many allocations as the option says, of any one stream.
TEST_P(Told, OrItIsRefusedSoon) {
  Allocating a(With(Options().capture_check_interval), On());
  Begin(&a);
  CUdeviceptr q = 0;
  EXPECT_EQ(a->Allocate(2 * bytes_, outside_, &q), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(a->Allocate(bytes_, outside_, &q), CUDA_ERROR_ILLEGAL_STATE) << "known from then on";
  EndUnused(&a);
  a.Drop(Get(&a, outside_));
  ASSERT_OK(a.d.StreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUresult result = CUDA_SUCCESS;
  std::uint32_t given = 0;
  for (; result == CUDA_SUCCESS && given <= a->options().capture_check_interval; ++given) {
    result = a->Allocate(bytes_, outside_, &q);
    if (result == CUDA_SUCCESS) a.Drop(q);
  }
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_STATE);
  EndUnused(&a);
}

TEST_P(Told, OrItIsRefusedSoonHoweverOftenAnotherStreamIsAsked) {
  Allocating a(With(Options().capture_check_interval), On());
  const StreamRef other = a.Ref(a.Stream());
  Begin(&a);
  CUresult result = CUDA_SUCCESS;
  std::vector<CUdeviceptr> of_other;
  for (std::uint32_t given = 0; result == CUDA_SUCCESS && given <= a->options().capture_check_interval; ++given) {
    of_other.push_back(0);
    EXPECT_OK(a->Allocate(512 * (given + 1), other, &of_other.back()));  // never of a size that is kept
    CUdeviceptr q = 0;
    result = a->Allocate(bytes_, outside_, &q);
    if (result == CUDA_SUCCESS) a.Drop(q);
  }
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_STATE);
  for (const CUdeviceptr one : of_other) a.Drop(one);
  EndUnused(&a);
}

TEST_P(Told, ARefMadeInOneIsOfNoUseOutside) {
  Allocating a(With(1000), On());
  Begin(&a);
  const StreamRef inside = a.Ref(s_);
  const CUdeviceptr q = Get(&a, inside);
  a.Write(q, bytes_, s_);
  a.Drop(q);
  EndAndLaunch(&a);
  CUdeviceptr e = 0;
  EXPECT_EQ(a->Allocate(bytes_, inside, &e), CUDA_ERROR_ILLEGAL_STATE) << "the graph runs, and has its memory";
  EXPECT_NE(a.LastText().find("made in a capture"), std::string::npos) << a.LastText();
  ASSERT_OK(a.d.StreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(a->Allocate(bytes_, inside, &e), CUDA_ERROR_ILLEGAL_STATE) << "nor in another capture that nobody told of";
  EXPECT_NE(a.Ref(s_), inside);
  e = Get(&a, inside);  // what it is in this capture
  EXPECT_NE(e, q);
  a.Write(e, bytes_, s_);
  EndUnused(&a);
  Finish(&a);
}

// The stream is told of by another name than its memory has in the capture: it is the same stream.
TEST_P(Told, ItsOwnUseIsItsOwnUnderEitherName) {
  Allocating a(With(1000), On());
  Begin(&a);
  (void)a.Ref(s_);
  const CUdeviceptr q = Get(&a, outside_);
  a.Write(q, bytes_, s_);
  EXPECT_OK(a->RecordUse(q, outside_)) << a.LastText();
  EXPECT_OK(a->RecordStream(q, outside_)) << a.LastText();
  EXPECT_EQ(a.Stats().uses_captured, 0U);
  EXPECT_EQ(a.Stats().uses_own_stream, 1U);
  a.Drop(q);
  EXPECT_EQ(Get(&a, outside_), q);
  EndUnused(&a);
}

// The default streams of two threads have one handle, and in a capture each is itself all the same.
TEST_P(Told, ThreadsDefaultStreamsInOneCaptureAreTwo) {
  Allocating a(With(1), On());
  CUevent fork = nullptr;
  CUevent join = nullptr;
  ASSERT_OK(a.d.EventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_OK(a.d.EventCreate(&join, CU_EVENT_DISABLE_TIMING));
  ASSERT_OK(a.d.StreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  const StreamRef mine = a.Ref(CU_STREAM_PER_THREAD);
  ASSERT_OK(a.d.EventRecord(fork, CU_STREAM_PER_THREAD));
  StreamRef theirs;
  std::thread([&] {
    EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
    EXPECT_OK(a.d.StreamWaitEvent(CU_STREAM_PER_THREAD, fork, 0));
    theirs = a.Ref(CU_STREAM_PER_THREAD);
    EXPECT_OK(a.d.EventRecord(join, CU_STREAM_PER_THREAD));
  }).join();
  EXPECT_NE(mine, theirs);
  ASSERT_OK(a.d.StreamWaitEvent(CU_STREAM_PER_THREAD, join, 0));
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(CU_STREAM_PER_THREAD, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
  ASSERT_OK(a.d.EventDestroy(fork));
  ASSERT_OK(a.d.EventDestroy(join));
}

TEST_P(Told, AThreadsDefaultStreamIsAskedOnItsThread) {
  Allocating a(With(1), On());
  const StreamRef outside = a.Ref(CU_STREAM_PER_THREAD);
  ASSERT_OK(a.d.StreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr q = 0;
  EXPECT_EQ(a->Allocate(bytes_, outside, &q), CUDA_ERROR_ILLEGAL_STATE);
  const StreamRef inside = a.Ref(CU_STREAM_PER_THREAD);
  EXPECT_NE(inside, outside);
  EXPECT_OK(a->Allocate(bytes_, outside, &q)) << a.LastText();
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(CU_STREAM_PER_THREAD, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
}

constexpr Case kCases[] = {{sim::Schedule::Lazy, Reuse::Poll, false},        {sim::Schedule::Lazy, Reuse::Wait, true},
                           {sim::Schedule::Random, Reuse::Poll, true},       {sim::Schedule::Random, Reuse::Wait, false},
                           {sim::Schedule::Adversarial, Reuse::Poll, false}, {sim::Schedule::Adversarial, Reuse::Wait, true}};
std::string NameOfCase(const testing::TestParamInfo<Case>& chosen) {
  constexpr const char* kNames[] = {"Lazy", "Fifo", "Random", "Adversarial"};
  return std::string(kNames[static_cast<std::size_t>(chosen.param.schedule)]) + (chosen.param.reuse == Reuse::Poll ? "Poll" : "Wait") +
         (chosen.param.large ? "Large" : "Small");
}
INSTANTIATE_TEST_SUITE_P(All, Told, testing::ValuesIn(kCases), NameOfCase);

// Only the whole context tells when a lent block's stream is through, and waiting for that would end the capture.
TEST(Told, AndNothingThatIsEmptiedMeanwhileEndsIt) {
  Allocating a({.cross_stream = CrossStream::Ready});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
  a.Drop(a.Get(12 * kMiB, u));
  EXPECT_OK(a->RetireStream(0, u));
  EXPECT_OK(a.d.StreamSynchronize(u));
  const CUdeviceptr lent = a.Get(12 * kMiB, t);
  EXPECT_EQ(a.Stats().served_other_ready, 1U);
  a.Write(lent, 12 * kMiB, t);
  a.Drop(lent);
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const StreamRef inside = a.Ref(s);
  EXPECT_OK(a->EmptyCache()) << a.LastText();
  EXPECT_OK(a->Trim(0, 0)) << a.LastText();
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(12 * kMiB));
  CUdeviceptr x = 0;
  EXPECT_OK(a->Allocate(4 * kMiB, inside, &x)) << a.LastText();
  a.Write(x, 4 * kMiB, s);
  ASSERT_OK(a.d.StreamEndCapture(s, &graph));
  ASSERT_OK(a.d.GraphDestroy(graph));
  a.Drop(x);
  EXPECT_NE(a.Ref(s), inside);  // it is seen outside
  EXPECT_OK(a->EmptyCache()) << a.LastText();
  EXPECT_EQ(a.Reserved(), 0);
}

// What is kept of a capture goes when it is over and no block waits for it: a server that captures all day needs no more memory, nor longer
// to find one.
TEST(Captures, ManyOfThemLeaveNothingBehind) {
  Allocating a;
  const CUstream s = a.Stream();
  const CUstream t = a.Stream();
  const PoolId pool = a.Pool();
  const CUdeviceptr x = a.Get(4 * kMiB, t);
  std::size_t early = 0;
  constexpr int kCaptures = 100'000;
  for (int i = 0; i < kCaptures; ++i) {
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const CUdeviceptr y = a.Get(64 * kKiB, s);
    ASSERT_OK(a->RecordUse(x, s));
    ASSERT_OK(a->Free(y));
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(s, &graph));
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    ASSERT_OK(a.d.GraphDestroy(graph));
    if (i == kCaptures / 10) early = mallinfo2().uordblks;
  }
  EXPECT_LT(mallinfo2().uordblks, early + early / 10 + kMiB);
  a.Drop(x);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Stats().active_bytes[0].current, 0) << "all of them are over";
}

// Between two segments of a pool that goes back another thread announces a capture, and begins it: what then takes the whole context stays.
TEST(Told, WhileAPoolGoesBackKeepsItsNextSegment) {
  Options without_cache = {.thread_cache = false};
  struct User {
    explicit User(const Options& chosen) : a(chosen) {}
    Allocating a;
    CUstream captured = a.Stream();
    PoolId announced;
    int releases = 0;
  } user(without_cache);
  Allocating& a = user.a;
  CUstream const s = a.Stream();
  CUstream const t = a.Stream();
  PoolOptions options = {.user = &user};
  options.acquire = [](void* self, int, std::size_t bytes, CUstream, CUdeviceptr* out) noexcept {
    return static_cast<User*>(self)->a.d.MemAlloc(out, bytes);
  };
  options.release = [](void* self, int, CUdeviceptr address, std::size_t) noexcept {
    auto* const to = static_cast<User*>(self);
    const CUresult result = to->a.d.MemFree(address);
    if (++to->releases != 1) return result;
    std::thread([to] {
      EXPECT_OK(to->a->BeginAllocateToPool(0, to->announced, {}));
      EXPECT_OK(to->a.d.StreamBeginCapture(to->captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    }).join();
    return result;
  };
  PoolId pool;
  EXPECT_OK(a->CreatePool({}, &user.announced));
  EXPECT_OK(a->CreatePool(options, &pool));
  EXPECT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(14 * kMiB, s);
  const CUdeviceptr y = a.Get(12 * kMiB, s);
  EXPECT_OK(a->EndAllocateToPool(0, pool));
  const CUdeviceptr z = a.Get(12 * kMiB, t);
  a.Drop(x);
  (void)a.Look();             // the allocator takes note of it
  a.Use(z, 12 * kMiB, t, s);  // a recording on s tells when x is idle, and none when y is
  a.Drop(y);
  EXPECT_OK(a->ReleasePool(pool));
  EXPECT_OK(a->EmptyCache(pool)) << a.LastText();
  EXPECT_EQ(user.releases, 1);
  CUgraph graph = nullptr;
  EXPECT_OK(a.d.StreamEndCapture(user.captured, &graph));
  EXPECT_OK(a.d.GraphDestroy(graph));
  EXPECT_OK(a->EndAllocateToPool(0, user.announced));
  EXPECT_OK(a->EmptyCache(pool)) << a.LastText();
  EXPECT_EQ(user.releases, 2);
  EXPECT_OK(a->ReleasePool(user.announced));
  a.Drop(z);
}

}  // namespace
}  // namespace cuaudit::alloc::capture_told_test
