// SPDX-License-Identifier: MIT
// record_use_d2_dropped_early.cc: the stash that keeps a block alive is emptied too early.
//
// Story   D2: event and block are to be kept until the owner's stream waits for the event. Dropped before that, the block is written by
//         its next owner while the side stream reads it; dropped before the read was even queued, the side stream reads what is not its
//         own any more. Both are silent on a device.
// Source  https://github.com/pytorch/pytorch/issues/181191 (the recipe that record_use replaces); written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d2_dropped_early {
namespace {

enum class Dropped { BeforeTheRead, BeforeTheWait, BehindTheWait };

template <Dropped when>
struct FiveSteps : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    if (when == Dropped::BeforeTheRead) pool.Free(block);
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    if (when == Dropped::BeforeTheRead) return CUDA_SUCCESS;  // nobody has been given the memory yet
    if (when == Dropped::BehindTheWait) CUAUDIT_STEP(Order(driver, streams.side, streams.owner));
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
    if (when == Dropped::BeforeTheWait) CUAUDIT_STEP(Order(driver, streams.side, streams.owner));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
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

TEST(RecordUseD2, DroppedBeforeTheWaitTheNextOwnerWritesUnderTheReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<FiveSteps<Dropped::BeforeTheWait>>("record_use_d2"), "unordered_access device_memory");
}

// The segment is the driver's all the time, and no one else has the block: only the pool knows. It said so, on any driver.
TEST(RecordUseD2, DroppedBeforeTheReadTheReaderHasNoBlock) {
  EXPECT_EQ(Wrong<FiveSteps<Dropped::BeforeTheRead>>("record_use_d2_stale"), "use_after_release block");
}

TEST(RecordUseD2, DroppedBehindTheWaitIsSilent) { ExpectSilent(OnPool<FiveSteps<Dropped::BehindTheWait>>("record_use_d2_right")); }

TEST(RecordUseD2, RecordUseMayBeFollowedByTheDropAtOnce) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d2_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d2_dropped_early
