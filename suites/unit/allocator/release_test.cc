// SPDX-License-Identifier: MIT
// Releases that report an error: refused, so that they are tried again; or done all the same, so that nobody else's is released. And
// recordings that fail.
#include <utility>

#include "allocator/fate.h"
#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/failing_calls.h"
#include "suites/unit/allocator/gate.h"

namespace cuaudit::alloc {
namespace {

using driver::CallId;

class Releases : public testing::Test {
 protected:
  Releases() {
    EXPECT_OK(a.d.DevicePrimaryCtxRetain(&context, 0));
    s = a.Stream();
    t = a.Stream();
  }
  ~Releases() override { EXPECT_OK(a.d.DevicePrimaryCtxRelease(0)); }
  void Make(const Options& options) {
    const DeviceConfig config;
    ASSERT_OK(Allocator::Create(failing.ref(), &config, 1, options, &allocator));
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(0, bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  Statistics Stats() {
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    return statistics;
  }

  Allocating a;
  CUcontext context = nullptr;
  FailingCalls failing{a.d};
  CUstream s = nullptr;
  CUstream t = nullptr;
  std::unique_ptr<Allocator> allocator;
};

TEST_F(Releases, RefusedMemoryIsKeptGivenOutAgainAndReleasedByTheNextTry) {
  Make({});
  const CUdeviceptr x = Get(12 * kMiB, s);
  EXPECT_OK(allocator->Free(x));
  failing.Fail(CallId::MemFree_v2, Failing::Refused);
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(Stats().releases_refused, 1U);
  EXPECT_EQ(Stats().reserved_bytes[0].current, static_cast<std::int64_t>(12 * kMiB));
  EXPECT_EQ(Get(12 * kMiB, s), x);
  EXPECT_EQ(Stats().num_device_alloc, 1);
  EXPECT_OK(allocator->Free(x));
  failing.Fail(CallId::MemFree_v2, Failing::Refused);
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(a.Live(driver::Kind::DeviceMemory), 1U);
  EXPECT_EQ(failing.calls(CallId::DevicePrimaryCtxRelease_v2), 0);  // with the context it would be lost
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(a.Live(driver::Kind::DeviceMemory), 0U);
  EXPECT_EQ(failing.calls(CallId::DevicePrimaryCtxRelease_v2), 1);
}

TEST_F(Releases, MemoryThatIsGoneThoughItsReleaseFailedIsNeitherGivenOutNorReleasedAgain) {
  Make({});
  const CUdeviceptr x = Get(12 * kMiB, s);
  EXPECT_OK(allocator->Free(x));
  failing.Fail(CallId::MemFree_v2, Failing::Done);
  failing.taken_bytes = 12 * kMiB;  // another owner has the address at once
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(failing.taken, (std::vector<CUdeviceptr>{x}));
  EXPECT_EQ(Stats().reserved_bytes[0].current, 0);
  const CUdeviceptr y = Get(12 * kMiB, s);
  EXPECT_NE(y, x);
  EXPECT_OK(allocator->Free(y));
  EXPECT_OK(allocator->EmptyCache());
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(failing.calls(CallId::MemFree_v2), 2);
  EXPECT_OK(a.d.MemFree(x));  // it is still the other owner's
}

TEST_F(Releases, NothingIsReleasedWhileItsIdentityCannotBeAsked) {
  Make({});
  const CUdeviceptr x = Get(12 * kMiB, s);
  EXPECT_OK(allocator->Free(x));
  failing.Fail(CallId::PointerGetAttribute, Failing::Refused);
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(failing.calls(CallId::MemFree_v2), 0);
  EXPECT_EQ(Get(12 * kMiB, s), x);
  EXPECT_OK(allocator->Free(x));
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(failing.calls(CallId::MemFree_v2), 1);
}

TEST_F(Releases, MemoryWhoseFateCannotBeAskedIsLeftAlone) {
  Make({});
  const CUdeviceptr x = Get(12 * kMiB, s);
  EXPECT_OK(allocator->Free(x));
  failing.Fail(CallId::MemFree_v2, Failing::Refused);
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);  // now the allocator knows its identity
  failing.Fail(CallId::MemFree_v2, Failing::Done);
  failing.Fail(CallId::PointerGetAttribute, Failing::Refused);
  failing.taken_bytes = 12 * kMiB;
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(failing.taken, (std::vector<CUdeviceptr>{x}));
  const CUdeviceptr y = Get(12 * kMiB, s);
  EXPECT_NE(y, x);
  const int frees = failing.calls(CallId::MemFree_v2);
  failing.Fail(CallId::PointerGetAttribute, Failing::Refused);
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);
  failing.Fail(CallId::PointerGetAttribute, Failing::Refused, 2);  // y's, too
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(failing.calls(CallId::DevicePrimaryCtxRelease_v2), 0);
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(failing.calls(CallId::MemFree_v2), frees + 1);
  EXPECT_OK(a.d.MemFree(x));
}

TEST_F(Releases, MemoryWhoseFateCouldNotBeAskedIsSettledByTheNextEmptyCache) {
  for (const Failing how : {Failing::Refused, Failing::Done}) {
    Make({});
    const CUdeviceptr x = Get(12 * kMiB, s);
    EXPECT_OK(allocator->Free(x));
    failing.Fail(CallId::MemFree_v2, Failing::Refused);
    EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);
    failing.Fail(CallId::MemFree_v2, how);
    failing.Fail(CallId::PointerGetAttribute, Failing::Refused);
    EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(Stats().reserved_bytes[0].current, static_cast<std::int64_t>(12 * kMiB));
    EXPECT_EQ(Stats().bytes_unusable, 12 * kMiB);
    Snapshot snapshot;
    EXPECT_OK(allocator->TakeSnapshot(&snapshot));
    EXPECT_TRUE(snapshot.segments.empty());
    const int frees = failing.calls(CallId::MemFree_v2);
    EXPECT_OK(allocator->EmptyCache());
    EXPECT_EQ(failing.calls(CallId::MemFree_v2), frees + (how == Failing::Refused ? 1 : 0));
    EXPECT_EQ(Stats().reserved_bytes[0].current, 0);
    EXPECT_EQ(Stats().bytes_unusable, 0U);
    EXPECT_OK(allocator->Close());
  }
}

// A second cuEventDestroy or cuStreamDestroy of what is gone crashes (measured); a second release of a context is somebody else's.
TEST_F(Releases, HandlesAndReferencesAreReleasedOnce) {
  for (const Failing how : {Failing::Refused, Failing::Done}) {
    for (const CallId call : {CallId::EventDestroy_v2, CallId::StreamDestroy_v2, CallId::DevicePrimaryCtxRelease_v2}) {
      SCOPED_TRACE(static_cast<int>(call));
      Make({});
      const CUdeviceptr x = Get(12 * kMiB, s);
      EXPECT_OK(allocator->RecordUse(x, t));
      CUevent event = nullptr;
      EXPECT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
      EXPECT_OK(a.d.EventRecord(event, t));
      EXPECT_OK(allocator->KeepAliveUntil(x, event));
      EXPECT_OK(a.d.EventDestroy(event));
      EXPECT_OK(allocator->Free(x));
      const std::uint64_t events = a.Live(driver::Kind::Event);
      const std::uint64_t streams = a.Live(driver::Kind::Stream);
      EXPECT_GT(events, 0U);
      const int before = failing.calls(call);
      failing.Fail(call, how);
      EXPECT_EQ(allocator->Close(), CUDA_ERROR_INVALID_CONTEXT);
      EXPECT_EQ(Stats().releases_refused, 1U);
      const int made = failing.calls(call) - before;
      EXPECT_EQ(made, call == CallId::EventDestroy_v2 ? static_cast<int>(events) : 1);
      EXPECT_OK(allocator->Close());  // nothing is left to be tried
      allocator.reset();
      EXPECT_EQ(failing.calls(call) - before, made);
      const bool kept = how == Failing::Refused;
      EXPECT_EQ(a.Live(driver::Kind::Event), kept && call == CallId::EventDestroy_v2 ? 1U : 0U);
      EXPECT_EQ(a.Live(driver::Kind::Stream), streams - (kept && call == CallId::StreamDestroy_v2 ? 0 : 1));
      EXPECT_EQ(a.Live(driver::Kind::PrimaryContext), 3U + (kept && call == CallId::DevicePrimaryCtxRelease_v2 ? 1U : 0U));
      for (const auto& release : failing.refused) EXPECT_OK(release());
      failing.refused.clear();
    }
  }
}

TEST_F(Releases, MappingsAreReleasedAgainSinceTheAddressesAreOurs) {
  Options options;
  options.expandable_segments = true;
  for (const Failing how : {Failing::Refused, Failing::Done}) {
    for (const CallId call : {CallId::MemUnmap, CallId::MemRelease}) {
      Make(options);
      const CUdeviceptr x = Get(12 * kMiB, s);
      EXPECT_OK(allocator->Free(x));
      failing.code = CUDA_ERROR_INVALID_VALUE;
      failing.Fail(call, how);
      EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_VALUE);
      const bool stays = call == CallId::MemRelease;  // the mapping keeps it: it is memory as before
      EXPECT_EQ(Stats().reserved_bytes[0].current, stays ? static_cast<std::int64_t>(20 * kMiB) : 0);
      const CUdeviceptr y = Get(12 * kMiB, s);
      EXPECT_EQ(y, x);
      a.Write(y, 12 * kMiB, s);
      EXPECT_OK(allocator->Free(y));
      EXPECT_OK(allocator->EmptyCache());
      EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), 0U);
      EXPECT_EQ(a.Live(driver::Kind::Mapping), 0U);
      EXPECT_OK(allocator->Close());
      allocator.reset();
    }
  }
}

TEST_F(Releases, APageThatMayBeMappedOrNotIsNoMemoryUntilThatIsSettled) {
  Options options;
  options.expandable_segments = true;
  Make(options);
  const CUdeviceptr x = Get(12 * kMiB, s);
  EXPECT_OK(allocator->Free(x));
  failing.code = CUDA_ERROR_INVALID_VALUE;
  failing.Fail(CallId::MemUnmap, Failing::Refused, 4);
  EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Stats().reserved_bytes[0].current, 0);
  CUdeviceptr y = 0;
  EXPECT_EQ(allocator->Allocate(0, 12 * kMiB, s, &y), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Get(12 * kMiB, s), x);  // unmapped at last, and mapped anew
  a.Write(x, 12 * kMiB, s);
  EXPECT_EQ(a.Live(driver::Kind::Mapping), 1U);
  EXPECT_OK(allocator->Free(x));
  EXPECT_OK(allocator->Close());
}

// Physical memory and mappings are no context's: of them a lost one may have taken nothing along.
TEST_F(Releases, APageIsMappedAnewOnlyWhenItWasUnmappedThoughAContextIsSaidToBeLost) {
  Options options;
  options.expandable_segments = true;
  failing.code = CUDA_ERROR_LAUNCH_FAILED;
  for (const int times : {1, 2, 4}) {
    Make(options);
    const CUdeviceptr x = Get(12 * kMiB, s);
    EXPECT_OK(allocator->Free(x));
    failing.Fail(CallId::MemUnmap, Failing::Refused, times);
    EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(Stats().reserved_bytes[0].current, 0);
    EXPECT_EQ(Stats().releases_refused, times == 1 ? 0U : 1U);
    CUdeviceptr y = 0;
    if (times == 4) {
      EXPECT_EQ(allocator->Allocate(0, 12 * kMiB, s, &y), CUDA_ERROR_LAUNCH_FAILED);
    }
    EXPECT_EQ(Get(12 * kMiB, s), x);
    a.Write(x, 12 * kMiB, s);
    EXPECT_EQ(a.Live(driver::Kind::Mapping), 1U);
    EXPECT_OK(allocator->Free(x));
    EXPECT_OK(allocator->Close());
    EXPECT_EQ(a.Live(driver::Kind::Mapping), 0U);
    EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), 0U);
    allocator.reset();
  }
}

// The mapping keeps it: what is not released is memory as before, and what was is known by the second try.
TEST_F(Releases, PhysicalMemoryStaysUntilItWasReleasedThoughAContextIsSaidToBeLost) {
  Options options;
  options.expandable_segments = true;
  failing.code = CUDA_ERROR_LAUNCH_FAILED;
  for (const Failing how : {Failing::Refused, Failing::Done}) {
    for (const int times : {1, 2}) {
      Make(options);
      const CUdeviceptr x = Get(12 * kMiB, s);
      EXPECT_OK(allocator->Free(x));
      failing.Fail(CallId::MemRelease, how, times);
      EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_LAUNCH_FAILED);
      const bool stays = how == Failing::Refused && times == 2;
      EXPECT_EQ(Stats().reserved_bytes[0].current, stays ? static_cast<std::int64_t>(20 * kMiB) : 0);
      EXPECT_EQ(Stats().releases_refused, stays ? 1U : 0U);
      EXPECT_EQ(Stats().num_device_free, stays ? 0 : 1);
      EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), stays ? 1U : 0U);
      EXPECT_EQ(Get(12 * kMiB, s), x);
      EXPECT_EQ(Stats().num_device_alloc, stays ? 1 : 2);
      a.Write(x, 12 * kMiB, s);
      EXPECT_OK(allocator->Free(x));
      failing.Fail(CallId::MemRelease, how, 1);
      EXPECT_EQ(allocator->Close(), CUDA_ERROR_LAUNCH_FAILED);
      EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), 0U);
      EXPECT_EQ(a.Live(driver::Kind::Mapping), 0U);
      EXPECT_OK(allocator->Close());
      EXPECT_TRUE(a.misuse.empty());
      allocator.reset();
    }
  }
}

// The reference to a lost context is what its program has to let go.
TEST_F(Releases, CloseIsThroughWithPhysicalMemoryThatALostContextKeeps) {
  Options options;
  options.expandable_segments = true;
  Make(options);
  EXPECT_OK(allocator->Free(Get(12 * kMiB, s)));
  failing.code = CUDA_ERROR_LAUNCH_FAILED;
  failing.Fail(CallId::MemRelease, Failing::Refused, 2);
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(Stats().releases_refused, 1U);
  EXPECT_EQ(Stats().num_device_free, 0);
  EXPECT_EQ(a.Live(driver::Kind::Mapping), 0U);
  EXPECT_EQ(a.Live(driver::Kind::AddressReservation), 0U);
  EXPECT_EQ(failing.calls(CallId::DevicePrimaryCtxRelease_v2), 1);
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(failing.calls(CallId::MemRelease), 2);
  EXPECT_OK(failing.refused.back()());
  EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), 0U);
}

// As long as it is said so nothing can be unmapped, and Close does not wait for it.
TEST_F(Releases, CloseIsThroughWithPagesThatALostContextKeeps) {
  Options options;
  options.expandable_segments = true;
  Make(options);
  EXPECT_OK(allocator->Free(Get(12 * kMiB, s)));
  failing.code = CUDA_ERROR_LAUNCH_FAILED;
  failing.Fail(CallId::MemUnmap, Failing::Refused, 2);
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_LAUNCH_FAILED);
  const int calls = failing.calls(CallId::MemUnmap);
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(failing.calls(CallId::MemUnmap), calls);
  EXPECT_EQ(failing.calls(CallId::MemAddressFree), 1);
  EXPECT_OK(failing.refused.back()());
  a.lost[driver::Kind::AddressReservation] = 1;  // not freed while something is mapped there
}

TEST_F(Releases, ARangeOfAddressesIsFreedOnce) {
  Options options;
  options.expandable_segments = true;
  Make(options);
  EXPECT_OK(allocator->Free(Get(12 * kMiB, s)));
  failing.code = CUDA_ERROR_INVALID_VALUE;
  failing.Fail(CallId::MemAddressFree, Failing::Done);
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(failing.calls(CallId::MemAddressFree), 1);
}

TEST_F(Releases, WordsThatStreamsWriteToAreFreedAsMemoryIs) {
  Options options;
  options.completion = Completion::StreamWrites;
  for (const Failing how : {Failing::Refused, Failing::Done}) {
    Make(options);
    const CUdeviceptr x = Get(12 * kMiB, s);
    EXPECT_OK(allocator->RecordUse(x, t));
    EXPECT_OK(allocator->Free(x));
    EXPECT_EQ(a.Live(driver::Kind::PinnedMemory), 1U);
    const int before = failing.calls(CallId::MemFreeHost);
    failing.Fail(CallId::MemFreeHost, how);
    EXPECT_EQ(allocator->Close(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(allocator->Close());
    EXPECT_EQ(failing.calls(CallId::MemFreeHost) - before, how == Failing::Refused ? 2 : 1);
    EXPECT_EQ(a.Live(driver::Kind::PinnedMemory), 0U);
    allocator.reset();
  }
}

// What only the stream's next recording can tell of is not over because that recording failed.
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

TEST_F(Releases, ALostContextTakesItsMemoryAlongWhoeverIsToldSoFirst) {
  CUdeviceptr memory = 0;
  ASSERT_OK(a.d.MemAlloc(&memory, kMiB));
  for (const CUresult code : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_OUT_OF_MEMORY}) {
    failing.code = code;
    failing.Fail(CallId::PointerGetAttribute, Failing::Refused);
    Tenure tenure;
    bool gone = false;
    int tries = 0;
    const auto free = [&] { return ++tries, CUDA_SUCCESS; };
    EXPECT_EQ(FreeOurs(failing.ref(), memory, &tenure, &gone, free), code);
    EXPECT_EQ(gone, code == CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(tries, 0);
  }
  ASSERT_OK(a.d.MemFree(memory));
}

}  // namespace
}  // namespace cuaudit::alloc
