// SPDX-License-Identifier: MIT
// record_use_d6_own_stream.cc: record_use with the stream that the block was allocated for.
//
// Story   D6: work on the owner's stream is ordered anyway, so the call is to do nothing. One that records an event all the same, and
//         looks for uses of other streams when the block is freed, keeps an event for each call.
// Source  https://github.com/pytorch/pytorch/issues/181191, rule 3 of its third version; written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d6_own_stream {
namespace {

template <bool looks_first>
struct Records : WithPool {
  struct Use {
    CUstream stream;
    CUevent event;
  };
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    std::vector<Use> uses;
    CUAUDIT_STEP(RecordUse(driver, streams.owner, &uses));
    pool.Free(block);
    CUresult code = CUDA_SUCCESS;
    for (const Use& use : uses) {
      if (use.stream != streams.owner) code = First(code, driver.EventDestroy(use.event));
    }
    return code;
  }
  CUresult RecordUse(DriverRef driver, CUstream stream, std::vector<Use>* uses) {
    if (looks_first && stream == streams.owner) return CUDA_SUCCESS;
    uses->push_back({stream, nullptr});
    CUAUDIT_STEP(driver.EventCreate(&uses->back().event, CU_EVENT_DISABLE_TIMING));
    return driver.EventRecord(uses->back().event, stream);
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.owner));
      CUAUDIT_STEP(allocator->RecordUse(0, streams.side));  // of nothing
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD6, AnEventForTheOwnStreamIsKeptByNobody) {
  EXPECT_EQ(Lost(RunCycles(OnPool<Records<false>>("record_use_d6"), {.warm_up = 1, .cycles = 3})), "event 3");
}

TEST(RecordUseD6, ACallThatLooksFirstIsSilent) { ExpectSilent(OnPool<Records<true>>("record_use_d6_right")); }

TEST(RecordUseD6, ItMakesNoEventAndNoWait) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d6_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
  for (const char* const call : {"cuEventCreate#1=OUT_OF_MEMORY,refuse", "cuStreamWaitEvent#1=INVALID_HANDLE,refuse"})
    EXPECT_EQ(Replay(lifecycle, {call}).fired, 0U) << call;
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d6_own_stream
