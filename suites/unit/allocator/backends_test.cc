// SPDX-License-Identifier: MIT
// The backends without a cache of their own: what they promise, what the oracle of the simulated driver says, and every call refused once.
#define __CUDA_API_VERSION_INTERNAL
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/backends/driver_backend.h"
#include "faults/sim/world.h"
#include "suites/unit/allocator/passing_driver.h"

namespace cuaudit::alloc::backends_test {
namespace {

using driver::Kind;
using driver::Misuse;

enum class Which { StreamOrdered, Uncached };

struct Heard {
  std::vector<std::string> warnings;
  std::vector<driver::MisuseRule> misuses;
};
void Warn(void* self, const char* text) noexcept { static_cast<Heard*>(self)->warnings.emplace_back(text); }
void Tell(void* self, const Misuse& misuse) { static_cast<Heard*>(self)->misuses.push_back(misuse.rule); }

CUresult Create(Which which, driver::DriverRef driver, const DeviceConfig* devices, int count, Heard* heard,
                std::unique_ptr<Backend>* out) {
  const Warning warning = {.self = heard, .warn = heard == nullptr ? nullptr : Warn};
  return which == Which::StreamOrdered ? DriverBackend::CreateStreamOrdered(driver, devices, count, warning, out)
                                       : DriverBackend::CreateUncached(driver, devices, count, warning, out);
}

class Backends : public testing::TestWithParam<Which> {
 protected:
  Backends() {
    sim::WorldOptions options;
    options.device_bytes = std::uint64_t{256} << 20;
    options.schedule = sim::Schedule::Adversarial;
    options.on_misuse = Tell;
    options.observer = &heard_;
    world_ = sim::CreateWorld(options);
    d_ = sim::Driver(world_);
    CUcontext context = nullptr;
    EXPECT_EQ(d_.Init(0), CUDA_SUCCESS);
    EXPECT_EQ(d_.DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(d_.CtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(d_.StreamCreate(&own_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(d_.StreamCreate(&other_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    const DeviceConfig device = {.device = 0};
    EXPECT_EQ(Create(GetParam(), d_, &device, 1, &heard_, &backend_), CUDA_SUCCESS);
  }
  ~Backends() override {
    backend_.reset();
    if (!is_lost_) ExpectNothingLeft();
    sim::DestroyWorld(world_);
  }
  void ExpectNothingLeft() const {
    CUcontext context = nullptr;
    EXPECT_EQ(d_.CtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(d_.CtxSynchronize(context), CUDA_SUCCESS);  // what is freed in stream order is gone when the order got there
    EXPECT_EQ(sim::LiveCount(world_, Kind::DeviceMemory), 0U);
    EXPECT_EQ(sim::LiveCount(world_, Kind::StreamOrderedMemory), 0U);
    EXPECT_EQ(sim::LiveCount(world_, Kind::MemoryPool), 0U);
    EXPECT_EQ(sim::LiveCount(world_, Kind::Stream), 2U);
    EXPECT_EQ(sim::LiveCount(world_, Kind::Event), 0U);
    EXPECT_EQ(sim::LiveCount(world_, Kind::PrimaryContext), 1U);
  }
  CUdeviceptr Get(std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(backend_->Allocate(0, bytes, own_, &address), CUDA_SUCCESS);
    EXPECT_NE(address, 0U);
    return address;
  }
  Statistics Count() const {
    Statistics statistics;
    backend_->GetStatistics(0, &statistics);
    return statistics;
  }
  // The block is used by another stream, given back, and whoever comes next writes to the same memory.
  void UseAndReuse(CUdeviceptr address, std::size_t bytes) {
    EXPECT_EQ(backend_->Free(address), CUDA_SUCCESS);
    const CUdeviceptr again = Get(bytes);
    EXPECT_EQ(d_.MemsetD8Async(again, 2, bytes, own_), CUDA_SUCCESS);
    EXPECT_EQ(backend_->Free(again), CUDA_SUCCESS);
    EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
    EXPECT_EQ(d_.StreamSynchronize(other_), CUDA_SUCCESS);
  }

  Heard heard_;
  bool is_lost_ = false;  // the context: nothing can be counted
  sim::World* world_ = nullptr;
  driver::DriverRef d_;
  CUstream own_ = nullptr;
  CUstream other_ = nullptr;
  std::unique_ptr<Backend> backend_;
};

TEST_P(Backends, BadInputIsAnsweredAndChangesNothing) {
  CUdeviceptr address = 77;
  EXPECT_EQ(backend_->Allocate(0, 0, own_, &address), CUDA_SUCCESS);
  EXPECT_EQ(address, 0U);
  for (const std::size_t bytes : {SIZE_MAX, static_cast<std::size_t>(std::int64_t{-1}), (std::size_t{1} << 60) + 1}) {
    EXPECT_EQ(backend_->Allocate(0, bytes, own_, &address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_STREQ(backend_->LastErrorText(), "Allocate: size is more than 1 EiB");
  }
  for (const int device : {-1, 1}) EXPECT_EQ(backend_->Allocate(device, 1, own_, &address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(backend_->Allocate(0, std::size_t{1} << 40, own_, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Count().num_ooms, 1);
  const CUdeviceptr block = Get(1);
  EXPECT_EQ(backend_->Free(block + 1), CUDA_ERROR_INVALID_VALUE) << "inside a block";
  EXPECT_EQ(backend_->Free(0xdead), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(backend_->RecordStream(0xdead, other_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(backend_->RecordUse(0xdead, other_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(backend_->KeepAliveUntil(0xdead, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(backend_->Free(0), CUDA_SUCCESS);
  EXPECT_EQ(backend_->RecordUse(0, other_), CUDA_SUCCESS);
  EXPECT_EQ(backend_->Free(block), CUDA_SUCCESS);
  EXPECT_EQ(backend_->Free(block), CUDA_ERROR_INVALID_VALUE) << "twice";
  EXPECT_EQ(Count().foreign_pointers, 3U);
  EXPECT_EQ(Count().allocation[0].current, 0);
  std::unique_ptr<Backend> none;
  EXPECT_EQ(Create(GetParam(), d_, nullptr, 0, nullptr, &none), CUDA_ERROR_INVALID_VALUE);
  const DeviceConfig missing = {.device = 9};
  EXPECT_EQ(Create(GetParam(), d_, &missing, 1, nullptr, &none), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(none, nullptr);
}

TEST_P(Backends, StatisticsFollow) {
  const CUdeviceptr small = Get(100);
  const CUdeviceptr large = Get(std::size_t{3} << 20);
  Statistics s = Count();
  EXPECT_EQ(s.allocation[0].current, 2);
  EXPECT_EQ(s.allocation[1].current, 1);
  EXPECT_EQ(s.allocation[2].current, 1);
  EXPECT_EQ(s.requested_bytes[0].current, 100 + (3 << 20));
  EXPECT_EQ(s.allocated_bytes[1].current, 512);
  EXPECT_GE(s.reserved_bytes[0].current, s.allocated_bytes[0].current);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  EXPECT_TRUE(backend_->FindBlock(large + 4097, &base, &size));
  EXPECT_EQ(base, large);
  EXPECT_EQ(size, std::size_t{3} << 20);
  EXPECT_FALSE(backend_->FindBlock(small + 100, &base, &size));
  EXPECT_FALSE(backend_->FindBlock(1, &base, &size));
  EXPECT_EQ(backend_->Free(large), CUDA_SUCCESS);
  backend_->ResetPeaks(0);
  s = Count();
  EXPECT_EQ(s.allocation[0].peak, 1);
  EXPECT_EQ(s.allocation[2].freed, 1);
  EXPECT_EQ(s.num_device_alloc, 2);
  EXPECT_EQ(s.num_device_free, 1);
  backend_->ResetAccumulated(0);
  EXPECT_EQ(Count().num_device_alloc, 0);
  EXPECT_EQ(backend_->Free(small), CUDA_SUCCESS);
  EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
  EXPECT_EQ(backend_->EmptyCache(), CUDA_SUCCESS);
  EXPECT_EQ(Count().reserved_bytes[0].current, 0);
}

// The planted one: without RecordStream the oracle sees the overlap, so its silence below means something.
TEST_P(Backends, ReuseWithoutAWordIsSeenByTheOracle) {
  if (GetParam() == Which::Uncached) GTEST_SKIP() << "cuMemFree waits for the whole device";
  const CUdeviceptr block = Get(4096);
  EXPECT_EQ(d_.MemsetD8Async(block, 1, 4096, own_), CUDA_SUCCESS);
  EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
  EXPECT_EQ(d_.MemsetD8Async(block, 1, 4096, other_), CUDA_SUCCESS);
  EXPECT_EQ(backend_->Free(block), CUDA_SUCCESS);
  EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
  (void)d_.StreamSynchronize(other_);  // its memory is gone
  is_lost_ = true;
  EXPECT_THAT(heard_.misuses, testing::Not(testing::IsEmpty()));
}

TEST_P(Backends, RecordStreamKeepsTheMemory) {
  const CUdeviceptr block = Get(4096);
  EXPECT_EQ(d_.MemsetD8Async(block, 1, 4096, own_), CUDA_SUCCESS);
  EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
  EXPECT_EQ(backend_->RecordStream(block, other_), CUDA_SUCCESS);
  EXPECT_EQ(d_.MemsetD8Async(block, 1, 4096, other_), CUDA_SUCCESS) << "work after RecordStream counts";
  UseAndReuse(block, 4096);
  EXPECT_THAT(heard_.misuses, testing::IsEmpty());
}

TEST_P(Backends, RecordUseDegradesVisiblyAndSafely) {
  EXPECT_EQ(backend_->Precision(), UsePrecision::AtTheFree);
  for (int round = 0; round < 3; ++round) {
    const CUdeviceptr block = Get(4096);
    EXPECT_EQ(backend_->RecordUse(block, own_), CUDA_SUCCESS);
    EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
    EXPECT_EQ(d_.MemsetD8Async(block, 1, 4096, other_), CUDA_SUCCESS);
    EXPECT_EQ(backend_->RecordUse(block, other_), CUDA_SUCCESS);
    EXPECT_EQ(backend_->RecordUse(block, other_), CUDA_SUCCESS);
    UseAndReuse(block, 4096);
  }
  EXPECT_THAT(heard_.misuses, testing::IsEmpty());
  EXPECT_EQ(Count().uses_degraded, 6U);
  EXPECT_EQ(Count().uses_own_stream, 3U);
  EXPECT_EQ(Count().uses_merged, 3U);
  ASSERT_EQ(heard_.warnings.size(), 1U) << "once";
  EXPECT_THAT(heard_.warnings[0], testing::HasSubstr(backend_->Name()));
  EXPECT_THAT(heard_.warnings[0], testing::HasSubstr("as RecordStream"));
}

TEST_P(Backends, KeepAliveUntilWaitsForTheEventAsItWas) {
  const CUdeviceptr block = Get(4096);
  CUevent event = nullptr;
  EXPECT_EQ(d_.EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
  EXPECT_EQ(d_.MemsetD8Async(block, 1, 4096, other_), CUDA_SUCCESS);
  EXPECT_EQ(d_.EventRecord(event, other_), CUDA_SUCCESS);
  EXPECT_EQ(backend_->KeepAliveUntil(block, event), CUDA_SUCCESS);
  EXPECT_EQ(d_.EventDestroy(event), CUDA_SUCCESS);
  UseAndReuse(block, 4096);
  EXPECT_THAT(heard_.misuses, testing::IsEmpty());
}

TEST_P(Backends, SnapshotShowsEachBlock) {
  const CUdeviceptr block = Get(100);
  EXPECT_EQ(backend_->RecordStream(block, other_), CUDA_SUCCESS);
  const CUdeviceptr large = Get(std::size_t{2} << 20);
  Snapshot snapshot;
  EXPECT_EQ(backend_->TakeSnapshot(&snapshot), CUDA_SUCCESS);
  ASSERT_EQ(snapshot.segments.size(), 2U);
  for (const SnapshotSegment& segment : snapshot.segments) {
    ASSERT_EQ(segment.blocks.size(), 1U);
    EXPECT_EQ(segment.blocks[0].address, segment.address);
    EXPECT_EQ(segment.blocks[0].size, segment.total_size);
    EXPECT_EQ(segment.blocks[0].uses.size(), segment.address == block ? 1U : 0U);
    EXPECT_EQ(segment.large, segment.address == large);
  }
  EXPECT_EQ(backend_->Free(block), CUDA_SUCCESS);
  EXPECT_EQ(backend_->Free(large), CUDA_SUCCESS);
}

TEST_P(Backends, WorksInACapture) {
  EXPECT_EQ(d_.StreamBeginCapture(own_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  const CUdeviceptr block = Get(4096);
  EXPECT_EQ(d_.MemsetD8Async(block, 1, 4096, own_), CUDA_SUCCESS);
  EXPECT_EQ(backend_->Free(block), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(d_.StreamEndCapture(own_, &graph), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(d_.GraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  for (int launch = 0; launch < 2; ++launch) EXPECT_EQ(d_.GraphLaunch(exec, own_), CUDA_SUCCESS);
  EXPECT_EQ(d_.StreamSynchronize(own_), CUDA_SUCCESS);
  EXPECT_THAT(heard_.misuses, testing::IsEmpty()) << "the memory of a captured block outlives its Free";
  EXPECT_EQ(d_.GraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(d_.GraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(backend_->EmptyCache(), CUDA_SUCCESS);
}

TEST_P(Backends, EmptyCacheWaitsForWhatTheFreesWaitFor) {
  const CUdeviceptr block = Get(std::size_t{64} << 20);
  EXPECT_EQ(d_.MemsetD8Async(block, 1, std::size_t{64} << 20, own_), CUDA_SUCCESS);
  EXPECT_EQ(backend_->Free(block), CUDA_SUCCESS);
  EXPECT_EQ(backend_->EmptyCache(), CUDA_SUCCESS);
  EXPECT_EQ(Count().reserved_bytes[0].current, 0);
}

INSTANTIATE_TEST_SUITE_P(Both, Backends, testing::Values(Which::StreamOrdered, Which::Uncached),
                         [](const auto& row) { return row.param == Which::StreamOrdered ? "StreamOrdered" : "Uncached"; });

// One lifecycle in which every driver call occurs that a backend makes.
void Live(Which which, driver::DriverRef d, CUstream own, CUstream other, CUevent event) {
  std::unique_ptr<Backend> backend;
  const DeviceConfig device = {.device = 0};
  if (Create(which, d, &device, 1, nullptr, &backend) != CUDA_SUCCESS) {
    EXPECT_EQ(backend, nullptr);
    return;
  }
  CUdeviceptr block[3] = {};
  for (CUdeviceptr& each : block) {
    if (backend->Allocate(0, 4096, own, &each) != CUDA_SUCCESS) {
      EXPECT_EQ(each, 0U);
    }
  }
  (void)backend->RecordUse(block[0], other);
  (void)backend->KeepAliveUntil(block[1], event);
  for (const CUdeviceptr each : block) (void)backend->Free(each);
  Statistics statistics;
  backend->GetStatistics(0, &statistics);
  EXPECT_EQ(statistics.allocation[0].current, 0) << "an error of Free has consumed the pointer all the same";
  (void)backend->EmptyCache();
}

// Whichever call is refused, and with it whatever unwinds: nothing stays behind, no pointer is lost, the context stack is as it was.
TEST(BackendFaults, EveryCallRefusedOnceLeavesNothingBehind) {
  for (const Which which : {Which::StreamOrdered, Which::Uncached}) {
    std::set<std::string_view> refused;
    for (const CUresult code : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE}) {
      for (std::uint64_t n = 1;; ++n) {
        sim::World* const world = sim::CreateWorld({.device_bytes = std::uint64_t{64} << 20});
        const driver::DriverRef below = sim::Driver(world);
        CUcontext context = nullptr;
        CUstream own = nullptr;
        CUstream other = nullptr;
        ASSERT_EQ(below.Init(0), CUDA_SUCCESS);
        ASSERT_EQ(below.DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        ASSERT_EQ(below.CtxPushCurrent(context), CUDA_SUCCESS);
        ASSERT_EQ(below.StreamCreate(&own, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ASSERT_EQ(below.StreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        CUevent event = nullptr;
        ASSERT_EQ(below.EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        ASSERT_EQ(below.EventRecord(event, other), CUDA_SUCCESS);
        ASSERT_EQ(below.CtxPopCurrent(&context), CUDA_SUCCESS);
        RefusingDriver driver(below, n, code);
        Live(which, driver.ref(), own, other, event);
        ASSERT_EQ(below.CtxSynchronize(context), CUDA_SUCCESS);
        // A refused release leaves its object, which is the driver's doing; nothing else may stay for it.
        const bool is_over = driver.calls() < n;
        const auto kept = [&](std::string_view call) { return !is_over && driver::Name(driver.refused()) == call ? 1U : 0U; };
        const std::string what = std::string(driver::Name(driver.refused())) + ", call " + std::to_string(n);
        EXPECT_EQ(sim::LiveCount(world, Kind::DeviceMemory) + sim::LiveCount(world, Kind::StreamOrderedMemory), 0U) << what;
        EXPECT_EQ(sim::LiveCount(world, Kind::MemoryPool), kept("cuMemPoolDestroy")) << what;
        EXPECT_EQ(sim::LiveCount(world, Kind::Stream), 2U + kept("cuStreamDestroy_v2")) << what;
        EXPECT_EQ(sim::LiveCount(world, Kind::Event), 1U + kept("cuEventDestroy_v2")) << what;
        EXPECT_EQ(sim::LiveCount(world, Kind::PrimaryContext), 1U + kept("cuDevicePrimaryCtxRelease_v2")) << what;
        EXPECT_EQ(sim::LiveCount(world, Kind::ContextStackEntry), 0U) << what;
        sim::DestroyWorld(world);
        if (is_over) break;
        refused.insert(driver::Name(driver.refused()));
        ASSERT_LT(n, 1000U);
      }
    }
    EXPECT_THAT(refused, testing::IsSupersetOf({"cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
                                                "cuStreamIsCapturing", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent",
                                                "cuEventDestroy_v2", "cuStreamCreate"}));
  }
}

}  // namespace
}  // namespace cuaudit::alloc::backends_test
