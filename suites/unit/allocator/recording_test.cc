// SPDX-License-Identifier: MIT
// Recordings and writes of streams: which driver calls a RecordUse makes, and what is left of those that fail, or are done though they
// failed.
#include <array>
#include <utility>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::recording_test {
namespace {

using driver::CallId;

TEST_F(Releases, ARecordingThatFailedEndsNothing) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    Make({.reuse = reuse});
    StreamRef user;
    ASSERT_OK(allocator->Identify(0, t, &user));
    const CUdeviceptr x = Get(12 * kMiB, s);
    a.Write(x, 12 * kMiB, s);
    a.Order(s, t);
    a.Write(x, 12 * kMiB, t);
    ASSERT_OK(a.d.StreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(allocator->RecordUse(x, user));
    EXPECT_OK(allocator->Free(x));
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(t, &graph));
    ASSERT_OK(a.d.GraphDestroy(graph));
    failing.Fail(CallId::EventRecord, Failing::Refused);
    CUdeviceptr small = 0;
    EXPECT_EQ(allocator->Allocate(512, user, &small), CUDA_ERROR_INVALID_CONTEXT);
    const CUdeviceptr y = Get(12 * kMiB, s);
    EXPECT_NE(y, x);
    a.Write(y, 12 * kMiB, s);
    ASSERT_OK(allocator->Allocate(512, user, &small));  // now it is recorded
    EXPECT_OK(a.d.StreamSynchronize(t));
    const CUdeviceptr z = Get(12 * kMiB, s);
    EXPECT_EQ(z, x);
    a.Write(z, 12 * kMiB, s);
    for (const CUdeviceptr one : {y, z, small}) EXPECT_OK(allocator->Free(one));
    EXPECT_OK(allocator->Close());
    allocator.reset();
  }
}

// What it wrote says nothing of the recording that has its number next.
TEST_F(Releases, AWriteThatWasDoneThoughItFailedEndsNothingElse) {
  Options options;
  options.completion = Completion::StreamWrites;
  options.reuse = Reuse::Poll;
  Make(options);
  const CUdeviceptr x = Get(12 * kMiB, s);
  failing.code = CUDA_ERROR_UNKNOWN;
  failing.Fail(CallId::StreamWriteValue64_v2, Failing::Done);
  EXPECT_EQ(allocator->RecordUse(x, t), CUDA_ERROR_UNKNOWN);
  EXPECT_OK(a.d.StreamSynchronize(t));
  Gate gate(a.d);
  gate.Hold(t);
  EXPECT_OK(allocator->RecordUse(x, t));
  EXPECT_OK(allocator->Free(x));
  const CUdeviceptr y = Get(12 * kMiB, s);
  EXPECT_NE(y, x);
  gate.Open();
  EXPECT_EQ(Get(12 * kMiB, s), x);
  for (const CUdeviceptr one : {x, y}) EXPECT_OK(allocator->Free(one));
  EXPECT_OK(allocator->Close());
}

// The word may never show the one before it: what is over is seen all the same.
TEST_F(Releases, AWriteThatWasDoneThoughItFailedTellsOfTheOneBefore) {
  Options options;
  options.completion = Completion::StreamWrites;
  options.reuse = Reuse::Poll;
  Make(options);
  const CUdeviceptr x = Get(12 * kMiB, s);
  EXPECT_OK(allocator->RecordUse(x, t));
  failing.code = CUDA_ERROR_UNKNOWN;
  failing.Fail(CallId::StreamWriteValue64_v2, Failing::Done);
  EXPECT_EQ(allocator->RecordUse(x, t), CUDA_ERROR_UNKNOWN);
  EXPECT_OK(a.d.StreamSynchronize(t));
  EXPECT_OK(allocator->Free(x));
  EXPECT_EQ(Get(12 * kMiB, s), x);
  EXPECT_OK(allocator->Free(x));
  EXPECT_OK(allocator->Close());
}

// No recording tells of it, and it comes when the stream gets there.
TEST_F(Releases, CloseWaitsForAWriteThatWasDoneThoughItFailed) {
  Options options;
  options.completion = Completion::StreamWrites;
  options.reuse = Reuse::Poll;
  Make(options);
  failing.code = CUDA_ERROR_UNKNOWN;
  failing.Fail(CallId::StreamWriteValue64_v2, Failing::Done);
  EXPECT_EQ(allocator->RetireStream(0, t), CUDA_ERROR_UNKNOWN);  // with no memory whose release would wait
  EXPECT_EQ(a.Live(driver::Kind::PinnedMemory), 1U);
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(a.Live(driver::Kind::PinnedMemory), 0U);
  EXPECT_TRUE(a.misuse.empty());
}

// Its caller keeps it: memory that it is given back is in use until what it does from then on is over.
TEST_F(Releases, AStreamWhoseRetirementFailedAtTheLastCallIsNotRetired) {
  Options options;
  options.expandable_segments = true;  // cuMemUnmap waits for nothing
  CUcontext other = nullptr;
  CUcontext popped = nullptr;
#if CUDA_VERSION >= 13000
  ASSERT_OK(a.d.CtxCreate(&other, nullptr, 0, 0));
#else
  ASSERT_OK(a.d.CtxCreate(&other, 0, 0));
#endif
  ASSERT_OK(a.d.CtxPopCurrent(&popped));
  for (const Failing how : {Failing::Refused, Failing::Done}) {
    Make(options);
    const CUdeviceptr x = Get(2 * kMiB, t);
    ASSERT_OK(a.d.CtxPushCurrent(other));
    failing.code = CUDA_ERROR_NOT_INITIALIZED;
    failing.Fail(CallId::CtxPopCurrent_v2, how, 2);  // the second try, too
    EXPECT_EQ(allocator->RetireStream(0, t), CUDA_ERROR_NOT_INITIALIZED);
    failing.Fail(CallId::CtxPopCurrent_v2, how, 0);
    for (int entries = how == Failing::Refused ? 2 : 1; entries != 0; --entries) ASSERT_OK(a.d.CtxPopCurrent(&popped));
    a.Write(x, 2 * kMiB, t);
    EXPECT_OK(allocator->RecordStream(x, t));
    EXPECT_OK(allocator->Free(x));
    EXPECT_OK(allocator->EmptyCache());
    EXPECT_EQ(Stats().reserved_bytes[0].current, 0);
    EXPECT_TRUE(a.misuse.empty());
    EXPECT_OK(allocator->RetireStream(0, t));
    EXPECT_OK(allocator->Close());
  }
  EXPECT_OK(a.d.CtxDestroy(other));
}

// The simulated driver with four of its calls watched. One test at a time.
class Watched {
 public:
  explicit Watched(driver::DriverRef next) : table_(*next.table), self_(next.self) {
    Watch<CallId::CtxGetCurrent, CUcontext*>(0);
    Watch<CallId::CtxPushCurrent_v2, CUcontext>(1);
    Watch<CallId::StreamIsCapturing, CUstream, CUstreamCaptureStatus*>(2);
    Watch<CallId::EventRecord, CUevent, CUstream>(3);
  }
  driver::DriverRef ref() { return {&table_, self_}; }

  struct Calls {
    int get_current = 0, push = 0, is_capturing = 0, record = 0;
    bool operator==(const Calls&) const = default;
  };
  static Calls Taken() {
    const Calls calls{made_[0], made_[1], made_[2], made_[3]};
    made_ = {};
    return calls;
  }
  static void RefuseNextRecord(CUresult code) { refusal_ = code; }

 private:
  template <CallId id, typename... P>
  void Watch(std::size_t place) {
    genuine_[place] = table_.entry[driver::Index(id)];
    table_.entry[driver::Index(id)] = reinterpret_cast<driver::Entry>(&Through<id, P...>);
    place_of_[driver::Index(id)] = place;
  }
  template <CallId id, typename... P>
  static CUresult Through(void* self, P... arguments) {
    const std::size_t place = place_of_[driver::Index(id)];
    ++made_[place];
    if (id == CallId::EventRecord && refusal_ != CUDA_SUCCESS) return std::exchange(refusal_, CUDA_SUCCESS);
    return reinterpret_cast<CUresult (*)(void*, P...)>(genuine_[place])(self, arguments...);
  }

  inline static std::array<driver::Entry, 4> genuine_{};
  inline static std::array<int, 4> made_{};
  inline static std::array<std::size_t, driver::kCallCount> place_of_{};
  inline static CUresult refusal_ = CUDA_SUCCESS;
  driver::DriverTable table_;
  void* self_;
};

class RecordCalls : public testing::TestWithParam<Reuse> {
 protected:
  RecordCalls() {
    Options options = {.reuse = GetParam()};
    const DeviceConfig config;
    EXPECT_OK(Allocator::Create(watched_.ref(), &config, 1, options, &allocator_));
    EXPECT_OK(allocator_->Identify(0, s_, &own_));
    EXPECT_OK(allocator_->Identify(0, t_, &user_));
    EXPECT_OK(allocator_->Allocate(4 * kMiB, own_, &block_));
    // Makes events, and has them back.
    for (int i = 0; i < 4; ++i) EXPECT_OK(allocator_->RecordUse(block_, user_));
    EXPECT_OK(world_.d.StreamSynchronize(t_));
    EXPECT_OK(allocator_->Free(block_));
    EXPECT_OK(allocator_->Allocate(4 * kMiB, own_, &block_));
    (void)Watched::Taken();
  }
  ~RecordCalls() override { EXPECT_OK(allocator_->Close(nullptr)); }

  Allocating world_;
  Watched watched_{world_.d};
  std::unique_ptr<Allocator> allocator_;
  CUstream s_ = world_.Stream();
  CUstream t_ = world_.Stream();
  StreamRef own_, user_;
  CUdeviceptr block_ = 0;
};

TEST_P(RecordCalls, AskOnlyWhetherTheStreamIsCaptured) {
  EXPECT_OK(allocator_->RecordUse(block_, user_));
  EXPECT_EQ(Watched::Taken(), (Watched::Calls{0, 0, 1, 1}));
  EXPECT_OK(allocator_->RecordUse(block_, own_));
  EXPECT_EQ(Watched::Taken(), (Watched::Calls{0, 0, 0, 0}));
  EXPECT_OK(allocator_->Free(block_));
}

// Asking who the stream is tells that it is in no capture, too; and in one it is still seen.
TEST_P(RecordCalls, ByHandleAskForACaptureOnce) {
  EXPECT_OK(allocator_->RecordUse(block_, t_));
  EXPECT_EQ(Watched::Taken(), (Watched::Calls{0, 0, 1, 1}));
  ASSERT_OK(world_.d.StreamBeginCapture(t_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(allocator_->RecordUse(block_, t_));
  CUgraph graph = nullptr;
  ASSERT_OK(world_.d.StreamEndCapture(t_, &graph)) << "no question ended it";
  ASSERT_OK(world_.d.GraphDestroy(graph));
  Statistics statistics;
  allocator_->GetStatistics(0, &statistics);
  EXPECT_EQ(statistics.uses_captured, 1U);
  EXPECT_OK(allocator_->RecordUse(block_, t_));
  EXPECT_OK(allocator_->Free(block_));
}

TEST_P(RecordCalls, NeedNoCurrentContext) {
  CUcontext current = nullptr;
  ASSERT_OK(world_.d.CtxPopCurrent(&current));
  EXPECT_OK(allocator_->RecordUse(block_, user_));
  EXPECT_EQ(Watched::Taken(), (Watched::Calls{0, 0, 1, 1}));
  ASSERT_OK(world_.d.CtxPushCurrent(current));
  EXPECT_OK(allocator_->Free(block_));
}

TEST_P(RecordCalls, MakeAContextCurrentWhereTheDriverInsistsAndThereIsNone) {
  CUcontext current = nullptr;
  ASSERT_OK(world_.d.CtxPopCurrent(&current));
  Watched::RefuseNextRecord(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_OK(allocator_->RecordUse(block_, user_));
  EXPECT_EQ(Watched::Taken(), (Watched::Calls{1, 1, 2, 2}));
  ASSERT_OK(world_.d.CtxGetCurrent(&current));
  EXPECT_EQ(current, nullptr);
  ASSERT_OK(world_.d.CtxPushCurrent(world_.contexts[0]));
  // With one current, its answer is the caller's.
  Watched::RefuseNextRecord(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(allocator_->RecordUse(block_, user_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_OK(allocator_->Free(block_));
}

// The default streams' handles mean streams of the current context.
TEST_P(RecordCalls, OfADefaultStreamAreMadeInItsContext) {
  CUcontext current = nullptr;
  StreamRef legacy;
  ASSERT_OK(allocator_->Identify(0, nullptr, &legacy));
  ASSERT_OK(world_.d.CtxPopCurrent(&current));
  (void)Watched::Taken();
  EXPECT_OK(allocator_->RecordUse(block_, legacy));
  EXPECT_EQ(Watched::Taken().push, 1);
  ASSERT_OK(world_.d.CtxPushCurrent(current));
  EXPECT_OK(allocator_->Free(block_));
}

TEST_P(RecordCalls, LeaveNoUseWhenTheRecordingIsRefused) {
  ASSERT_OK(world_.d.StreamSynchronize(t_));
  const CUdeviceptr fresh = [&] {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator_->Allocate(4 * kMiB, own_, &address));
    return address;
  }();
  for (int i = 0; i < 20; ++i) world_.Write(fresh, 4 * kMiB, t_);  // so that nothing of this stream's is over soon
  Statistics before;
  allocator_->GetStatistics(0, &before);
  Watched::RefuseNextRecord(CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(allocator_->RecordUse(fresh, user_), CUDA_ERROR_UNKNOWN);
  Statistics after;
  allocator_->GetStatistics(0, &after);
  EXPECT_EQ(after.uses_recorded, before.uses_recorded);
  EXPECT_EQ(after.uses_merged, before.uses_merged);
  EXPECT_OK(world_.d.StreamSynchronize(t_));
  EXPECT_OK(allocator_->Free(fresh));
  CUdeviceptr again = 0;
  EXPECT_OK(allocator_->Allocate(4 * kMiB, own_, &again));
  EXPECT_EQ(again, fresh);
  allocator_->GetStatistics(0, &after);
  EXPECT_EQ(after.waits_issued, 0U);
  EXPECT_EQ(after.blocks_pending, 0U);
  EXPECT_OK(allocator_->Free(again));
  EXPECT_OK(allocator_->Free(block_));
}

INSTANTIATE_TEST_SUITE_P(All, RecordCalls, testing::Values(Reuse::Poll, Reuse::Wait),
                         [](const auto& param) { return std::string(param.param == Reuse::Poll ? "Poll" : "Wait"); });

// For other streams' sake: every 64th free, or every 64 MiB.
TEST_F(Releases, AStreamRecordsOnceForManyFrees) {
  Make({.cross_stream = CrossStream::Ready, .thread_cache = false});
  for (std::size_t i = 1; i <= 200; ++i) EXPECT_OK(allocator->Free(Get(512 * i, s)));
  EXPECT_EQ(failing.calls(CallId::EventRecord), 3);
  EXPECT_OK(allocator->Close());
  allocator.reset();
}

// Also when the stream's requests are served directly, since the thread's cache keeps missing.
TEST_F(Releases, WhatAStreamOwesIsRecordedByItsNextRequest) {
  Make({});
  const CUdeviceptr x = Get(12 * kMiB, s);
  for (std::size_t i = 1; i <= 200; ++i) EXPECT_OK(allocator->Free(Get(512 * i, t)));  // no two of one size
  EXPECT_OK(allocator->RecordStream(x, t));
  failing.Fail(CallId::EventRecord, Failing::Refused);
  EXPECT_EQ(allocator->Free(x), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_OK(allocator->Free(Get(512, t)));
  EXPECT_OK(a.d.StreamSynchronize(t));
  EXPECT_EQ(Get(12 * kMiB, s), x);
  EXPECT_OK(allocator->Close());
  allocator.reset();
}

TEST_F(Releases, CloseKeepsTheWordsUntilTheContextIsThrough) {
  Make({.completion = Completion::StreamWrites});
  const CUdeviceptr x = Get(12 * kMiB, s);
  failing.Fail(CallId::StreamWriteValue64_v2, Failing::Done);
  EXPECT_EQ(allocator->RecordUse(x, t), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_OK(allocator->Free(x));
  failing.Fail(CallId::CtxSynchronize_v2, Failing::Refused);
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(a.Live(driver::Kind::PinnedMemory), 1U);
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(a.Live(driver::Kind::PinnedMemory), 0U);
  allocator.reset();
}

}  // namespace
}  // namespace cuaudit::alloc::recording_test
