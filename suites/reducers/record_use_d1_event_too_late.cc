// SPDX-License-Identifier: MIT
// record_use_d1_event_too_late.cc: a block per layer is read on a side stream; the event behind the read comes too late.
//
// Story   D1: the recipe asks for an event right behind the last read. Recorded once for all layers at the end of the step, it keeps each
//         layer's block until then: safe, and six blocks are reserved where two would do.
// Source  https://github.com/pytorch/pytorch/issues/181191 (the recipe that record_use replaces); written anew from the facts. How much
//         is reserved is asked by refusing the allocation that must never be needed.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d1_event_too_late {
namespace {

constexpr int kLayers = 6;

enum class Recorded { BehindTheRead, AtTheEnd };

template <Recorded when>
struct FiveSteps : WithPool {
  FiveSteps() : WithPool(1) {}
  struct Stashed {
    CUdeviceptr block;
    CUevent read;
  };
  std::vector<Stashed> stash;

  CUresult Work(DriverRef driver) {
    for (int layer = 0; layer < kLayers; ++layer) {
      if (when == Recorded::BehindTheRead && stash.size() > 1) CUAUDIT_STEP(LetGo(driver, 1));
      CUdeviceptr block = 0;
      CUAUDIT_STEP(pool.Allocate(&block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      stash.push_back({block, nullptr});
      CUAUDIT_STEP(driver.EventCreate(&stash.back().read, CU_EVENT_DISABLE_TIMING));
      if (when == Recorded::BehindTheRead) CUAUDIT_STEP(driver.EventRecord(stash.back().read, streams.side));
    }
    if (when == Recorded::AtTheEnd) {
      for (const Stashed& one : stash) CUAUDIT_STEP(driver.EventRecord(one.read, streams.side));
    }
    return LetGo(driver, stash.size());
  }
  // The owner waits for the read, then the block goes back.
  CUresult LetGo(DriverRef driver, std::size_t count) {
    for (; count > 0; --count) {
      CUAUDIT_STEP(driver.StreamWaitEvent(streams.owner, stash.front().read, 0));
      CUAUDIT_STEP(driver.EventDestroy(stash.front().read));
      pool.Free(stash.front().block);
      stash.erase(stash.begin());
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    for (const Stashed& one : stash) {
      if (one.read != nullptr) (void)driver.EventDestroy(one.read);
    }
    stash.clear();
    return WithPool::Teardown(driver);
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int layer = 0; layer < kLayers; ++layer) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD1, AnEventForTheWholeStepReservesABlockForEachLayer) {
  const auto lifecycle = OnPool<FiveSteps<Recorded::AtTheEnd>>("record_use_d1");
  EXPECT_EQ(Lost(RunCycles(lifecycle)), "");  // safe
  EXPECT_FALSE(FitsInto(2, lifecycle));
  EXPECT_FALSE(FitsInto(kLayers - 1, lifecycle));
  EXPECT_TRUE(FitsInto(kLayers, lifecycle));
}

TEST(RecordUseD1, AnEventBehindEachReadNeedsTwoBlocks) {
  const auto lifecycle = OnPool<FiveSteps<Recorded::BehindTheRead>>("record_use_d1_right");
  ExpectSilent(lifecycle);
  EXPECT_TRUE(FitsInto(2, lifecycle));
}

TEST(RecordUseD1, RecordUseNeedsNoMore) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d1_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d1_event_too_late
