// SPDX-License-Identifier: MIT
// Recordings and writes of streams that fail, or are done though they failed.
#include <utility>

#include "suites/unit/allocator/gate.h"
#include "suites/unit/allocator/releases.h"

namespace cuaudit::alloc::recording_test {
namespace {

using driver::CallId;

TEST_F(Releases, ARecordingThatFailedEndsNothing) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    Options options;
    options.reuse = reuse;
    Make(options);
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

}  // namespace
}  // namespace cuaudit::alloc::recording_test
