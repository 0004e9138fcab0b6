// SPDX-License-Identifier: MIT
// Everything at once: threads that come and go, blocks handed from one to another, uses told of from several threads, streams that end,
// while others empty the cache, trim it, read statistics and take snapshots. Meant for ThreadSanitizer; the world's oracle listens too.
#include <array>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::stress_test {
namespace {

constexpr int kGenerations = 3;
constexpr int kThreads = 3;
constexpr int kTurns = 250;

struct Handed {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CUstream owner = nullptr;
};

// Blocks that their allocating thread left for whoever comes by.
class Table {
 public:
  Handed Swap(std::size_t at, const Handed& mine) {
    const std::lock_guard<std::mutex> held(mutex_);
    const Handed was = places_[at % places_.size()];
    places_[at % places_.size()] = mine;
    return was;
  }
  std::size_t size() const { return places_.size(); }

 private:
  std::mutex mutex_;
  std::array<Handed, 8> places_{};
};

// Telling of a stream that only this thread gives work to, so that what was told is what was enqueued.
void Work(const Allocating& a, Table& table, CUstream shared, CUstream own, CUstream user, unsigned seed) {
  EXPECT_OK(a.d.CtxSetCurrent(a.contexts[0]));
  std::mt19937 random(seed);
  for (int turn = 0; turn < kTurns; ++turn) {
    const unsigned draw = static_cast<unsigned>(random());
    Handed block;
    block.owner = draw % 3 == 0 ? shared : own;
    block.bytes = draw % 5 == 0 ? 3 * kMiB : std::size_t{512} << (draw % 10);
    const CUresult result = a->Allocate(0, block.bytes, block.owner, &block.address);
    EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) << a.LastText();
    if (result != CUDA_SUCCESS) continue;
    if (block.owner == own) {
      EXPECT_OK(a.d.MemsetD8Async(block.address, 1, 512, own));
    }
    if (block.owner == own && draw % 4 == 1) {
      a.Order(own, user);
      EXPECT_OK(a.d.MemsetD8Async(block.address, 2, 512, user));
      EXPECT_OK(a->RecordUse(block.address, user));
    }
    if (draw % 16 == 3) {
      EXPECT_OK(a->RecordStream(block.address, user));
    }
    // Some are freed by another thread, which knows nothing of their streams.
    const Handed other = draw % 2 == 0 ? table.Swap(draw >> 8, block) : block;
    if (other.address != 0) {
      EXPECT_OK(a->Free(other.address));
    }
  }
  EXPECT_OK(a.d.CtxSetCurrent(nullptr));
}

enum class Growth { Segments, Expandable, Moving };
using Case = std::tuple<Reuse, CrossStream, Growth>;
class Stress : public testing::TestWithParam<Case> {};

TEST_P(Stress, ThreadsComeAndGoWhileTheCacheIsEmptied) {
  Options options;
  options.reuse = std::get<0>(GetParam());
  options.cross_stream = std::get<1>(GetParam());
  options.expandable_segments = std::get<2>(GetParam()) != Growth::Segments;
  if (std::get<2>(GetParam()) == Growth::Moving) {
    options.remap_budget = 1.0;
    options.page_size = 2 * kMiB;
    options.trust_stream_handles = true;
  }
  Allocating a(options, {.schedule = sim::Schedule::Fifo, .device_bytes = 512 * kMiB});
  CUstream shared = a.Stream();
  std::array<CUstream, kThreads> own{};
  std::array<CUstream, kThreads> user{};
  for (CUstream& stream : user) stream = a.Stream();
  Table table;
  std::atomic<bool> done{false};
  std::thread keeper([&] {
    Statistics statistics;
    Snapshot snapshot;
    for (int turn = 0; !done.load(); ++turn) {
      if (turn % 4 == 0) {
        EXPECT_OK(a->EmptyCache());
      }
      if (turn % 4 == 2) {
        EXPECT_OK(a->Trim(0, 8 * kMiB));
      }
      a->GetStatistics(0, &statistics);
      a->ResetPeaks(0);
      EXPECT_OK(a->TakeSnapshot(&snapshot));
      EXPECT_GE(statistics.reserved_bytes[0].current, 0);
      std::this_thread::yield();
    }
  });
  for (int generation = 0; generation < kGenerations; ++generation) {
    for (CUstream& stream : own) stream = a.Stream();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i)
      threads.emplace_back(
          [&, i] { Work(a, table, shared, own[i], user[i], static_cast<unsigned>(generation * kThreads) + static_cast<unsigned>(i)); });
    for (std::thread& thread : threads) thread.join();
    for (const CUstream stream : own) {
      EXPECT_OK(a->RetireStream(0, stream));
      a.Destroy(stream);
    }
  }
  done.store(true);
  keeper.join();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Handed left = table.Swap(i, {});
    if (left.address != 0) {
      EXPECT_OK(a->Free(left.address));
    }
  }
  const Statistics statistics = a.Stats();
  EXPECT_EQ(statistics.allocation[0].current, 0);
  EXPECT_EQ(statistics.allocated_bytes[0].current, 0);
  EXPECT_EQ(statistics.requested_bytes[0].current, 0);
  EXPECT_EQ(statistics.double_frees + statistics.foreign_pointers, 0U);
  EXPECT_GT(statistics.uses_recorded, 100U);
  if (options.remap_budget <= 0.0) {
    EXPECT_EQ(statistics.pages_moved, 0U);
  }
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
}

std::string NameOfCase(const testing::TestParamInfo<Case>& chosen) {
  const char* const cross[] = {"Never", "Ready", "Wait"};
  const char* const growth[] = {"Segments", "Expandable", "Moving"};
  return std::string(std::get<0>(chosen.param) == Reuse::Poll ? "Poll" : "Wait") +
         cross[static_cast<std::size_t>(std::get<1>(chosen.param))] + growth[static_cast<std::size_t>(std::get<2>(chosen.param))];
}
INSTANTIATE_TEST_SUITE_P(
    All, Stress,
    testing::Values(Case{Reuse::Poll, CrossStream::Never, Growth::Segments}, Case{Reuse::Wait, CrossStream::Wait, Growth::Segments},
                    Case{Reuse::Poll, CrossStream::Ready, Growth::Expandable}, Case{Reuse::Wait, CrossStream::Never, Growth::Expandable},
                    Case{Reuse::Poll, CrossStream::Never, Growth::Moving}, Case{Reuse::Wait, CrossStream::Wait, Growth::Moving}),
    NameOfCase);

}  // namespace
}  // namespace cuaudit::alloc::stress_test
