// SPDX-License-Identifier: MIT
// A call fails while pages move: they are where they were, or where they should be, and nothing is lost.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/releases.h"

namespace cuaudit::alloc::failing_moves_test {
namespace {

using driver::CallId;

class FailingMoves : public Releases {
 protected:
  FailingMoves() : Releases({.schedule = sim::Schedule::Fifo}) {}
  // Free memory of s, all work on which is over.
  void Prepare() {
    Make(Moving());
    x = Get(kRowBytes, s);
    EXPECT_OK(allocator->Free(x));
  }
  void End(std::uint64_t pages) {
    EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), pages);
    EXPECT_OK(allocator->Close());
    allocator.reset();
    EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), 0U);
    EXPECT_EQ(a.Live(driver::Kind::Mapping), 0U);
    EXPECT_EQ(a.Live(driver::Kind::AddressReservation), 0U);
  }
  CUdeviceptr x = 0;
};

// Until the pages are at their new addresses nothing has changed: the error is told, and they are where they were.
TEST_F(FailingMoves, LeaveThePagesWhereTheyWere) {
  failing.code = CUDA_ERROR_INVALID_VALUE;
  // The first question about a capture is the request's own.
  for (const auto& [call, nth] : {std::pair{CallId::StreamIsCapturing, 2},
                                  {CallId::StreamIsCapturing, 3},
                                  {CallId::EventRecord, 1},
                                  {CallId::EventQuery, 1},
                                  {CallId::MemMap, 1},
                                  {CallId::MemMap, 5},
                                  {CallId::MemSetAccess, 1}}) {
    for (const Failing how : {Failing::Refused, Failing::Done}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(call)) + (how == Failing::Done ? " done" : " refused") + std::to_string(nth));
      Prepare();
      int left = nth;
      failing.on_call = [&failing = failing, &left, call = call, how](CallId one) {
        if (one == call && --left == 0) failing.Fail(call, how);
      };
      CUdeviceptr y = 0;
      EXPECT_EQ(allocator->Allocate(0, kRowBytes, t, &y), CUDA_ERROR_INVALID_VALUE);
      failing.on_call = nullptr;
      EXPECT_EQ(y, 0U);
      EXPECT_EQ(Stats().pages_moved, 0U);
      EXPECT_EQ(Stats().reserved_bytes[0].current, kRowBytes);
      EXPECT_EQ(Get(kRowBytes, s), x);
      EXPECT_EQ(Stats().reserved_bytes[0].current, kRowBytes);
      a.Write(x, kRowBytes, s);
      EXPECT_OK(a.d.StreamSynchronize(s));
      EXPECT_OK(allocator->Free(x));
      y = Get(kRowBytes, t);
      a.Write(y, kRowBytes, t);
      EXPECT_EQ(Stats().pages_moved, kRowPages);
      EXPECT_EQ(Stats().reserved_bytes[0].current, kRowBytes);
      End(kRowPages);
    }
  }
}

// One arena has given pages when another's stream is asked in vain.
TEST_F(FailingMoves, GiveBackWhatWasGatheredAlready) {
  Prepare();
  CUstream const u = a.Stream();
  const CUdeviceptr z = Get(kRowBytes, u);  // what s freed moves to u
  const CUdeviceptr again = Get(kRowBytes, s);
  EXPECT_OK(allocator->Free(z));
  EXPECT_OK(allocator->Free(again));
  failing.code = CUDA_ERROR_INVALID_VALUE;
  int left = 2;
  failing.on_call = [this, &left](CallId call) {
    if (call == CallId::EventQuery && --left == 0) failing.Fail(call, Failing::Refused);
  };
  CUdeviceptr y = 0;
  EXPECT_EQ(allocator->Allocate(0, 2 * kRowBytes, t, &y), CUDA_ERROR_INVALID_VALUE);
  failing.on_call = nullptr;
  EXPECT_EQ(Stats().reserved_bytes[0].current, 2 * kRowBytes);
  EXPECT_EQ(Get(kRowBytes, u), z);
  EXPECT_EQ(Get(kRowBytes, s), again);
  EXPECT_EQ(Stats().reserved_bytes[0].current, 2 * kRowBytes) << "each has its own again";
  End(2 * kRowPages);
}

// Behind that they have moved: the error is told, and the memory is there for who asks again. Addresses that may still be mapped are
// unmapped before they are used anew.
TEST_F(FailingMoves, HaveMovedThoughTheOldAddressesAreNotUnmapped) {
  for (const CUresult code : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_FAILED}) {
    failing.code = code;
    for (const Failing how : {Failing::Refused, Failing::Done}) {
      for (const int times : {1, 2}) {
        SCOPED_TRACE(std::to_string(times) + (how == Failing::Done ? " done" : " refused"));
        Prepare();
        failing.Fail(CallId::MemUnmap, how, times);
        CUdeviceptr y = 0;
        EXPECT_EQ(allocator->Allocate(0, kRowBytes, t, &y), code);
        EXPECT_EQ(y, 0U);
        EXPECT_EQ(Stats().pages_moved, kRowPages);
        EXPECT_EQ(Stats().reserved_bytes[0].current, kRowBytes);
        EXPECT_EQ(Stats().releases_refused, times == 2 ? 1U : 0U);
        y = Get(kRowBytes, t);
        EXPECT_EQ(Stats().reserved_bytes[0].current, kRowBytes);
        a.Write(y, kRowBytes, t);
        EXPECT_EQ(Get(kRowBytes, s), x);
        a.Write(x, kRowBytes, s);
        EXPECT_EQ(a.Live(driver::Kind::Mapping), 2 * kRowPages);
        End(2 * kRowPages);
      }
    }
  }
}

// New pages are made behind those that move: that there are none leaves those where they were.
TEST_F(FailingMoves, LeaveThePagesWhereTheyWereWhenNewOnesAreRefused) {
  Prepare();
  failing.code = CUDA_ERROR_INVALID_VALUE;
  failing.Fail(CallId::MemCreate, Failing::Refused);
  CUdeviceptr y = 0;
  EXPECT_EQ(allocator->Allocate(0, 2 * kRowBytes, t, &y), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Get(kRowBytes, s), x);
  EXPECT_EQ(Stats().reserved_bytes[0].current, kRowBytes);
  End(kRowPages);
}

// A page whose handle may be released already stays where it is, and is memory there as before.
TEST_F(FailingMoves, LeaveThePageWhoseHandleWasPerhapsReleased) {
  failing.code = CUDA_ERROR_INVALID_VALUE;
  for (const Failing how : {Failing::Refused, Failing::Done}) {
    SCOPED_TRACE(how == Failing::Done ? "done" : "refused");
    Prepare();
    EXPECT_OK(a.d.StreamSynchronize(s));
    failing.Fail(CallId::MemRelease, how);
    EXPECT_EQ(allocator->EmptyCache(), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Stats().reserved_bytes[0].current, kRowBytes) << "the first page stayed, and so did those behind it";
    const CUdeviceptr y = Get(kRowBytes, t);
    EXPECT_EQ(Stats().pages_moved, kRowPages - 1);
    a.Write(y, kRowBytes, t);
    const CUdeviceptr z = Get(2 * kMiB, s);
    EXPECT_EQ(z, x);
    a.Write(z, 2 * kMiB, s);
    End(kRowPages + 1 - (how == Failing::Done ? 1 : 0));
  }
}

// Asked behind the recording, the stream is in a capture: what was recorded may be the graph's, and tells nothing.
TEST_F(FailingMoves, ACaptureThatBeginsMeanwhileIsLeftAlone) {
  Prepare();
  bool has_begun = false;
  failing.on_call = [this, &has_begun](CallId call) {
    if (call != CallId::EventRecord || std::exchange(has_begun, true)) return;
    EXPECT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  };
  const CUdeviceptr y = Get(kRowBytes, t);
  EXPECT_EQ(Stats().pages_moved, 0U);
  CUgraph graph = nullptr;
  EXPECT_OK(a.d.StreamEndCapture(s, &graph));
  EXPECT_OK(a.d.GraphDestroy(graph));
  failing.on_call = nullptr;
  const CUdeviceptr z = Get(kRowBytes, t);
  EXPECT_EQ(Stats().pages_moved, kRowPages);
  a.Write(y, kRowBytes, t);
  a.Write(z, kRowBytes, t);
  End(2 * kRowPages);
}

}  // namespace
}  // namespace cuaudit::alloc::failing_moves_test
