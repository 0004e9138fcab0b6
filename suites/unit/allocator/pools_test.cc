// SPDX-License-Identifier: MIT
// Private pools, several devices, expandable segments.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <utility>

#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/model/faulty_driver.h"

namespace cuaudit::alloc::pools_test {
namespace {

TEST(Pools, RoutedAllocationsStayInThem) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const PoolId pool = a.Pool();
  const CUdeviceptr outside = a.Get(4 * kMiB, s);
  struct Only {
    StreamRef stream;
  } only{a.Ref(s)};
  const Route route{[](void* self, StreamRef stream) noexcept { return stream == static_cast<Only*>(self)->stream; }, &only};
  ASSERT_OK(a->BeginAllocateToPool(0, pool, route));
  EXPECT_EQ(a->BeginAllocateToPool(0, pool, route), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(a->ReleasePool({0, 77}), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr inside = a.Get(4 * kMiB, s);
  const CUdeviceptr other = a.Get(4 * kMiB, t);
  a.Drop(inside);
  EXPECT_EQ(a.Get(4 * kMiB, s), inside);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_EQ(a->EndAllocateToPool(0, pool), CUDA_ERROR_ILLEGAL_STATE);
  a.Drop(inside);
  EXPECT_NE(a.Get(4 * kMiB, s), inside);
  int in_pool = 0;
  for (const SnapshotSegment& segment : a.Look().segments) in_pool += segment.pool == pool;
  EXPECT_EQ(in_pool, 1);
  a.Drop(outside);
  a.Drop(other);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(40 * kMiB));  // the pool's stays while it has users: a graph may know its addresses
  ASSERT_OK(a->ReleasePool(pool));
  ASSERT_OK(a->ReleasePool(pool));  // Begin had added one
  EXPECT_EQ(a->ReleasePool(pool), CUDA_ERROR_INVALID_VALUE);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(20 * kMiB));
}

// A route's filter is asked with no lock held: it may call the allocator, and another thread may begin and end routes meanwhile.
TEST(Pools, ARoutesFilterMayCallTheAllocator) {
  Allocating a;
  struct Filter {
    Allocating* a;
    CUstream s;
    CUstream t;
    PoolId other;
    int asked = 0;
    PoolId own;
  } filter{&a, a.Stream(), a.Stream(), {}, 0, {}};
  ASSERT_OK(a->CreatePool({}, &filter.own));
  ASSERT_OK(a->CreatePool({}, &filter.other));
  const Route route{[](void* self, StreamRef stream) noexcept {
                      auto* const me = static_cast<Filter*>(self);
                      ++me->asked;
                      me->a->Drop(me->a->Get(2 * kMiB, me->t));
                      std::thread([me] {
                        EXPECT_OK((*me->a)->BeginAllocateToPool(0, me->other, {}));
                        EXPECT_OK((*me->a)->EndAllocateToPool(0, me->other));
                      }).join();
                      EXPECT_EQ((*me->a)->EndAllocateToPool(0, me->own), CUDA_ERROR_ILLEGAL_STATE) << "not while it is asked";
                      return stream.handle() == me->s;
                    },
                    &filter};
  ASSERT_OK(a->BeginAllocateToPool(0, filter.own, route));
  const CUdeviceptr inside = a.Get(4 * kMiB, filter.s);
  EXPECT_EQ(filter.asked, 1) << "what a filter allocates goes to no pool";
  ASSERT_OK(a->EndAllocateToPool(0, filter.own));
  a.Drop(inside);
  for (const SnapshotSegment& segment : a.Look().segments) {
    EXPECT_EQ(segment.pool == filter.own, segment.address <= inside && inside - segment.address < segment.total_size);
  }
}

// After EndAllocateToPool has returned nobody is in the filter, nor ever will be.
TEST(Pools, EndingARouteWaitsForWhoeverAsksIt) {
  Allocating a;
  struct Filter {
    std::atomic<bool> inside{false};
    std::atomic<bool> leave{false};
    std::atomic<bool> ended{false};
    std::atomic<bool> was_late{false};
  } filter;
  const PoolId pool = a.Pool();
  const StreamRef ref = a.Ref(a.Stream());
  ASSERT_OK(a->BeginAllocateToPool(0, pool,
                                   {[](void* self, StreamRef) noexcept {
                                      auto* const me = static_cast<Filter*>(self);
                                      me->inside = true;
                                      while (!me->leave) std::this_thread::yield();
                                      me->was_late = me->ended.load();
                                      return true;
                                    },
                                    &filter}));
  std::thread asking([&] {
    CUdeviceptr address = 0;
    EXPECT_OK(a->Allocate(4096, ref, &address));
    EXPECT_OK(a->Free(address));
  });
  while (!filter.inside) std::this_thread::yield();
  std::thread ending([&] {
    EXPECT_OK(a->EndAllocateToPool(0, pool));
    filter.ended = true;
  });
  for (int i = 0; i < 1000 && !filter.ended; ++i) std::this_thread::yield();  // it ends too early only if it does not wait
  filter.leave = true;
  asking.join();
  ending.join();
  EXPECT_FALSE(filter.was_late);
}

TEST(Pools, AUsersOwnMemory) {
  struct Source {
    driver::DriverRef d;
    int held = 0;
    std::size_t bytes = 0;
  };
  Allocating a;
  Source source{a.d, 0, 0};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  PoolOptions options = {.user = &source};
  options.acquire = [](void* user, int, std::size_t bytes, CUstream, CUdeviceptr* out) noexcept {
    Source* const one = static_cast<Source*>(user);
    ++one->held;
    one->bytes = bytes;
    return one->d.MemAlloc(out, bytes);
  };
  options.release = [](void* user, int, CUdeviceptr address, std::size_t) noexcept {
    --static_cast<Source*>(user)->held;
    return static_cast<Source*>(user)->d.MemFree(address);
  };
  PoolId pool = a.Pool(options);
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_EQ(source.held, 1);
  EXPECT_EQ(source.bytes, 20 * kMiB);
  a.Use(x, 4 * kMiB, s, t);
  a.Drop(x);
  ASSERT_OK(a->EmptyCache(pool));  // waits for the use
  EXPECT_EQ(source.held, 0);
  options.release = nullptr;
  EXPECT_EQ(a->CreatePool(options, &pool), CUDA_ERROR_INVALID_VALUE);
}

TEST(Pools, LendWhenNothingElseIsLeft) {
  Allocating a;
  CUstream s = a.Stream();
  PoolOptions options = {.use_on_oom = true};
  const PoolId pool = a.Pool(options);
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(200 * kMiB, s);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  a.Drop(x);
  EXPECT_EQ(a.Get(150 * kMiB, s), x);
  EXPECT_EQ(a.Stats().served_shared_pool, 1U);
}

TEST(Pools, ThatAreGoneLeaveTheirRecordToTheNext) {
  Allocating a;
  CUstream s = a.Stream();
  std::uint64_t last = 0;
  for (int round = 0; round < 100; ++round) {
    const PoolId pool = a.Pool();
    EXPECT_GT(pool.second, last);
    last = pool.second;
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    const CUdeviceptr x = a.Get(1000, s);
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    a.Drop(x);
    ASSERT_OK(a->ReleasePool(pool));
    ASSERT_OK(a->ReleasePool(pool));
    ASSERT_OK(a->EmptyCache());
  }
  EXPECT_EQ(a.Reserved(), 0);
}

TEST(Pools, ThatAreGoneKeepTheirRecordWhileMemoryIsInIt) {
  Allocating a;
  CUstream s = a.Stream();
  PoolId pools[2];
  for (PoolId& pool : pools) {
    EXPECT_OK(a->CreatePool({}, &pool));
    EXPECT_OK(a->BeginAllocateToPool(0, pool, {}));
    a.Drop(a.Get(1000, s));
    EXPECT_OK(a->EndAllocateToPool(0, pool));
    for (int user = 0; user < 2; ++user) EXPECT_OK(a->ReleasePool(pool));
  }
  EXPECT_EQ(a.Look().segments.size(), 2U) << "each has its own";
}

// Each device has books, limits and memory of its own; a stream's memory is its device's.
TEST(Devices, AreApart) {
  for (const bool expandable : {false, true}) {
    Allocating a({.expandable_segments = expandable}, {.devices = 2});
    CUstream s = a.Stream(0);
    CUstream far = a.Stream(1);
    const CUdeviceptr x = a.Get(20 * kMiB, s, 0);
    const CUdeviceptr y = a.Get(40 * kMiB, far, 1);
    a.Write(x, 20 * kMiB, s);
    EXPECT_EQ(a.Reserved(0), static_cast<std::int64_t>(20 * kMiB));
    EXPECT_EQ(a.Reserved(1), static_cast<std::int64_t>(40 * kMiB));
    EXPECT_EQ(a.Stats(0).allocation[0].current, 1);
    EXPECT_EQ(a.Stats(1).allocated_bytes[0].current, static_cast<std::int64_t>(40 * kMiB));
    const CUmemLocation other{CU_MEM_LOCATION_TYPE_DEVICE, 1};
    unsigned long long access = 0;
    EXPECT_TRUE(a.d.MemGetAccess(&access, &other, x) == CUDA_SUCCESS && access == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    const Snapshot snapshot = a.Look();
    ASSERT_EQ(snapshot.segments.size(), 2U);
    EXPECT_EQ(snapshot.segments[1].device, 1);
    EXPECT_OK(a->SetMemoryFraction(1, 0.25));
    CUdeviceptr none = 1;
    EXPECT_EQ(a->Allocate(1, 60 * kMiB, far, &none), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(a->LastOutOfMemory().device, 1);
    EXPECT_EQ(a.Stats(0).num_ooms, 0);
    a.Drop(x);
    a.Drop(y);
    EXPECT_OK(a->Trim(1, 0));
    EXPECT_EQ(a.Reserved(0), static_cast<std::int64_t>(20 * kMiB));
    EXPECT_EQ(a.Reserved(1), 0);
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(0), 0);
  }
}

class Expandable : public testing::TestWithParam<sim::Schedule> {
 protected:
  static Options Chosen() { return {.expandable_segments = true}; }
  Allocating a{Chosen(), {.schedule = GetParam()}};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
};

TEST_P(Expandable, OneSegmentGrows) {
  const CUdeviceptr x = a.Get(30 * kMiB, s);
  const CUdeviceptr y = a.Get(30 * kMiB, s);
  EXPECT_EQ(y, x + 30 * kMiB);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(60 * kMiB));
  a.Drop(x);
  a.Drop(y);
  const CUdeviceptr z = a.Get(75 * kMiB, s);  // what a plain segment could not: grow what is free
  EXPECT_EQ(z, x);
  a.Write(z, 75 * kMiB, s);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(80 * kMiB));
  EXPECT_EQ(a.Stats().segment[0].current, 1);
  EXPECT_EQ(a.Look().segments.size(), 1U);
  a.Drop(z);
}

TEST_P(Expandable, WholePagesGoBackFromTheMiddle) {
  CUdeviceptr part[5];
  for (CUdeviceptr& one : part) one = a.Get(20 * kMiB, s);
  a.Use(part[2], 20 * kMiB, s, t);
  a.Write(part[1], 20 * kMiB, s);
  a.Drop(part[1]);
  a.Drop(part[2]);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(60 * kMiB));
  EXPECT_EQ(a.Look().segments.size(), 2U);
  const CUdeviceptr again = a.Get(40 * kMiB, s);  // mapped anew at the lowest address
  EXPECT_EQ(again, part[1]);
  a.Write(again, 40 * kMiB, s);
  EXPECT_EQ(a.Look().segments.size(), 1U);
}

TEST_P(Expandable, SmallAndLargeApart) {
  const CUdeviceptr x = a.Get(1000, s);
  const CUdeviceptr y = a.Get(3 * kMiB, s);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(22 * kMiB));
  a.Write(x, 1000, s);
  a.Write(y, 3 * kMiB, s);
  a.Drop(x);
  a.Drop(y);
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  a.Drop(a.Get(1000, s));
}

TEST_P(Expandable, RunningOutIsTheEndOfTheSame) {
  (void)a.Get(200 * kMiB, s);
  CUdeviceptr none = 1;
  EXPECT_EQ(a->Allocate(0, 100 * kMiB, s, &none), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(200 * kMiB));
  (void)a.Get(40 * kMiB, s);
}

INSTANTIATE_TEST_SUITE_P(All, Expandable, testing::ValuesIn(kSchedules), NameOf);

// Only a part of the address space that was asked for is granted: what does not fit into it is no reason to run out of memory.
TEST(ExpandableWithLittleAddressSpace, GoesOnWithPlainSegments) {
  Allocating a({}, {.device_bytes = 1024 * kMiB});
  FailingCalls refusing(a.d);
  refusing.code = CUDA_ERROR_OUT_OF_MEMORY;
  refusing.Fail(driver::CallId::MemAddressReserve, Failing::Refused, 4);
  Options options = {.expandable_segments = true};
  const DeviceConfig config;
  std::unique_ptr<Allocator> allocator;
  ASSERT_OK(Allocator::Create(refusing.ref(), &config, 1, options, &allocator));
  const CUstream s = a.Stream();
  std::vector<CUdeviceptr> blocks(10);
  for (CUdeviceptr& block : blocks) EXPECT_OK(allocator->Allocate(0, 20 * kMiB, s, &block)) << allocator->LastErrorText();
  Statistics statistics;
  allocator->GetStatistics(0, &statistics);
  EXPECT_GT(statistics.fallbacks, 0U);
  EXPECT_EQ(statistics.num_ooms, 0);
  std::size_t expandable = 0;
  std::size_t plain = 0;
  Snapshot snapshot;
  EXPECT_OK(allocator->TakeSnapshot(&snapshot));
  for (const SnapshotSegment& segment : snapshot.segments) (segment.expandable ? expandable : plain) += segment.total_size;
  EXPECT_GE(expandable, 40 * kMiB);
  EXPECT_EQ(expandable + plain, 200 * kMiB);
  CUdeviceptr none = 1;
  EXPECT_EQ(allocator->Allocate(0, 900 * kMiB, s, &none), CUDA_ERROR_OUT_OF_MEMORY);
  for (const CUdeviceptr block : blocks) EXPECT_OK(allocator->Free(block));
  EXPECT_OK(allocator->EmptyCache());
  allocator->GetStatistics(0, &statistics);
  EXPECT_EQ(statistics.reserved_bytes[0].current, 0);
  EXPECT_OK(allocator->Close());
}

// While memory is mapped behind a free block, that block is in nobody's set. What is freed in front of it meanwhile becomes one with it.
TEST(ExpandableGrowing, MergesWhatIsFreedMeanwhile) {
  for (const bool fails : {false, true}) {
    Allocating a;
    FailingCalls hooked(a.d);
    Options options = {.expandable_segments = true, .thread_cache = false};
    const DeviceConfig config;
    std::unique_ptr<Allocator> allocator;
    ASSERT_OK(Allocator::Create(hooked.ref(), &config, 1, options, &allocator));
    const CUstream s = a.Stream();
    const auto get = [&](std::size_t bytes, CUresult expected) {
      CUdeviceptr address = 0;
      EXPECT_EQ(allocator->Allocate(0, bytes, s, &address), expected) << allocator->LastErrorText();
      return address;
    };
    const CUdeviceptr x = get(12 * kMiB, CUDA_SUCCESS);
    const CUdeviceptr y = get(20 * kMiB, CUDA_SUCCESS);  // 8 MiB of the second page are left
    ASSERT_EQ(y, x + 12 * kMiB);
    bool freed = false;
    hooked.on_call = [&](driver::CallId call) {
      if (call != driver::CallId::MemMap || std::exchange(freed, true)) return;
      EXPECT_OK(allocator->Free(y));
      EXPECT_OK(allocator->Free(x));
      Statistics statistics;
      allocator->GetStatistics(0, &statistics);  // looks at what was freed
    };
    if (fails) hooked.Fail(driver::CallId::MemMap, Failing::Refused);
    const CUdeviceptr z = get(30 * kMiB, fails ? hooked.code : CUDA_SUCCESS);
    EXPECT_TRUE(freed);
    // Of all that is there the lowest fits, once it is one.
    EXPECT_EQ(z, fails ? 0 : x);
    EXPECT_OK(allocator->Free(z));
    Snapshot snapshot;
    EXPECT_OK(allocator->TakeSnapshot(&snapshot));
    ASSERT_EQ(snapshot.segments.size(), 1U);
    EXPECT_EQ(snapshot.segments[0].blocks.size(), 1U);
    EXPECT_OK(allocator->Close());
  }
}

TEST(ExpandableWithoutVirtualMemory, FallsBackVisibly) {
  Allocating a({.expandable_segments = true}, {.profile = "small"});
  CUstream s = a.Stream();
  (void)a.Get(30 * kMiB, s);
  EXPECT_EQ(a.Stats().fallbacks, 1U);
  EXPECT_FALSE(a.Look().segments[0].expandable);
}

}  // namespace
}  // namespace cuaudit::alloc::pools_test
