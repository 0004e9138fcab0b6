// SPDX-License-Identifier: MIT
// A driver call that does not come back holds up nobody who frees, records or takes what is cached.
#define __CUDA_API_VERSION_INTERNAL
#include <atomic>
#include <chrono>
#include <future>
#include <semaphore>
#include <thread>

#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::held_calls_test {
namespace {

// A driver in which one call does not return until the test says so. It passes on every call and holds one at a time.
class HoldingDriver {
 public:
  explicit HoldingDriver(driver::DriverRef next) : next_(next) {}
  driver::DriverRef ref() { return {&Table(), this}; }
  void HoldNext(driver::CallId call) { wanted_ = static_cast<int>(driver::Index(call)); }
  void AwaitHeld() { arrived_.acquire(); }
  void LetGo() { go_.release(); }

 private:
  template <driver::CallId id, typename Function>
  struct Through;
  template <driver::CallId id, typename... P>
  struct Through<id, CUresult(P...)> {
    static CUresult Call(void* self, P... arguments) {
      HoldingDriver* const at = static_cast<HoldingDriver*>(self);
      int wanted = static_cast<int>(driver::Index(id));
      if (at->wanted_.load(std::memory_order_relaxed) == wanted && at->wanted_.compare_exchange_strong(wanted, -1)) {
        at->arrived_.release();
        at->go_.acquire();
      }
      using Entry = CUresult (*)(void*, P...);
      return reinterpret_cast<Entry>(at->next_.table->entry[driver::Index(id)])(at->next_.self, arguments...);
    }
  };

  static const driver::DriverTable& Table() {
    static const driver::DriverTable table = {{
#define CUAUDIT_CALL(id, base, version, per_thread) \
  reinterpret_cast<driver::Entry>(&Through<driver::CallId::id, driver::CallType<driver::CallId::id>::Function>::Call),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                              },
                                              {
#define CUAUDIT_CALL(id, base, version, per_thread) true,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                              }};
    return table;
  }

  driver::DriverRef next_;
  std::atomic<int> wanted_{-1};
  std::binary_semaphore arrived_{0};
  std::binary_semaphore go_{0};
};

using driver::CallId;

class HeldCalls : public testing::Test {
 protected:
  HeldCalls() {
    Options options = {.cross_stream = CrossStream::Ready, .max_stamps_per_stream = 4};
    const DeviceConfig config;
    EXPECT_OK(Allocator::Create(holding.ref(), &config, 1, options, &allocator));
    EXPECT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(a.d.EventRecord(event, u));
    for (CUdeviceptr& each : plain) each = Get(64 * kKiB, s);
    for (CUdeviceptr& each : used) each = Get(64 * kKiB, s);
    EXPECT_OK(allocator->Free(Get(64 * kKiB, s)));
    EXPECT_OK(allocator->Free(Get(64 * kKiB, t)));
    EXPECT_OK(allocator->RecordUse(used[0], u));
    EXPECT_OK(allocator->RecordStream(used[1], u));
  }
  ~HeldCalls() override {
    EXPECT_OK(a.d.EventDestroy(event));
    EXPECT_OK(allocator->Close());
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(0, bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  void Everyday() {
    EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
    EXPECT_OK(allocator->Free(plain[0])) << "freed where it was not allocated";
    EXPECT_OK(allocator->RecordUse(used[2], u)) << allocator->LastErrorText();
    for (const CUdeviceptr each : used) EXPECT_OK(allocator->Free(each)) << allocator->LastErrorText();
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(allocator->Free(Get(64 * kKiB, t)));
      EXPECT_OK(allocator->Free(Get(64 * kKiB, s)));
    }
    EXPECT_OK(allocator->KeepAliveUntil(plain[1], event)) << allocator->LastErrorText();
    EXPECT_OK(allocator->Free(plain[1]));
    EXPECT_OK(allocator->Free(Get(12 * kMiB, t))) << "another stream's memory grows";
  }
  // `slow` stands still in the call while everything else goes on.
  template <typename Slow>
  void Hold(CallId call, Slow slow) {
    holding.HoldNext(call);
    std::thread holder([&] {
      EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
      EXPECT_OK(slow()) << allocator->LastErrorText();
    });
    holding.AwaitHeld();
    std::future<void> others = std::async(std::launch::async, [&] { Everyday(); });
    // Who is blocked is blocked for good, so how long this waits decides nothing.
    EXPECT_EQ(others.wait_for(std::chrono::seconds(60)), std::future_status::ready) << "held up";
    holding.LetGo();
    holder.join();
    others.get();
  }

  Allocating a;
  HoldingDriver holding{a.d};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
  CUevent event = nullptr;
  CUdeviceptr plain[2] = {};
  CUdeviceptr used[3] = {};
  std::unique_ptr<Allocator> allocator;
};

// Calls that come at once have a stream each; one after another they share one.
TEST_F(HeldCalls, KeepAliveUntilWaiting) {
  const CUdeviceptr kept = Get(64 * kKiB, s);
  const auto keep = [&] { return allocator->KeepAliveUntil(kept, event); };
  EXPECT_OK(keep());
  EXPECT_OK(keep());
  EXPECT_EQ(a.Live(driver::Kind::Stream), a.streams.size() + 1);
  Hold(CallId::StreamWaitEvent, keep);
  EXPECT_EQ(a.Live(driver::Kind::Stream), a.streams.size() + 2);
  for (int i = 0; i < 3; ++i) EXPECT_OK(keep());
  EXPECT_EQ(a.Live(driver::Kind::Stream), a.streams.size() + 2);
}

TEST_F(HeldCalls, KeepAliveUntilRecording) {
  const CUdeviceptr kept = Get(64 * kKiB, s);
  Hold(CallId::EventRecord, [&] { return allocator->KeepAliveUntil(kept, event); });
}

TEST_F(HeldCalls, KeepAliveUntilMakingItsStream) {
  const CUdeviceptr kept = Get(64 * kKiB, s);
  Hold(CallId::StreamCreate, [&] { return allocator->KeepAliveUntil(kept, event); });
}

TEST_F(HeldCalls, RecordUse) {
  const CUdeviceptr block = Get(64 * kKiB, s);
  Hold(CallId::EventRecord, [&] { return allocator->RecordUse(block, u); });
}

TEST_F(HeldCalls, Growing) {
  Hold(CallId::MemAlloc_v2, [&] {
    CUdeviceptr address = 0;
    return allocator->Allocate(0, 12 * kMiB, s, &address);
  });
}

TEST_F(HeldCalls, EmptyCacheReleasing) {
  EXPECT_OK(allocator->Free(Get(12 * kMiB, s)));
  Hold(CallId::MemFree_v2, [&] { return allocator->EmptyCache(); });
}

// What was lent is known to be free only when the whole context is through.
TEST_F(HeldCalls, EmptyCacheWaitingForTheContext) {
  EXPECT_OK(allocator->Free(Get(32 * kMiB, u)));
  EXPECT_OK(allocator->RetireStream(0, u));
  EXPECT_OK(a.d.StreamSynchronize(u));
  const CUdeviceptr lent = Get(32 * kMiB, t);
  a.Write(lent, 32 * kMiB, t);
  EXPECT_OK(allocator->Free(lent));
  Hold(CallId::CtxSynchronize_v2, [&] { return allocator->EmptyCache(); });
}

// While an event is being asked, others see that its use is over, or record more than there are events for: it is nobody else's meanwhile.
TEST_F(HeldCalls, AnEventThatIsBeingAskedIsNotRecordedAnew) {
  for (const bool is_over : {false, true}) {
    const CUdeviceptr block = Get(12 * kMiB, s);
    EXPECT_OK(allocator->RecordUse(block, u));
    EXPECT_OK(allocator->Free(block));
    holding.HoldNext(CallId::EventQuery);
    CUdeviceptr again = 0;
    std::thread asking([&] {
      EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
      EXPECT_OK(allocator->Allocate(0, 12 * kMiB, s, &again)) << allocator->LastErrorText();
    });
    holding.AwaitHeld();
    if (is_over) {
      EXPECT_OK(allocator->EmptyCache());
    }
    for (int i = 0; i < 8; ++i) EXPECT_OK(allocator->RecordUse(used[2], u));
    holding.LetGo();
    asking.join();
    EXPECT_OK(allocator->Free(again));
  }
}

// One recording has not returned, and a later one of the same stream has: only the whole context tells of both. That is not waited for
// while a capture may be open.
TEST_F(HeldCalls, EmptyCacheLeavesWhatAnOlderRecordingKeepsOpenToACapture) {
  const CUdeviceptr first = Get(64 * kKiB, s);
  const CUdeviceptr second = Get(12 * kMiB, s);
  holding.HoldNext(CallId::EventRecord);
  std::thread holder([&] {
    EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
    EXPECT_OK(allocator->RecordUse(first, u)) << allocator->LastErrorText();
  });
  holding.AwaitHeld();
  EXPECT_OK(allocator->RecordUse(second, u));
  EXPECT_OK(allocator->Free(second));
  PoolId pool;
  EXPECT_OK(allocator->CreatePool({}, &pool));
  EXPECT_OK(allocator->BeginAllocateToPool(0, pool, {}));
  EXPECT_OK(a.d.StreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(allocator->EmptyCache()) << allocator->LastErrorText();
  holding.LetGo();
  holder.join();
  CUgraph graph = nullptr;
  EXPECT_OK(a.d.StreamEndCapture(t, &graph));
  EXPECT_OK(a.d.GraphDestroy(graph));
  EXPECT_OK(allocator->EndAllocateToPool(0, pool));
  EXPECT_OK(allocator->ReleasePool(pool));
  Statistics then, now;
  allocator->GetStatistics(0, &then);
  EXPECT_OK(allocator->EmptyCache());
  allocator->GetStatistics(0, &now);
  EXPECT_EQ(then.reserved_bytes[0].current - now.reserved_bytes[0].current, static_cast<std::int64_t>(12 * kMiB));
}

}  // namespace
}  // namespace cuaudit::alloc::held_calls_test
