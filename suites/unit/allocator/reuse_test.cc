// SPDX-License-Identifier: MIT
// Which memory is chosen: by size and address as an ordered set would answer, across streams, without looking at the device, by words that
// streams write; and that it stays bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "allocator/blocks/free_bins.h"
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::reuse_test {
namespace {

TEST(CrossStreams, ARetiredStreamsMemoryServesOthers) {
  for (const sim::Schedule schedule : kSchedules) {
    Allocating a({}, {.schedule = schedule});
    CUstream s = a.Stream();
    CUstream t = a.Stream();
    const CUdeviceptr x = a.Get(16 * kMiB, s);
    a.Write(x, 16 * kMiB, s);
    a.Drop(x);
    EXPECT_OK(a->RetireStream(0, s));
    EXPECT_OK(a.d.StreamSynchronize(s));
    a.Destroy(s);
    for (int round = 0; round < 3; ++round) {
      const CUdeviceptr y = a.Get(16 * kMiB, t);
      EXPECT_EQ(y, x);
      a.Write(y, 16 * kMiB, t);
      a.Drop(y);
    }
    EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(16 * kMiB));
    EXPECT_GE(a.Stats().served_other_ready, 1U);
  }
}

TEST(CrossStreams, ReadyTakesOnlyWhatIsOver) {
  Allocating a({.cross_stream = CrossStream::Ready});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(18 * kMiB, s);
  a.Write(x, 18 * kMiB, s);
  a.Drop(x);
  const CUdeviceptr y = a.Get(18 * kMiB, t);  // nothing tells yet what `s` has done
  EXPECT_NE(y, x);
  a.Write(y, 18 * kMiB, t);
  for (int i = 0; i < 70; ++i) a.Drop(a.Get(4096 + 512 * static_cast<std::size_t>(i), s));  // `s` is stamped now and then
  EXPECT_OK(a.d.StreamSynchronize(s));
  const CUdeviceptr z = a.Get(18 * kMiB, t);
  EXPECT_EQ(z, x);
  a.Write(z, 18 * kMiB, t);
  a.Drop(z);
  const CUdeviceptr back = a.Get(18 * kMiB, s);  // t's work on it may not be over
  a.Write(back, 18 * kMiB, s);
  EXPECT_GE(a.Stats().served_other_ready, 1U);
}

TEST(CrossStreams, WaitMakesTheRequesterWait) {
  for (const sim::Schedule schedule : kSchedules) {
    Allocating a({.reuse = Reuse::Wait, .cross_stream = CrossStream::Wait}, {.schedule = schedule});
    CUstream stream[3] = {a.Stream(), a.Stream(), a.Stream()};
    for (int turn = 0; turn < 300; ++turn) {
      CUstream s = stream[turn % 3];
      const std::size_t bytes = (2 + static_cast<std::size_t>(turn) * 7 % 15) * kMiB;
      const CUdeviceptr x = a.Get(bytes, s);
      a.Write(x, bytes, s);
      if (turn % 5 == 0) a.Use(x, bytes, s, stream[(turn + 1) % 3]);
      a.Drop(x);
    }
  }
}

// The same calls against devices that are idle and devices that are behind: addresses and reserved memory are equal.
std::vector<CUdeviceptr> Addresses(const Options& options, sim::Schedule schedule, std::vector<std::int64_t>* reserved) {
  Allocating a(options, {.schedule = schedule});
  CUstream stream[3] = {a.Stream(), a.Stream(), a.Stream()};
  std::vector<CUdeviceptr> live;
  std::vector<CUdeviceptr> seen;
  CUdeviceptr base = 0;
  for (int turn = 0; turn < 400; ++turn) {
    CUstream s = stream[turn * 5 % 2];
    const std::size_t bytes = 1 + (static_cast<std::size_t>(turn) * 7919 % 97) * 60000;
    const CUdeviceptr x = a.Get(bytes, s);
    if (base == 0) base = x;
    seen.push_back(x - base);
    reserved->push_back(a.Reserved());
    a.Write(x, bytes, s);
    if (turn % 3 == 0) a.Use(x, bytes, s, stream[2]);
    live.push_back(x);
    if (live.size() > 12) {
      const std::size_t i = static_cast<std::size_t>(turn) % live.size();
      a.Drop(live[i]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (turn % 150 == 149) {
      EXPECT_OK(a->EmptyCache());
    }
  }
  for (const CUdeviceptr x : live) a.Drop(x);
  EXPECT_EQ(a.Stats().polls, 0U);
  return seen;
}

// A block's own stream did nothing with it while it was lent: what it owed before is all that it owes.
TEST(CrossStreams, WhatWasLentComesBackWithoutANewDebt) {
  Allocating a({.cross_stream = CrossStream::Ready}, {.device_bytes = 1024 * kMiB});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
  const CUdeviceptr x = a.Get(80 * kMiB, s);
  a.Write(x, 80 * kMiB, s);
  a.Drop(x);
  a.Drop(a.Get(512, s));  // so much was freed that `s` records
  EXPECT_OK(a.d.StreamSynchronize(s));
  EXPECT_EQ(a.Get(80 * kMiB, t), x);
  a.Write(x, 80 * kMiB, t);
  a.Drop(x);
  a.Drop(a.Get(512, t));
  EXPECT_OK(a.d.StreamSynchronize(t));
  a.Drop(a.Get(100 * kMiB, s));  // whoever finds nothing asks about all uses
  EXPECT_EQ(a.Get(80 * kMiB, u), x);
  a.Write(x, 80 * kMiB, u);
}

// A part of a block that another stream got because it had waited for the block's uses leaves the other part to who has waited, too.
TEST(CrossStreams, ThePartThatIsLeftKeepsItsUses) {
  Allocating a({.reuse = Reuse::Wait, .cross_stream = CrossStream::Wait}, {.device_bytes = 1024 * kMiB});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
  CUstream v = a.Stream();
  Gate gate(a.d);
  gate.Hold(v);
  const CUdeviceptr x = a.Get(80 * kMiB, s);
  a.Write(x, 80 * kMiB, s);
  a.Use(x, 80 * kMiB, s, v);
  const CUdeviceptr y = a.Get(40 * kMiB, t);
  a.Write(y, 40 * kMiB, t);
  a.Use(y, 40 * kMiB, t, v);
  a.Drop(y);
  EXPECT_EQ(a.Get(40 * kMiB, t), y);  // `t` waits for what `v` was given until now
  a.Drop(x);
  a.Drop(a.Get(512, s));
  EXPECT_OK(a.d.StreamSynchronize(s));
  const CUdeviceptr part = a.Get(30 * kMiB, t);
  EXPECT_EQ(part, x);
  a.Write(part, 30 * kMiB, t);
  const CUdeviceptr other = a.Get(40 * kMiB, u);
  EXPECT_TRUE(other + 40 * kMiB <= x || other >= x + 80 * kMiB);
  a.Write(other, 40 * kMiB, u);
}

// To have waited for all uses that were recorded is not enough for a block that captured work uses.
TEST(CrossStreams, WhatACaptureUsesServesNobodyElse) {
  Allocating a({.cross_stream = CrossStream::Ready}, {.device_bytes = 1024 * kMiB});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream captured = a.Stream();
  const CUdeviceptr x = a.Get(80 * kMiB, s);
  a.Write(x, 80 * kMiB, s);
  EXPECT_OK(a.d.StreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUevent event = nullptr;
  EXPECT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(a.d.EventRecord(event, captured));
  EXPECT_OK(a->KeepAliveUntil(x, event)) << a.LastText();
  EXPECT_OK(a.d.EventDestroy(event));
  a.Drop(x);
  a.Drop(a.Get(512, s));
  EXPECT_OK(a.d.StreamSynchronize(s));
  EXPECT_NE(a.Get(80 * kMiB, t), x);
  CUgraph graph = nullptr;
  EXPECT_OK(a.d.StreamEndCapture(captured, &graph));
  EXPECT_OK(a.d.GraphDestroy(graph));
}

// Also where a thread takes from the arena directly, because its cache keeps missing.
TEST(Directly, ALargeBlockWhoseUsesAreOverIsTakenBeforeALargerOneIsCut) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  const CUdeviceptr y = a.Get(40 * kMiB, s);
  for (std::size_t i = 1; i <= 200; ++i) a.Drop(a.Get(512 * i, s));  // no two of one size
  a.Write(x, 12 * kMiB, s);
  a.Use(x, 12 * kMiB, s, t);
  a.Drop(x);
  a.Drop(y);
  EXPECT_OK(a.d.StreamSynchronize(t));
  EXPECT_EQ(a.Get(12 * kMiB, s), x);
  EXPECT_EQ(a.Get(40 * kMiB, s), y);
}

TEST(Deterministic, AddressesDoNotDependOnTheDevice) {
  for (const CrossStream cross : {CrossStream::Never, CrossStream::Wait}) {
    Options options;
    options.reuse = Reuse::Wait;
    options.deterministic = true;
    options.cross_stream = cross;
    std::vector<std::int64_t> reserved;
    const std::vector<CUdeviceptr> expected = Addresses(options, sim::Schedule::Lazy, &reserved);
    for (const sim::Schedule schedule : kSchedules) {
      std::vector<std::int64_t> other;
      EXPECT_EQ(Addresses(options, schedule, &other), expected);
      EXPECT_EQ(other, reserved);
    }
  }
}

TEST(HostLoads, TellThatUsesAreOver) {
  Allocating a({.completion = Completion::StreamWrites}, {.schedule = sim::Schedule::Fifo});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  for (int round = 0; round < 50; ++round) {
    const CUdeviceptr y = a.Get(4 * kMiB, s);
    a.Use(y, 4 * kMiB, s, t);
    a.Drop(y);
  }
  const Statistics stats = a.Stats();
  EXPECT_EQ(stats.uses_recorded, 50U);
  EXPECT_EQ(stats.events_created, 0U);
  EXPECT_GE(stats.polls, 5U);
  EXPECT_EQ(stats.fallbacks, 0U);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(20 * kMiB));
  a.Drop(x);
}

TEST(HostLoads, FallBackToEventsVisibly) {
  Allocating a({.completion = Completion::StreamWrites}, {.profile = "small"});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  a.Use(x, 4 * kMiB, s, t);
  a.Drop(x);
  const CUdeviceptr y = a.Get(4 * kMiB, s);
  a.Write(y, 4 * kMiB, s);
  EXPECT_EQ(a.Stats().events_created, 1U);
  EXPECT_GE(a.Stats().fallbacks, 1U);
}

TEST(HostLoads, ReleasingSynchronisesWhatIsNotOver) {
  Allocating a({.completion = Completion::StreamWrites});
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  a.Use(x, 12 * kMiB, s, t);
  a.Drop(x);
  EXPECT_NE(a.Get(12 * kMiB, s), x);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Stats().blocks_pending, 0U);
}

TEST(Bounded, SplitsAndMergesWithUsesLeaveNothingBehind) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    Allocating a({.reuse = reuse}, {.schedule = sim::Schedule::Fifo});
    StreamRef stream = a.Ref(a.Stream());
    std::vector<StreamRef> users;
    for (int i = 0; i < 7; ++i) users.push_back(a.Ref(a.Stream()));
    CUdeviceptr part[8] = {};
    for (std::size_t turn = 0; turn < 50000; ++turn) {
      CUdeviceptr& one = part[turn % 8];
      if (turn % 4 == 0 && one != 0) {
        EXPECT_OK(a->RecordUse(one, users[turn / 4 % 7]));
      }
      EXPECT_OK(a->Free(one));
      EXPECT_OK(a->Allocate(1024 * (1 + turn * 7 % 61), stream, &one));
    }
    const Statistics stats = a.Stats();
    EXPECT_LE(stats.events_created, 7U * 65);
    EXPECT_LE(stats.reserved_bytes[0].current, static_cast<std::int64_t>(4 * kMiB));
    for (const CUdeviceptr one : part) a.Drop(one);
    const Snapshot look = a.Look();
    for (const SnapshotSegment& segment : look.segments) {
      for (const SnapshotBlock& block : segment.blocks) EXPECT_LE(block.uses.size(), 7U);
    }
  }
}

using Key = std::pair<std::size_t, CUdeviceptr>;

Key KeyOf(const Block& block) { return {block.size, block.address.load()}; }

TEST(FreeBins, AnswerAsAnOrderedSetWould) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::mt19937_64 random(seed);
    constexpr std::size_t kBlocks = 400;
    const auto blocks = std::make_unique<Block[]>(kBlocks);
    FreeBins bins;
    ASSERT_TRUE(bins.Init(false));
    std::set<Key> expected;
    // Few sizes and many, small ones and beyond the last bin.
    const auto any_size = [&] { return 512 * (1 + random() % (std::uint64_t{1} << (random() % 33))); };
    for (int turn = 0; turn < 20'000; ++turn) {
      Block& block = blocks[random() % kBlocks];
      if (block.place == Place::None) {
        block.size = any_size();
        block.address = ((static_cast<std::uint64_t>(&block - blocks.get()) + 64) << 34) + ((random() % 64) << 9);
        block.place = Place::Ready;
        bins.Insert(&block);
        expected.insert(KeyOf(block));
      } else {
        block.place = Place::None;
        bins.Remove(&block);
        expected.erase(KeyOf(block));
      }
      const std::size_t wanted = any_size();
      const auto fits = expected.lower_bound({wanted, 0});
      const Block* const found = bins.AtLeast(wanted);
      ASSERT_EQ(found != nullptr, fits != expected.end());
      if (found != nullptr) {
        ASSERT_EQ(KeyOf(*found), *fits);
      }
      ASSERT_EQ(bins.empty(), expected.empty());
      if (turn % 500 != 0) continue;
      auto at = expected.begin();
      for (const Block* one = bins.First(); one != nullptr; one = bins.Next(one), ++at) {
        ASSERT_NE(at, expected.end());
        ASSERT_EQ(KeyOf(*one), *at);
      }
      ASSERT_EQ(at, expected.end());
      if (!expected.empty()) {
        ASSERT_EQ(KeyOf(*bins.Last()), *expected.rbegin());
      }
    }
  }
}

// Freed from the lowest address to the highest, which would make a plain tree a list.
TEST(FreeBins, ManyOfOneSizeAreFoundAsQuickly) {
  constexpr std::size_t kBlocks = 100'000;
  const auto blocks = std::make_unique<Block[]>(kBlocks);
  FreeBins bins;
  ASSERT_TRUE(bins.Init(false));
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks[i].size = 1024;
    blocks[i].address = (std::uint64_t{1} << 40) + i * 2048;
    bins.Insert(&blocks[i]);
  }
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < kBlocks; i += 997) {
    std::size_t depth = 0;
    for (const Block* above = blocks[i].parent; above != nullptr; above = above->parent) ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_LT(deepest, 80U) << "a list would be 100,000 deep";
  for (std::size_t i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(bins.AtLeast(512), &blocks[i]) << "the lowest address first";
    bins.Remove(&blocks[i]);
  }
  EXPECT_TRUE(bins.empty());
}

}  // namespace
}  // namespace cuaudit::alloc::reuse_test
