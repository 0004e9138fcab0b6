// SPDX-License-Identifier: MIT
// In which order memory is looked for: the choice among what there is, and what is done when there is none. And what holds no lock.
#include <cstdint>
#include <string>
#include <utility>

#include "allocator/blocks/capture.h"
#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/model/faulty_driver.h"

namespace cuaudit::alloc::order_test {
namespace {

using driver::CallId;

class Order : public testing::Test {
 protected:
  void Make(const Options& options) {
    const DeviceConfig config;
    ASSERT_OK(Allocator::Create(logging.ref(), &config, 1, options, &allocator));
    logging.on_call = [this](CallId call) {
      const char* const name = call == CallId::MemAlloc_v2        ? "MemAlloc"
                               : call == CallId::MemFree_v2       ? "MemFree"
                               : call == CallId::EventSynchronize ? "EventSynchronize"
                                                                  : nullptr;
      if (name != nullptr) log.emplace_back(name);
    };
    ASSERT_OK(allocator->AddFreeMemoryCallback({&log, [](void* self, int, std::size_t) noexcept {
                                                  static_cast<std::vector<std::string>*>(self)->emplace_back("callback");
                                                  return true;  // though it freed nothing
                                                }}));
    ASSERT_OK(allocator->AddOomObserver(
        {&log, [](void* self, const OutOfMemory&) noexcept { static_cast<std::vector<std::string>*>(self)->emplace_back("observer"); }}));
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(0, bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  void Cache(std::size_t bytes, CUstream stream) { EXPECT_OK(allocator->Free(Get(bytes, stream))); }
  // Freed, and in use on another stream.
  void CacheUsed(std::size_t bytes, CUstream stream, CUstream user) {
    const CUdeviceptr x = Get(bytes, stream);
    a.Write(x, bytes, stream);
    a.Order(stream, user);
    a.Write(x, bytes, user);
    EXPECT_OK(allocator->RecordUse(x, user));
    EXPECT_OK(allocator->Free(x));
  }
  void TearDown() override {
    if (allocator != nullptr) {
      EXPECT_OK(allocator->Close());
    }
  }

  Allocating a;
  FailingCalls logging{a.d};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
  std::unique_ptr<Allocator> allocator;
  std::vector<std::string> log;
};

using Log = std::vector<std::string>;

TEST_F(Order, CallbacksDriverOversizeBlocksAllUsesAllSegmentsObservers) {
  Make({.max_split_size = 32 * kMiB});
  Cache(64 * kMiB, s);         // of this stream, oversize
  Cache(20 * kMiB, t);         // another stream's
  CacheUsed(24 * kMiB, s, u);  // waits for a use
  log.clear();
  CUdeviceptr none = 1;
  EXPECT_EQ(allocator->Allocate(0, 300 * kMiB, s, &none), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(none, 0U);
  EXPECT_EQ(log, (Log{"callback", "MemAlloc", "MemFree", "MemAlloc", "EventSynchronize", "MemFree", "MemFree", "MemAlloc", "observer"}));
}

TEST_F(Order, GarbageGoesBeforeTheDriverIsAsked) {
  Options options;
  options.memory_fraction = 0.5;  // of 256 MiB
  options.garbage_collection_threshold = 0.5;
  Make(options);
  Cache(20 * kMiB, s);
  Cache(24 * kMiB, s);
  log.clear();
  (void)Get(50 * kMiB, s);
  EXPECT_EQ(log, (Log{"callback", "MemFree", "MemFree", "MemAlloc"}));
}

TEST_F(Order, WhatBecameFreeMeanwhileIsTakenBeforeAnythingIsReleased) {
  Make({});
  Cache(100 * kMiB, t);
  CacheUsed(120 * kMiB, s, u);
  log.clear();
  (void)Get(110 * kMiB, s);
  EXPECT_EQ(log, (Log{"callback", "MemAlloc", "EventSynchronize"}));
}

TEST_F(Order, PoolsLendOnlyWhenNothingIsLeftToRelease) {
  Make({});
  PoolId pool;
  PoolOptions lends = {.use_on_oom = true};
  ASSERT_OK(allocator->CreatePool(lends, &pool));
  ASSERT_OK(allocator->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr lent = Get(100 * kMiB, s);
  ASSERT_OK(allocator->EndAllocateToPool(0, pool));
  EXPECT_OK(allocator->Free(lent));
  Cache(60 * kMiB, t);
  const CUdeviceptr held = Get(80 * kMiB, s);
  log.clear();
  EXPECT_EQ(Get(100 * kMiB, s), lent);
  EXPECT_EQ(log, (Log{"callback", "MemAlloc", "MemFree", "MemAlloc"}));
  EXPECT_OK(allocator->Free(held));
}

TEST_F(Order, OtherPoolsLendNothing) {
  Make({});
  PoolId pool;
  ASSERT_OK(allocator->CreatePool({}, &pool));
  ASSERT_OK(allocator->BeginAllocateToPool(0, pool, {}));
  Cache(100 * kMiB, s);
  ASSERT_OK(allocator->EndAllocateToPool(0, pool));
  const CUdeviceptr held = Get(80 * kMiB, s);
  CUdeviceptr other = 0;
  EXPECT_EQ(allocator->Allocate(0, 100 * kMiB, s, &other), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(allocator->Free(held));
}

TEST_F(Order, TrimThatNeedNotReleaseWaitsForNothing) {
  Make({});
  CacheUsed(120 * kMiB, s, u);
  log.clear();
  EXPECT_OK(allocator->Trim(0, 120 * kMiB));
  EXPECT_EQ(log, Log{});
  EXPECT_OK(allocator->Trim(0, 119 * kMiB));
  EXPECT_EQ(log, (Log{"EventSynchronize", "MemFree"}));
}

// Ready on the own stream, ready elsewhere, pending with the fewest streams to wait for, growing: each counted.
TEST_F(Order, OfTheChoice) {
  Make({.reuse = Reuse::Wait, .thread_cache = false});
  const std::size_t bytes = 12 * kMiB;
  const auto counts = [this] {
    Statistics now;
    allocator->GetStatistics(0, &now);
    return std::vector<std::uint64_t>{now.served_own_ready, now.served_other_ready, now.served_pending, now.served_grown};
  };
  const CUdeviceptr two = Get(bytes, s);  // will be used on two streams
  const CUdeviceptr one = Get(bytes, s);
  const CUdeviceptr ready = Get(bytes, s);
  CUstream retired = a.Stream();
  const CUdeviceptr elsewhere = Get(bytes, retired);
  Gate gate(a.d);  // it looks at the uses: they are not over
  for (const CUstream user : {t, u}) gate.Hold(user);
  for (const CUstream user : {t, u}) {
    a.Order(s, user);
    a.Write(two, 512, user);
    EXPECT_OK(allocator->RecordUse(two, user));
    a.Order(user, s);
  }
  a.Order(s, t);
  a.Write(one, 512, t);
  EXPECT_OK(allocator->RecordUse(one, t));
  for (const CUdeviceptr address : {two, one, ready, elsewhere}) EXPECT_OK(allocator->Free(address));
  EXPECT_OK(allocator->RetireStream(0, retired));
  EXPECT_OK(a.d.StreamSynchronize(retired));
  std::vector<std::uint64_t> now = counts();
  const CUdeviceptr expected[] = {ready, elsewhere, one, two};
  const std::size_t counted[] = {0, 1, 2, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Get(bytes, s), expected[i]) << i;
    ++now[counted[i]];
    EXPECT_EQ(counts(), now) << i;
  }
  (void)Get(bytes, s);
  ++now[3];
  EXPECT_EQ(counts(), now);
}

// cuEventRecord takes long under load: whoever allocates, frees or records meanwhile must not wait for it.
TEST_F(Order, ARecordingHoldsNoLock) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    Make({.reuse = reuse});
    const CUdeviceptr x = Get(12 * kMiB, s);
    const CUdeviceptr y = Get(14 * kMiB, s);
    const CUdeviceptr z = Get(16 * kMiB, s);
    int inside = 0;
    logging.on_call = [&](CallId call) {
      if (call != CallId::EventRecord || inside++ != 0) return;
      EXPECT_OK(allocator->RecordUse(y, t));  // on the same stream
      EXPECT_OK(allocator->Free(y));          // of the same arena
      EXPECT_OK(allocator->Free(Get(18 * kMiB, s)));
      EXPECT_OK(allocator->EmptyCache());
      Snapshot snapshot;
      EXPECT_OK(allocator->TakeSnapshot(&snapshot));
    };
    EXPECT_OK(allocator->RecordUse(x, t));
    EXPECT_EQ(inside, 2);
    inside = 0;
    EXPECT_OK(allocator->RecordStream(z, t));
    logging.on_call = [&](CallId call) {
      if (call != CallId::EventRecord || inside++ != 0) return;
      EXPECT_OK(allocator->Free(x));
      EXPECT_OK(allocator->Free(Get(18 * kMiB, s)));
    };
    EXPECT_OK(allocator->Free(z));
    EXPECT_EQ(inside, 1);
    logging.on_call = nullptr;
    EXPECT_OK(allocator->Close());
    allocator.reset();
  }
}

// Every node depends on the node whose number is one lower.
#if CUDA_VERSION >= 13000
constexpr CallId kDependencies = CallId::GraphNodeGetDependencies_v2;
CUresult ChainOf(void*, CUgraphNode node, CUgraphNode* before, CUgraphEdgeData*, std::size_t* count) {
#else
constexpr CallId kDependencies = CallId::GraphNodeGetDependencies;
CUresult ChainOf(void*, CUgraphNode node, CUgraphNode* before, std::size_t* count) {
#endif
  *count = 1;
  if (before != nullptr) *before = reinterpret_cast<CUgraphNode>(reinterpret_cast<std::uintptr_t>(node) - 1);
  return CUDA_SUCCESS;
}

TEST(OrderInAGraph, IsLookedForAmong65536Nodes) {
  driver::DriverTable table{};
  table.entry[driver::Index(kDependencies)] = reinterpret_cast<driver::Entry>(&ChainOf);
  const driver::DriverRef chain{&table, nullptr};
  constexpr std::uintptr_t kLast = 1'000'000;
  const auto node = [](std::uintptr_t number) { return reinterpret_cast<CUgraphNode>(number); };  // NOLINT(performance-no-int-to-ptr)
  for (const auto& [distance, is_found] : {std::pair<std::uintptr_t, bool>{60'000, true}, {70'000, false}}) {
    bool ordered = !is_found;
    EXPECT_OK(IsOrderedBefore(chain, {node(kLast - distance)}, {node(kLast)}, &ordered));
    EXPECT_EQ(ordered, is_found) << distance;
  }
}

}  // namespace
}  // namespace cuaudit::alloc::order_test
