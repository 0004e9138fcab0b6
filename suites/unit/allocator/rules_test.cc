// SPDX-License-Identifier: MIT
// Sizes, segments, splitting and merging, as PyTorch's users know them.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::rules_test {
namespace {

TEST(Rules, SizesAreMultiplesOf512) {
  Allocating a;
  CUstream s = a.Stream();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{511}, std::size_t{512}, std::size_t{513}, std::size_t{1000000}}) {
    const CUdeviceptr address = a.Get(bytes, s);
    CUdeviceptr base = 0;
    std::size_t size = 0;
    ASSERT_TRUE(a->FindBlock(address, &base, &size));
    EXPECT_EQ(base, address);
    EXPECT_EQ(size, (bytes + 511) / 512 * 512);
    EXPECT_EQ(address % 512, 0U);
    a.Drop(address);
  }
}

TEST(Rules, SegmentsOf2And20MiBAndTheirOwn) {
  Allocating a;
  CUstream s = a.Stream();
  const auto grows_by = [&](std::size_t bytes, std::size_t by) {
    const std::int64_t before = a.Reserved();
    (void)a.Get(bytes, s);
    EXPECT_EQ(a.Reserved() - before, static_cast<std::int64_t>(by)) << bytes;
  };
  grows_by(1 * kMiB, 2 * kMiB);
  grows_by(512 * kKiB, 0);
  grows_by(1 * kMiB + 1, 20 * kMiB);
  grows_by(9 * kMiB + 512 * kKiB, 0);
  grows_by(10 * kMiB - 1024, 20 * kMiB);  // what is left of the first is too small
  grows_by(10 * kMiB, 0);                 // but this fits into what is left of the second
  grows_by(10 * kMiB, 10 * kMiB);
  grows_by(11 * kMiB, 12 * kMiB);
  const Statistics stats = a.Stats();
  EXPECT_EQ(stats.segment[1].current, 1);
  EXPECT_EQ(stats.segment[2].current, 4);
  EXPECT_EQ(stats.num_device_alloc, 5);
}

TEST(Rules, TheSmallPoolAndTheLargeNeverMix) {
  Allocating a;
  CUstream s = a.Stream();
  const CUdeviceptr large = a.Get(2 * kMiB, s);
  a.Drop(large);
  const std::int64_t before = a.Reserved();
  (void)a.Get(1 * kMiB, s);
  EXPECT_EQ(a.Reserved() - before, static_cast<std::int64_t>(2 * kMiB));
}

TEST(Rules, ALargeBlockIsSplitOnlyWhenMoreThanAMiBIsLeft) {
  Allocating a;
  CUstream s = a.Stream();
  CUdeviceptr base = 0;
  std::size_t size = 0;
  const CUdeviceptr first = a.Get(12 * kMiB, s);
  a.Drop(first);
  ASSERT_OK(a->EmptyCache());
  const CUdeviceptr whole = a.Get(12 * kMiB, s);
  a.Drop(whole);
  const CUdeviceptr most = a.Get(11 * kMiB, s);
  EXPECT_EQ(most, whole);
  ASSERT_TRUE(a->FindBlock(most, &base, &size));
  EXPECT_EQ(size, 12 * kMiB);
  a.Drop(most);
  const CUdeviceptr part = a.Get(11 * kMiB - 512, s);
  ASSERT_TRUE(a->FindBlock(part, &base, &size));
  EXPECT_EQ(size, 11 * kMiB - 512);
}

TEST(Rules, NeighboursMergeInWhateverOrderTheyAreFreed) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Allocating a;
    CUstream s = a.Stream();
    CUdeviceptr piece[4];
    for (CUdeviceptr& one : piece) one = a.Get(512 * kKiB, s);
    for (const int i : order) a.Drop(piece[i]);
    EXPECT_EQ(a.Get(1 * kMiB, s), piece[0]);  // flushes the cache of this thread, merges
    EXPECT_EQ(a.Get(1 * kMiB, s), piece[2]);
    EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(2 * kMiB));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Rules, TheBestFitIsTheSmallestAndThenTheLowest) {
  Allocating a;
  CUstream s = a.Stream();
  CUdeviceptr piece[7];
  const std::size_t sizes[7] = {64 * kKiB, 512, 32 * kKiB, 512, 64 * kKiB, 512, 32 * kKiB};
  for (int i = 0; i < 7; ++i) piece[i] = a.Get(sizes[i], s);
  const CUdeviceptr tail = a.Get(512, s);
  for (const int i : {0, 2, 4, 6}) a.Drop(piece[i]);
  EXPECT_EQ(a.Get(31 * kKiB, s), piece[2]);
  EXPECT_EQ(a.Get(31 * kKiB, s), piece[6]);
  EXPECT_EQ(a.Get(31 * kKiB, s), piece[0]);
  a.Drop(tail);
}

TEST(Rules, OneStreamsBlocksAreNotAnothers) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr first = a.Get(5 * kMiB, s);
  a.Drop(first);
  EXPECT_NE(a.Get(5 * kMiB, t), first);
  EXPECT_EQ(a.Get(5 * kMiB, s), first);
}

TEST(Rules, PowerOfTwoDivisions) {
  Options options;
  options.roundup_power2_divisions.fill(4);
  Allocating a(options);
  CUstream s = a.Stream();
  const auto size_of = [&](std::size_t bytes) {
    const CUdeviceptr address = a.Get(bytes, s);
    CUdeviceptr base = 0;
    std::size_t size = 0;
    EXPECT_TRUE(a->FindBlock(address, &base, &size));
    return size;
  };
  EXPECT_EQ(size_of(1200), 1536U);  // up to 512 * 4: multiples of 512
  EXPECT_EQ(size_of(2048), 2048U);
  EXPECT_EQ(size_of(2049), 2560U);
  EXPECT_EQ(size_of(4 * kMiB + 1), 5 * kMiB);
  EXPECT_EQ(size_of(7 * kMiB + 1), 8 * kMiB);
  EXPECT_EQ(size_of(8 * kMiB), 8 * kMiB);
}

TEST(Rules, BlocksAboveTheMaximalSplitSizeAreGivenOutWhole) {
  Allocating a({.max_split_size = 32 * kMiB});
  CUstream s = a.Stream();
  const CUdeviceptr oversize = a.Get(64 * kMiB, s);
  a.Drop(oversize);
  EXPECT_EQ(a.Stats().oversize_segments.current, 1);
  EXPECT_NE(a.Get(24 * kMiB, s), oversize);  // smaller requests leave it alone
  const CUdeviceptr near = a.Get(50 * kMiB, s);
  EXPECT_EQ(near, oversize);  // at most 20 MiB larger
  CUdeviceptr base = 0;
  std::size_t size = 0;
  ASSERT_TRUE(a->FindBlock(near, &base, &size));
  EXPECT_EQ(size, 64 * kMiB);
  a.Drop(near);
  EXPECT_NE(a.Get(40 * kMiB, s), oversize);
}

TEST(Rules, OversizeBlocksGoBackBeforeTheRest) {
  Allocating a({.max_split_size = 32 * kMiB});
  CUstream s = a.Stream();
  a.Drop(a.Get(128 * kMiB, s));
  a.Drop(a.Get(30 * kMiB, s));
  (void)a.Get(100 * kMiB, s);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(130 * kMiB));
  EXPECT_EQ(a.Stats().num_alloc_retries, 1);
  EXPECT_EQ(a.Stats().num_sync_all_streams, 0);
}

TEST(Rules, GarbageIsWhatHasBeenPassedOverForLongest) {
  Options options;
  options.memory_fraction = 0.5;  // of 256 MiB
  options.garbage_collection_threshold = 0.5;
  Allocating a(options);
  CUstream s = a.Stream();
  a.Drop(a.Get(40 * kMiB, s));
  for (int i = 0; i < 8; ++i) a.Drop(a.Get(8 * kMiB + static_cast<std::size_t>(i) * 512, s));
  const std::int64_t frees = a.Stats().num_device_free;
  (void)a.Get(42 * kMiB, s);
  EXPECT_EQ(a.Stats().num_device_free, frees + 1);
  EXPECT_EQ(a.Stats().num_alloc_retries, 0);
}

TEST(Rules, WhatWasFreedLatelyIsNoGarbage) {
  Options options = {.memory_fraction = 0.5, .garbage_collection_threshold = 0.5};
  Allocating a(options);  // more than 64 MiB are too much
  CUstream s = a.Stream();
  const CUdeviceptr x = a.Get(30 * kMiB, s);
  const CUdeviceptr y = a.Get(30 * kMiB, s);
  a.Drop(x < y ? x : y);
  for (std::size_t i = 1; i <= 20; ++i) a.Drop(a.Get(512 * i, s));
  a.Drop(x < y ? y : x);
  a.Drop(a.Get(32 * kMiB, s));
  EXPECT_EQ(a.Get(30 * kMiB, s), x < y ? y : x) << "the other one went";
}

TEST(Rules, GarbageIsLookedForOnAllStreams) {
  Options options;
  options.memory_fraction = 0.5;  // of 256 MiB
  options.garbage_collection_threshold = 0.5;
  Allocating a(options);
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  a.Drop(a.Get(40 * kMiB, t));
  (void)a.Get(512, t);  // from here on the other is seen to be free
  for (int i = 0; i < 8; ++i) a.Drop(a.Get(8 * kMiB + static_cast<std::size_t>(i) * 512, s));
  (void)a.Get(42 * kMiB, s);
  EXPECT_EQ(a.Stats().num_device_free, 1);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(64 * kMiB));
}

TEST(Rules, TheFractionOfMemoryIsALimit) {
  Allocating a({.memory_fraction = 0.25});
  CUstream s = a.Stream();
  CUdeviceptr none = 1;
  EXPECT_EQ(a->Allocate(0, 65 * kMiB, s, &none), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(none, 0U);
  EXPECT_EQ(a->LastOutOfMemory().driver_result, CUDA_SUCCESS);
  EXPECT_EQ(a->LastOutOfMemory().limit, 64 * kMiB);
  EXPECT_THAT(a.LastText(), testing::HasSubstr("refused by the limit"));
  const CUdeviceptr most = a.Get(64 * kMiB, s);
  a.Drop(most);
  EXPECT_EQ(a->SetMemoryFraction(0, 0.0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a->SetMemoryFraction(1, 0.5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(a->SetMemoryFraction(0, 1.0));
  (void)a.Get(128 * kMiB, s);
}

TEST(Rules, StatisticsAddUp) {
  Allocating a;
  CUstream s = a.Stream();
  const CUdeviceptr small = a.Get(1000, s);
  const CUdeviceptr large = a.Get(3 * kMiB, s);
  Statistics stats = a.Stats();
  EXPECT_EQ(stats.allocation[0].current, 2);
  EXPECT_EQ(stats.allocated_bytes[1].current, 1024);
  EXPECT_EQ(stats.requested_bytes[1].current, 1000);
  EXPECT_EQ(stats.allocated_bytes[2].current, static_cast<std::int64_t>(3 * kMiB));
  EXPECT_EQ(stats.reserved_bytes[0].current, static_cast<std::int64_t>(22 * kMiB));
  EXPECT_EQ(stats.inactive_split_bytes[0].current, static_cast<std::int64_t>(19 * kMiB) - 1024);
  a.Drop(large);
  (void)a.Get(2 * kMiB, s);
  stats = a.Stats();
  EXPECT_EQ(stats.allocated_bytes[0].peak, static_cast<std::int64_t>(3 * kMiB) + 1024);
  EXPECT_EQ(stats.allocated_bytes[0].current, static_cast<std::int64_t>(2 * kMiB) + 1024);
  EXPECT_EQ(stats.allocated_bytes[0].allocated - stats.allocated_bytes[0].freed, stats.allocated_bytes[0].current);
  a->ResetPeaks(0);
  a->ResetAccumulated(0);
  stats = a.Stats();
  EXPECT_EQ(stats.allocated_bytes[0].peak, stats.allocated_bytes[0].current);
  EXPECT_EQ(stats.allocation[0].allocated, 0);
  a.Drop(small);
  EXPECT_EQ(a.Stats().allocation[0].freed, 1);
}

// What there is at most is compared only where it can have become more. Looked at now and then, since a look ends what is just freed.
TEST(Rules, PeaksAreThoseOfEachMoment) {
  Allocating a;
  CUstream s = a.Stream();
  const StreamRef ref = a.Ref(s);
  constexpr std::size_t kSizes[] = {700, 1000, 3 * kMiB - 100, 3 * kMiB};  // two of each rounded size
  struct Live {
    CUdeviceptr address;
    std::array<std::int64_t, 3> adds;  // blocks, bytes, bytes requested
    std::size_t kind;
  };
  std::vector<Live> live;
  std::int64_t current[3][kPoolKinds] = {};
  std::int64_t peak[3][kPoolKinds] = {};
  const auto add = [&](const Live& one, std::int64_t sign) {
    for (std::size_t what = 0; what < 3; ++what) {
      for (const std::size_t kind : {std::size_t{0}, one.kind})
        peak[what][kind] = std::max(peak[what][kind], current[what][kind] += sign * one.adds[what]);
    }
  };
  std::mt19937 random(7);
  for (int turn = 0; turn < 60'000; ++turn) {
    const unsigned choice = random() % 16;
    if (choice == 0) {
      a->ResetPeaks(0);
      std::copy(&current[0][0], &current[0][0] + 3 * kPoolKinds, &peak[0][0]);
    } else if (choice < 3) {
      const Statistics stats = a.Stats();
      for (std::size_t kind = 0; kind < kPoolKinds; ++kind) {
        std::size_t what = 0;
        for (const StatArray* each : {&stats.allocation, &stats.allocated_bytes, &stats.requested_bytes}) {
          ASSERT_EQ((*each)[kind].current, current[what][kind]) << turn << " " << what << " " << kind;
          ASSERT_EQ((*each)[kind].peak, peak[what][kind]) << turn << " " << what << " " << kind;
          ++what;
        }
      }
    } else if (live.size() < 8 && (live.empty() || choice % 2 == 0)) {
      const std::size_t bytes = kSizes[random() % std::size(kSizes)];
      Live one{0, {1, 0, static_cast<std::int64_t>(bytes)}, bytes > kMiB ? std::size_t{2} : std::size_t{1}};
      ASSERT_OK(a->Allocate(bytes, ref, &one.address));
      CUdeviceptr base = 0;
      std::size_t size = 0;
      ASSERT_TRUE(a->FindBlock(one.address, &base, &size));
      one.adds[1] = static_cast<std::int64_t>(size);
      add(one, 1);
      live.push_back(one);
    } else if (!live.empty()) {
      const std::size_t at = random() % 2 == 0 ? live.size() - 1 : random() % live.size();
      add(live[at], -1);
      a.Drop(live[at].address);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (const Live& one : live) a.Drop(one.address);
}

TEST(Rules, TheLadderEndsWithAFullAccount) {
  Allocating a;
  CUstream s = a.Stream();
  struct Observed {
    int calls = 0;
    OutOfMemory account;
  } observed;
  ASSERT_OK(a->AddOomObserver({&observed, [](void* self, const OutOfMemory& account) noexcept {
                                 ++static_cast<Observed*>(self)->calls;
                                 static_cast<Observed*>(self)->account = account;
                               }}));
  (void)a.Get(100 * kMiB, s);
  CUdeviceptr none = 1;
  EXPECT_EQ(a->Allocate(0, 200 * kMiB, s, &none), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(observed.calls, 1);
  EXPECT_EQ(observed.account.requested, 200 * kMiB);
  EXPECT_EQ(observed.account.allocated, 100 * kMiB);
  EXPECT_EQ(observed.account.reserved, 100 * kMiB);
  EXPECT_EQ(observed.account.driver_result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(observed.account.device_total, 256 * kMiB);
  EXPECT_EQ(a.Stats().num_ooms, 1);
  EXPECT_EQ(a.Stats().num_sync_all_streams, 1);
}

TEST(Rules, ACallbackThatFreesIsAskedBeforeTheDriver) {
  Allocating a;
  CUstream s = a.Stream();
  struct Holder {
    Allocator* allocator;
    CUdeviceptr held;
  } holder{a.allocator.get(), a.Get(150 * kMiB, s)};
  const CUdeviceptr kept = holder.held;
  ASSERT_OK(a->AddFreeMemoryCallback({&holder, [](void* self, int, std::size_t) noexcept {
                                        Holder* const one = static_cast<Holder*>(self);
                                        const bool had = one->held != 0;
                                        (void)one->allocator->Free(one->held);
                                        one->held = 0;
                                        return had;
                                      }}));
  EXPECT_EQ(a.Get(120 * kMiB, s), kept);
}

TEST(Rules, CachedMemoryOfOtherStreamsIsReleasedBeforeGivingUp) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  a.Drop(a.Get(150 * kMiB, s));
  (void)a.Get(200 * kMiB, t);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(200 * kMiB));
}

TEST(Rules, TrimStopsAtTheSize) {
  Allocating a;
  CUstream s = a.Stream();
  CUdeviceptr held[4];
  for (int i = 0; i < 4; ++i) held[i] = a.Get((20 + 2 * static_cast<std::size_t>(i)) * kMiB, s);
  for (const CUdeviceptr one : held) a.Drop(one);
  EXPECT_OK(a->Trim(0, 45 * kMiB));
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(42 * kMiB));
  EXPECT_OK(a->Trim(0, 45 * kMiB));
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(42 * kMiB));
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_EQ(a->Trim(7, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace cuaudit::alloc::rules_test
