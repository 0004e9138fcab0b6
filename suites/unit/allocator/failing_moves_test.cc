// SPDX-License-Identifier: MIT
// One driver call fails while others of the same kind do not: as pages move, and as uses are recorded.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::failing_moves_test {
namespace {

// A call fails while pages move: they are where they were, or where they should be, and nothing is lost.

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

// Nothing fails: the pages of one block are one batch. Each has to be mapped by itself, as it has a handle of its own.
TEST_F(FailingMoves, AreOneCallForAccessAndOneForTheOldAddresses) {
  Prepare();
  std::map<CallId, std::uint64_t> made;
  failing.on_call = [&made](CallId call) { ++made[call]; };
  const CUdeviceptr y = Get(kRowBytes, t);
  failing.on_call = nullptr;
  EXPECT_EQ(Stats().pages_moved, kRowPages);
  EXPECT_EQ(made[CallId::MemMap], kRowPages);
  EXPECT_EQ(made[CallId::MemSetAccess], 1U);
  EXPECT_EQ(made[CallId::MemUnmap], 1U);
  EXPECT_EQ(made[CallId::MemCreate] + made[CallId::MemRelease], 0U);
  a.Write(y, kRowBytes, t);
  End(kRowPages);
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

// Recordings of uses that fail, beside others of the same stream that do not.

// What a thread's cuEventRecord does first; an error is its answer. Any thread.
thread_local std::function<CUresult()> before_record;

class FailedUses : public testing::Test {
 protected:
  FailedUses() : table_(*a.d.table) {
    genuine_ = reinterpret_cast<Record>(table_.entry[driver::Index(CallId::EventRecord)]);
    table_.entry[driver::Index(CallId::EventRecord)] = reinterpret_cast<driver::Entry>(&Through);
    const DeviceConfig config;
    Options options = {.reuse = Reuse::Poll};
    EXPECT_OK(Allocator::Create(driver::DriverRef{&table_, a.d.self}, &config, 1, options, &allocator));
    EXPECT_OK(allocator->Identify(0, a.Stream(), &own));
    EXPECT_OK(allocator->Identify(0, t, &user));
  }
  ~FailedUses() override { EXPECT_OK(allocator->Close(nullptr)) << allocator->LastErrorText(); }
  CUdeviceptr Get(std::size_t bytes, StreamRef stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  std::uint64_t Pending() {
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    return statistics.blocks_pending;
  }
  // Waits for the other thread, which is in the driver.
  static void Await(const std::atomic<int>& step, int wanted) {
    while (step.load(std::memory_order_acquire) < wanted) std::this_thread::yield();
  }

  Allocating a;
  driver::DriverTable table_;
  CUstream t = a.Stream();
  std::unique_ptr<Allocator> allocator;
  StreamRef own, user;

 private:
  using Record = CUresult (*)(void*, CUevent, CUstream);
  static CUresult Through(void* self, CUevent event, CUstream stream) {
    const CUresult result = before_record ? before_record() : CUDA_SUCCESS;
    return result != CUDA_SUCCESS ? result : genuine_(self, event, stream);
  }
  inline static Record genuine_ = nullptr;
};

// The other thread's call comes as close as can be to the end of the one that fails.
TEST_F(FailedUses, TakeNoUseOfAnotherThreadAlong) {
  Gate gate(a.d);
  gate.Hold(t);
  constexpr int kRounds = 300;
  std::atomic<CUdeviceptr> x{0};  // another in each round
  std::atomic<int> failing{0};
  std::atomic<int> done{0};
  std::thread other([&] {
    for (int round = 1; round <= kRounds; ++round) {
      Await(failing, round);
      EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
      EXPECT_OK(allocator->RecordUse(x, user));
      done.store(round, std::memory_order_release);
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    x = Get(512, own);
    before_record = [&] {
      failing.store(round, std::memory_order_release);
      return CUDA_ERROR_UNKNOWN;
    };
    EXPECT_EQ(allocator->RecordUse(x, user), CUDA_ERROR_UNKNOWN);
    before_record = nullptr;
    Await(done, round);
    EXPECT_OK(allocator->Free(x));
  }
  other.join();
  EXPECT_EQ(Pending(), static_cast<std::uint64_t>(kRounds));
  gate.Open();
}

// The second falls back to the number of the first, which is nobody's any more: the stream's next recording ends it.
TEST_F(FailedUses, OfTwoThreadsAtOnceLeaveNothingThatNeverEnds) {
  const CUdeviceptr x = Get(12 * kMiB, own);
  std::atomic<int> step{0};
  std::thread first([&] {
    EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
    before_record = [&] {
      step.store(1, std::memory_order_release);
      Await(step, 2);
      return CUDA_ERROR_UNKNOWN;
    };
    EXPECT_EQ(allocator->RecordUse(x, user), CUDA_ERROR_UNKNOWN);
    before_record = nullptr;
    step.store(3, std::memory_order_release);
  });
  Await(step, 1);
  before_record = [&] {
    step.store(2, std::memory_order_release);
    Await(step, 3);
    return CUDA_ERROR_UNKNOWN;
  };
  EXPECT_EQ(allocator->RecordUse(x, user), CUDA_ERROR_UNKNOWN);
  before_record = nullptr;
  first.join();
  EXPECT_OK(allocator->Free(x));
  const CUdeviceptr small = Get(512, user);  // recorded on the way
  EXPECT_OK(a.d.StreamSynchronize(t));
  EXPECT_EQ(Get(12 * kMiB, own), x);
  EXPECT_OK(allocator->Free(x));
  EXPECT_OK(allocator->Free(small));
}

// A recording that is still on its way to the stream while later ones of it are made and over: those tell nothing of it.
using OvertakenUses = FailedUses;

TEST_F(OvertakenUses, AreNotOverWithTheLaterOnes) {
  for (int later = 1; later <= 3; ++later) {
    const CUdeviceptr x = Get(12 * kMiB, own);
    const CUdeviceptr y = Get(14 * kMiB, own);
    for (int i = 0; i < 3; ++i) EXPECT_OK(allocator->RecordUse(x, user));  // so that all is as usual
    std::atomic<int> step{0};
    std::thread late([&] {
      EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
      before_record = [&] {
        step.store(1, std::memory_order_release);
        Await(step, 2);
        return CUDA_SUCCESS;
      };
      EXPECT_OK(allocator->RecordUse(x, user));
      before_record = nullptr;
    });
    Await(step, 1);
    for (int i = 0; i < later; ++i) EXPECT_OK(allocator->RecordUse(y, user));
    EXPECT_OK(a.d.StreamSynchronize(t));
    EXPECT_OK(allocator->Free(y));
    const CUdeviceptr asked = Get(14 * kMiB, own);  // looks at the later uses
    {
      Gate gate(a.d);
      gate.Hold(t);
      step.store(2, std::memory_order_release);
      late.join();  // it was recorded behind the gate
      EXPECT_OK(allocator->Free(x));
      const CUdeviceptr other = Get(12 * kMiB, own);
      EXPECT_NE(other, x) << later;
      EXPECT_OK(allocator->Free(other));
    }
    EXPECT_OK(allocator->Free(asked));
    EXPECT_OK(allocator->EmptyCache());
  }
}

// What could not be recorded at a free, while another recording of the stream is in the driver, is not paid by that one, but by the next.
TEST_F(FailedUses, DebtsMadeDuringARecordingAreRemembered) {
  const CUdeviceptr x = Get(512, own);
  const CUdeviceptr z = Get(12 * kMiB, own);
  EXPECT_OK(allocator->RecordUse(x, user));  // so that the next one takes the short way
  for (const CUdeviceptr used : {x, Get(1024, own)}) {
    EXPECT_OK(allocator->RecordStream(z, user));
    bool is_nested = false;
    before_record = [&] {
      if (is_nested) return CUDA_ERROR_UNKNOWN;
      is_nested = true;
      EXPECT_EQ(allocator->Free(z), CUDA_ERROR_UNKNOWN);
      return CUDA_SUCCESS;
    };
    EXPECT_OK(allocator->RecordUse(used, user));
    before_record = nullptr;
    EXPECT_TRUE(is_nested);
    const CUdeviceptr small = Get(used == x ? 2048 : 4096, user);  // recorded on the way, being nothing that is cached
    EXPECT_OK(a.d.StreamSynchronize(t));
    EXPECT_EQ(Get(12 * kMiB, own), z);
    EXPECT_OK(allocator->EmptyCache());
    EXPECT_OK(allocator->Free(small));
    EXPECT_OK(allocator->Free(used));
  }
}

}  // namespace
}  // namespace cuaudit::alloc::failing_moves_test
