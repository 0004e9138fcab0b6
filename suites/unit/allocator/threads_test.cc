// SPDX-License-Identifier: MIT
// Many threads: on their own streams, on one, freeing what others allocated, using it, emptying the cache meanwhile.
#include <malloc.h>

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>

#include "allocator/lock.h"
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::threads_test {
namespace {

constexpr int kThreads = 4;
constexpr int kTurns = 1500;

// Whoever holds a block marks its bytes as its own in a table of the test; two holders of one byte are seen.
class Ledger {
 public:
  void Hold(CUdeviceptr address, std::size_t bytes) {
    const std::lock_guard<std::mutex> held(mutex_);
    const auto after = held_.lower_bound({address, 0});
    if (after != held_.end() && after->first < address + bytes) ADD_FAILURE() << "two live blocks overlap";
    if (after != held_.begin() && std::prev(after)->first + std::prev(after)->second > address) ADD_FAILURE() << "two live blocks overlap";
    held_.insert({address, bytes});
  }
  void Release(CUdeviceptr address, std::size_t bytes) {
    const std::lock_guard<std::mutex> held(mutex_);
    EXPECT_EQ(held_.erase({address, bytes}), 1U);
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<CUdeviceptr, std::size_t>> held_;
};

void Churn(Allocating& a, Ledger& ledger, StreamRef stream, StreamRef user, unsigned seed) {
  std::mt19937 random(seed);
  std::array<std::pair<CUdeviceptr, std::size_t>, 16> slot{};
  for (int turn = 0; turn < kTurns; ++turn) {
    auto& [address, bytes] = slot[random() % slot.size()];
    if (address != 0) {
      if (user && random() % 8 == 0) {
        EXPECT_OK(a->RecordUse(address, user));
      }
      ledger.Release(address, bytes);
      EXPECT_OK(a->Free(address));
    }
    bytes = std::size_t{1} << (random() % 13 + 9);
    EXPECT_OK(a->Allocate(bytes, stream, &address));
    ledger.Hold(address, bytes);
  }
  for (auto& [address, bytes] : slot) {
    if (address != 0) ledger.Release(address, bytes);
    EXPECT_OK(a->Free(address));
  }
}

class Threads : public testing::TestWithParam<Reuse> {
 protected:
  static Options Chosen() { return {.reuse = GetParam()}; }
  void ExpectNothingLive() {
    const Statistics stats = a.Stats();
    EXPECT_EQ(stats.allocation[0].current, 0);
    EXPECT_EQ(stats.allocated_bytes[0].current, 0);
    EXPECT_EQ(stats.requested_bytes[0].current, 0);
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(), 0);
  }
  Allocating a{Chosen(), {.schedule = sim::Schedule::Fifo, .device_bytes = 1024 * kMiB}};
  Ledger ledger;
};

TEST_P(Threads, OnTheirOwnStreams) {
  std::vector<StreamRef> refs;
  for (int i = 0; i < kThreads; ++i) refs.push_back(a.Ref(a.Stream()));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Churn(a, ledger, refs[static_cast<std::size_t>(i)], refs[static_cast<std::size_t>((i + 1) % kThreads)], static_cast<unsigned>(i));
    });
  for (std::thread& thread : threads) thread.join();
  ExpectNothingLive();
}

TEST_P(Threads, OnOneStream) {
  const StreamRef ref = a.Ref(a.Stream());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { Churn(a, ledger, ref, StreamRef(), static_cast<unsigned>(i)); });
  for (std::thread& thread : threads) thread.join();
  ExpectNothingLive();
}

TEST_P(Threads, WhileTheCacheIsEmptied) {
  const StreamRef ref = a.Ref(a.Stream());
  const StreamRef user = a.Ref(a.Stream());
  std::atomic<bool> done{false};
  std::thread emptier([&] {
    Statistics stats;
    Snapshot snapshot;
    for (int turn = 0; turn < 200 && !done.load(); ++turn) {
      EXPECT_OK(a->EmptyCache());
      a->GetStatistics(0, &stats);
      EXPECT_OK(a->TakeSnapshot(&snapshot));
      for (const SnapshotSegment& segment : snapshot.segments) {
        CUdeviceptr at = segment.address;
        for (const SnapshotBlock& block : segment.blocks) {
          EXPECT_EQ(block.address, at);
          at += block.size;
        }
        EXPECT_EQ(at, segment.address + segment.total_size);
      }
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&, i] { Churn(a, ledger, ref, user, static_cast<unsigned>(i)); });
  for (std::thread& thread : threads) thread.join();
  done.store(true);
  emptier.join();
  ExpectNothingLive();
}

TEST_P(Threads, FreedByAnother) {
  const StreamRef ref = a.Ref(a.Stream());
  std::array<std::atomic<CUdeviceptr>, 64> ring{};
  std::thread consumer([&] {
    for (int turn = 0; turn < 4 * kTurns; ++turn) {
      CUdeviceptr address = 0;
      while ((address = ring[static_cast<std::size_t>(turn) % ring.size()].exchange(0)) == 0) std::this_thread::yield();
      EXPECT_OK(a->Free(address));
    }
  });
  for (int turn = 0; turn < 4 * kTurns; ++turn) {
    CUdeviceptr address = 0;
    EXPECT_OK(a->Allocate(64 * kKiB, ref, &address));
    while (ring[static_cast<std::size_t>(turn) % ring.size()].load() != 0) std::this_thread::yield();
    ring[static_cast<std::size_t>(turn) % ring.size()].store(address);
  }
  consumer.join();
  EXPECT_LE(a.Reserved(), static_cast<std::int64_t>(16 * kMiB));  // 66 blocks at a time, and what waits to be collected
  ExpectNothingLive();
}

TEST_P(Threads, OneBlockUsedFromMany) {
  const StreamRef ref = a.Ref(a.Stream());
  std::vector<StreamRef> users;
  for (int i = 0; i < kThreads; ++i) users.push_back(a.Ref(a.Stream()));
  for (int round = 0; round < 20; ++round) {
    CUdeviceptr address = 0;
    EXPECT_OK(a->Allocate(4 * kMiB, ref, &address));
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int turn = 0; turn < 20; ++turn) EXPECT_OK(a->RecordUse(address, users[static_cast<std::size_t>((i + turn) % kThreads)]));
      });
    }
    for (std::thread& thread : threads) thread.join();
    a.Drop(address);
  }
  EXPECT_EQ(a.Stats().uses_recorded, 20U * 20 * kThreads);
  ExpectNothingLive();
}

TEST_P(Threads, AnEndedThreadsCacheGoesToTheNext) {
  const StreamRef ref = a.Ref(a.Stream());
  CUdeviceptr first = 0;
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      CUdeviceptr address = 0;
      EXPECT_OK(a->Allocate(64 * kKiB, ref, &address));
      if (first == 0) first = address;
      EXPECT_EQ(address, first);
      EXPECT_OK(a->Free(address));
    }).join();
  }
  EXPECT_EQ(a.Stats().thread_caches, 1U);
  ExpectNothingLive();
}

TEST_P(Threads, OnlyOneOfManyFreesCounts) {
  const StreamRef ref = a.Ref(a.Stream());
  int successes = 0;
  for (int round = 0; round < 100; ++round) {
    CUdeviceptr address = 0;
    EXPECT_OK(a->Allocate(round % 2 == 0 ? 4096 : 2 * kMiB, ref, &address));
    std::atomic<int> freed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { freed += a->Free(address) == CUDA_SUCCESS; });
    for (std::thread& thread : threads) thread.join();
    successes += freed;
  }
  EXPECT_EQ(successes, 100);
  ExpectNothingLive();
}

INSTANTIATE_TEST_SUITE_P(All, Threads, testing::Values(Reuse::Poll, Reuse::Wait),
                         [](const testing::TestParamInfo<Reuse>& chosen) { return chosen.param == Reuse::Poll ? "Poll" : "Wait"; });

#ifndef NDEBUG
// Whoever takes locks against the table of lock_order.def may wait for ever one day, and is told so at once.
TEST(LockOrderDeathTest, TakingAnEarlierLockEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Lock later(LockRank::Arena);
  Lock earlier(LockRank::Growing);
  later.lock();
  EXPECT_DEATH(earlier.lock(), "Arena::growing is taken by a thread that holds Arena::lock");
  EXPECT_TRUE(earlier.try_lock()) << "trying waits for nobody";
  earlier.unlock();
  later.unlock();
  earlier.lock();
  later.lock();
  later.unlock();
  earlier.unlock();
}
#endif

// Held long enough that those who wait for it sleep.
TEST(Lock, LetsInOneAtATime) {
  Lock lock;
  int inside = 0;
  long turns = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 300; ++turn) {
        const Held held(lock);
        EXPECT_EQ(++inside, 1);
        for (int wait = 0; turn % 100 == 0 && wait < 50; ++wait) std::this_thread::yield();
        ++turns;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, 300L * kThreads);
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
}

TEST(ThreadsOfSeveralAllocators, DoNotMixThemUp) {
  std::thread([] {
    std::vector<std::unique_ptr<Allocating>> many;
    std::vector<CUdeviceptr> held;
    for (int i = 0; i < 6; ++i) many.push_back(std::make_unique<Allocating>());
    std::vector<CUstream> streams;
    for (const auto& one : many) streams.push_back(one->Stream());
    for (int turn = 0; turn < 60; ++turn) {
      const std::size_t i = static_cast<std::size_t>(turn) % many.size();
      EXPECT_OK(many[i]->d.CtxSetCurrent(many[i]->contexts[0]));
      const CUdeviceptr address = many[i]->Get(4096, streams[i]);
      EXPECT_NE((*many[(i + 1) % many.size()])->Free(address), CUDA_SUCCESS);
      many[i]->Drop(address);
    }
    for (const auto& one : many) EXPECT_EQ(one->Reserved(), static_cast<std::int64_t>(2 * kMiB));
    many.erase(many.begin() + 2);  // an allocator that ends before the thread does
    EXPECT_OK(many[0]->d.CtxSetCurrent(many[0]->contexts[0]));
    many[0]->Drop(many[0]->Get(4096, streams[0]));
  }).join();
}

// A driver whose releases of memory call a function of the thread's first.
class HookedReleases {
 public:
  explicit HookedReleases(driver::DriverRef next) : table_(*next.table), self_(next.self) {
    genuine_free = std::exchange(table_.entry[driver::Index(driver::CallId::MemFree_v2)], reinterpret_cast<driver::Entry>(&Free));
    genuine_unmap = std::exchange(table_.entry[driver::Index(driver::CallId::MemUnmap)], reinterpret_cast<driver::Entry>(&Unmap));
  }
  driver::DriverRef ref() { return {&table_, self_}; }
  inline static thread_local std::function<void()> first;

 private:
  static void Call() {
    if (const std::function<void()> hook = std::exchange(first, nullptr); hook) hook();
  }
  static CUresult Free(void* self, CUdeviceptr address) {
    Call();
    return reinterpret_cast<decltype(&Free)>(genuine_free)(self, address);
  }
  static CUresult Unmap(void* self, CUdeviceptr address, std::size_t bytes) {
    Call();
    return reinterpret_cast<decltype(&Unmap)>(genuine_unmap)(self, address, bytes);
  }
  inline static driver::Entry genuine_free = nullptr;
  inline static driver::Entry genuine_unmap = nullptr;
  driver::DriverTable table_;
  void* self_;
};

// What one thread is about to give back to the driver is in nobody's set: another that finds the device full waits until it is given back.
TEST(ThreadsOnAFullDevice, WaitForWhatAnotherIsGivingBack) {
  for (const bool expandable : {false, true}) {
    Allocating a({}, {.schedule = sim::Schedule::Fifo, .device_bytes = 128 * kMiB});
    HookedReleases hooked(a.d);
    Options options = {.expandable_segments = expandable};
    const DeviceConfig config;
    std::unique_ptr<Allocator> allocator;
    ASSERT_OK(Allocator::Create(hooked.ref(), &config, 1, options, &allocator));
    const CUstream s = a.Stream();
    const CUstream t = a.Stream();
    CUdeviceptr x = 0;
    ASSERT_OK(allocator->Allocate(0, 80 * kMiB, s, &x));
    ASSERT_OK(allocator->Free(x));
    std::atomic<bool> is_releasing{false};
    std::atomic<bool> is_answered{false};
    std::thread other([&] {
      EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
      HookedReleases::first = [&] {
        is_releasing.store(true);
        // The other thread gets as far as it can.
        for (int turn = 0; turn < 2000 && !is_answered.load(); ++turn) std::this_thread::yield();
      };
      EXPECT_OK(allocator->EmptyCache());
      EXPECT_OK(a.d.CtxSetCurrent(nullptr));
    });
    while (!is_releasing.load()) std::this_thread::yield();
    CUdeviceptr y = 0;
    EXPECT_OK(allocator->Allocate(0, 80 * kMiB, t, &y)) << allocator->LastErrorText();
    is_answered.store(true);
    other.join();
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    EXPECT_EQ(statistics.num_ooms, 0);
    EXPECT_OK(allocator->Free(y));
    EXPECT_OK(allocator->Close());
  }
}

// Some 2 KiB of cache an allocator, which its thread once kept until its own end.
TEST(ThreadsOfSeveralAllocators, LeaveTheirThreadNothing) {
  const auto rounds = [](int count) {
    for (int i = 0; i < count; ++i) {
      Allocating one;
      const CUstream stream = one.Stream();
      one.Drop(one.Get(4096, stream));
    }
    return mallinfo2().uordblks;
  };
  const std::size_t before = rounds(4);
  if (before == 0) GTEST_SKIP() << "this heap does not say how much of it is used";
  EXPECT_LT(rounds(40), before + 40 * 1024);
}

// As a training step does, whose backward pass has a thread of its own: what one thread allocates, another frees, 40 times 160 MiB.
TEST(Statistics, PeaksHoldWhenAnotherThreadFrees) {
  for (const bool frees_first : {false, true}) {
    Allocating a;
    CUstream s = a.Stream();
    const auto turn = [&](std::vector<CUdeviceptr> blocks) {
      for (const CUdeviceptr block : blocks) EXPECT_OK(a->Free(block));
    };
    std::vector<CUdeviceptr> blocks;
    std::binary_semaphore ready(0);
    std::binary_semaphore done(0);
    const CUdeviceptr first = a.Get(2 * kMiB, s);
    std::thread other([&] {
      if (frees_first) turn({first});
      done.release();
      for (int i = 0; i < 40; ++i) {
        ready.acquire();
        turn(blocks);
        done.release();
      }
    });
    done.acquire();
    for (int i = 0; i < 40; ++i) {
      blocks.clear();
      for (int block = 0; block < 16; ++block) blocks.push_back(a.Get(10 * kMiB, s));
      ready.release();
      done.acquire();
    }
    other.join();
    if (!frees_first) a.Drop(first);
    const Statistics seen = a.Stats();
    for (const Stat* stat : {&seen.allocated_bytes[0], &seen.requested_bytes[0]}) {
      EXPECT_GE(stat->peak, static_cast<std::int64_t>(96 * kMiB)) << frees_first;
      EXPECT_LE(stat->peak, static_cast<std::int64_t>(226 * kMiB)) << frees_first;
      EXPECT_LE(stat->peak, seen.reserved_bytes[0].peak) << frees_first;
      EXPECT_EQ(stat->current, 0) << frees_first;
    }
  }
}

}  // namespace
}  // namespace cuaudit::alloc::threads_test
