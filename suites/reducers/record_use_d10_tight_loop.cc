// SPDX-License-Identifier: MIT
// record_use_d10_tight_loop.cc: a block that is used again and again, and not freed for long.
//
// Story   D10: each use appends an event to the block, and only an allocation ever takes one away: a parameter that a side stream reads
//         in every step collects an event per step. The first version asked for a cap, the third dropped the question. The newest use of
//         a stream covers its earlier ones, so one entry per stream is enough.
// Source  https://github.com/pytorch/pytorch/issues/181191, its open questions; written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d10_tight_loop {
namespace {

constexpr int kSteps = 100;

template <bool newest_only>
struct Pooled : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    std::vector<CUevent> uses;
    CUresult code = CUDA_SUCCESS;
    for (int i = 0; i < kSteps && code == CUDA_SUCCESS; ++i) {
      code = streams.Read(driver, block, streams.side);
      if (code == CUDA_SUCCESS && (!newest_only || uses.empty())) {
        uses.push_back(nullptr);
        code = driver.EventCreate(&uses.back(), CU_EVENT_DISABLE_TIMING);
      }
      if (code == CUDA_SUCCESS) code = driver.EventRecord(uses.back(), streams.side);
    }
    for (CUevent use : uses) {
      if (use == nullptr) continue;
      code = First(code, driver.StreamWaitEvent(streams.owner, use, 0));
      code = First(code, driver.EventDestroy(use));
    }
    pool.Free(block);
    return code;
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    for (int i = 0; i < kSteps; ++i) {
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
    }
    return Drop(block);
  }
};

// Beside those of the uses, one event orders the first reader.
TEST(RecordUseD10, AnEventForEachUseIsNeverEnough) {
  const auto lifecycle = OnPool<Pooled<false>>("record_use_d10");
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 1})), "");
  EXPECT_FALSE(FitsInto(1 + kSteps - 1, lifecycle, "cuEventCreate"));
  EXPECT_TRUE(FitsInto(1 + kSteps, lifecycle, "cuEventCreate"));
}

TEST(RecordUseD10, OneForTheNewestUseIs) {
  const auto lifecycle = OnPool<Pooled<true>>("record_use_d10_right");
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.warm_up = 1, .cycles = 1});
  EXPECT_TRUE(FitsInto(2, lifecycle, "cuEventCreate"));
}

// Whatever the device is behind with: as many as stamps are told apart (Options::max_stamps_per_stream), and one that is taken before the
// oldest is given up.
TEST(RecordUseD10, OursStaysBounded) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d10_allocator");
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.warm_up = 1, .cycles = 1});
  EXPECT_TRUE(FitsInto(2 + static_cast<int>(alloc::Options().max_stamps_per_stream), lifecycle, "cuEventCreate"));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d10_tight_loop
