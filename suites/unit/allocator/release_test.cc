// SPDX-License-Identifier: MIT
// Releases that report an error: refused, so that they are tried again; or done all the same, so that nobody else's is released.
#include <string>

#include "allocator/driver_scope.h"
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::release_test {
namespace {

using driver::CallId;

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
  Options options = {.expandable_segments = true};
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
  Make({.expandable_segments = true});
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
  Options options = {.expandable_segments = true};
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
  Options options = {.expandable_segments = true};
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
  Make({.expandable_segments = true});
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
  Make({.expandable_segments = true});
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
  Make({.expandable_segments = true});
  EXPECT_OK(allocator->Free(Get(12 * kMiB, s)));
  failing.code = CUDA_ERROR_INVALID_VALUE;
  failing.Fail(CallId::MemAddressFree, Failing::Done);
  EXPECT_EQ(allocator->Close(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(allocator->Close());
  EXPECT_EQ(failing.calls(CallId::MemAddressFree), 1);
}

TEST_F(Releases, WordsThatStreamsWriteToAreFreedAsMemoryIs) {
  Options options = {.completion = Completion::StreamWrites};
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

// For ever; of EmptyCache, what it keeps is not lost.
TEST_F(Releases, CloseGivesBackThoughTheDriverTellsNoContextAndSetsNoMode) {
  int closed = 0;
  Options expandable = {.expandable_segments = true, .page_size = 2 * kMiB};
  Options writes = {.completion = Completion::StreamWrites};
  for (const Options& options : {Options(), expandable, writes}) {
    for (const CallId call : {CallId::CtxGetCurrent, CallId::ThreadExchangeStreamCaptureMode}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(call)));
      Make(options);
      const CUdeviceptr x = Get(12 * kMiB, s);
      a.Write(Get(3 * kMiB, s), 3 * kMiB, s);
      a.Order(s, t);
      a.Write(x, 12 * kMiB, t);
      EXPECT_OK(allocator->RecordUse(x, t));
      EXPECT_OK(allocator->Free(x));
      const std::int64_t reserved = Stats().reserved_bytes[0].current;
      failing.code = CUDA_ERROR_UNKNOWN;
      failing.Fail(call, Failing::Refused, 1 << 20);
      EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_UNKNOWN);
      EXPECT_EQ(Stats().reserved_bytes[0].current, reserved);
      std::size_t live = 0;
      EXPECT_EQ(allocator->Close(&live), CUDA_ERROR_UNKNOWN) << "it says so";
      EXPECT_EQ(live, 1U);
      failing.Fail(call, Failing::Refused, 0);
      for (const driver::Kind kind : {driver::Kind::DeviceMemory, driver::Kind::PhysicalMemory, driver::Kind::Mapping, driver::Kind::Event,
                                      driver::Kind::AddressReservation, driver::Kind::PinnedMemory})
        EXPECT_EQ(a.Live(kind), 0U) << driver::Name(kind);
      EXPECT_EQ(failing.calls(CallId::DevicePrimaryCtxRelease_v2), ++closed);
      CUcontext popped = nullptr;
      EXPECT_OK(a.d.CtxPopCurrent(&popped));
      EXPECT_EQ(a.d.CtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT) << "what was pushed has been popped";
      EXPECT_OK(a.d.CtxPushCurrent(context));
      allocator.reset();
    }
  }
}

}  // namespace
}  // namespace cuaudit::alloc::release_test
