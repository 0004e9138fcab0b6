// SPDX-License-Identifier: MIT
// record_use_d3_wrong_stream.cc: the wait for the reader is put on a stream that does not get the memory.
//
// Story   D3: the stream that will be handed the block must wait for the event. A wait on whatever stream is current where the stash is
//         dropped protects nothing: the owner's next block is the same memory, still being read.
// Source  https://github.com/pytorch/pytorch/issues/181191 (the recipe that record_use replaces); written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d3_wrong_stream {
namespace {

template <bool on_the_owner>
struct FiveSteps : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    CUAUDIT_STEP(Order(driver, streams.side, on_the_owner ? streams.owner : streams.other));
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
};

// The allocator is told of the reader, and sees itself to who has to wait: the same stream; or, when the owner is gone, the reader, which
// need not wait for itself but for the owner.
struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    for (int i = 0; i < 2; ++i) {
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
      CUAUDIT_STEP(Drop(block));
    }
    CUAUDIT_STEP(allocator->RetireStream(0, streams.owner));
    CUAUDIT_STEP(Get(kLarge, streams.side, &block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.side));
    return Drop(block);
  }
};

TEST(RecordUseD3, AWaitOnAnotherStreamLeavesTheReaderUnprotected) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<FiveSteps<false>>("record_use_d3"), "unordered_access device_memory");
}

TEST(RecordUseD3, AWaitOnTheOwnersStreamIsSilent) { ExpectSilent(OnPool<FiveSteps<true>>("record_use_d3_right")); }

TEST(RecordUseD3, WhoeverIsGivenTheMemoryWaits) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d3_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d3_wrong_stream
