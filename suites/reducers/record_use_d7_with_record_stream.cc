// SPDX-License-Identifier: MIT
// record_use_d7_with_record_stream.cc: one block, told of a use on one stream and given to another one by record_stream.
//
// Story   D7: the two ways to tell are independent. record_stream covers all that its stream is given until the block is freed; a
//         record_use that replaces it, or takes its event for both, loses what came after the call.
// Source  https://github.com/pytorch/pytorch/issues/181191, rule 5 of its third version; written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d7_with_record_stream {
namespace {

enum class Both { OneReplacesTheOther, Kept };

template <Both both>
struct Pooled : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.other));
    bool other_until_free = true;  // record_stream(other)
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    CUevent used = nullptr;  // record_use(side)
    CUAUDIT_STEP(driver.EventCreate(&used, CU_EVENT_DISABLE_TIMING));
    CUresult code = driver.EventRecord(used, streams.side);
    if (both == Both::OneReplacesTheOther) other_until_free = false;
    if (code == CUDA_SUCCESS) code = streams.Read(driver, block, streams.other);
    if (code == CUDA_SUCCESS) code = driver.StreamWaitEvent(streams.owner, used, 0);
    code = First(code, driver.EventDestroy(used));
    if (code != CUDA_SUCCESS) return code;
    if (other_until_free) CUAUDIT_STEP(Order(driver, streams.other, streams.owner));
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
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
      CUAUDIT_STEP(Order(driver, streams.owner, streams.other));
      CUAUDIT_STEP(allocator->RecordStream(block, streams.other));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.other));
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD7, ARecordUseThatReplacesRecordStreamLosesTheOtherReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Pooled<Both::OneReplacesTheOther>>("record_use_d7"), "unordered_access device_memory");
}

TEST(RecordUseD7, BothKeptIsSilent) { ExpectSilent(OnPool<Pooled<Both::Kept>>("record_use_d7_right")); }

TEST(RecordUseD7, OurBlocksCarryBoth) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d7_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d7_with_record_stream
