// SPDX-License-Identifier: MIT
// Recordings of uses that fail, beside others of the same stream that do not.
#include <atomic>
#include <functional>
#include <thread>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::failed_uses_test {
namespace {

using driver::CallId;

// What a thread's cuEventRecord does first; an error is its answer. Any thread.
thread_local std::function<CUresult()> before_record;

class FailedUses : public testing::Test {
 protected:
  FailedUses() : table_(*a.d.table) {
    genuine_ = reinterpret_cast<Record>(table_.entry[driver::Index(CallId::EventRecord)]);
    table_.entry[driver::Index(CallId::EventRecord)] = reinterpret_cast<driver::Entry>(&Through);
    const DeviceConfig config;
    Options options;
    options.reuse = Reuse::Poll;
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
}  // namespace cuaudit::alloc::failed_uses_test
