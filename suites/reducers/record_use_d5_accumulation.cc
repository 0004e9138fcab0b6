// SPDX-License-Identifier: MIT
// record_use_d5_accumulation.cc: two streams read one block, and both say so.
//
// Story   D5: uses add up; who gets the memory waits for all of them. A block with room for one remembered use forgets the first reader,
//         and with it whoever was slower.
// Source  https://github.com/pytorch/pytorch/issues/181191, rule 4 of its third version; written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d5_accumulation {
namespace {

// As a block that holds an event for the reader of last.
template <std::size_t remembered>
struct Remembers : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    std::vector<CUstream> uses;
    for (CUstream reader : {streams.side, streams.other}) {
      CUAUDIT_STEP(Order(driver, streams.owner, reader));
      CUAUDIT_STEP(streams.Read(driver, block, reader));
      if (uses.size() == remembered) uses.erase(uses.begin());
      uses.push_back(reader);
    }
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    for (CUstream reader : uses) CUAUDIT_STEP(Order(driver, reader, streams.owner));
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
      for (CUstream reader : {streams.side, streams.other, streams.side}) {
        CUAUDIT_STEP(Order(driver, streams.owner, reader));
        CUAUDIT_STEP(streams.Read(driver, block, reader));
        CUAUDIT_STEP(allocator->RecordUse(block, reader));
      }
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD5, ABlockThatRemembersOneUseForgetsTheFirstReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Remembers<1>>("record_use_d5"), "unordered_access device_memory");
}

TEST(RecordUseD5, ABlockThatRemembersBothIsSilent) { ExpectSilent(OnPool<Remembers<2>>("record_use_d5_right")); }

TEST(RecordUseD5, UsesAddUp) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d5_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d5_accumulation
