// SPDX-License-Identifier: MIT
// record_use_d13_split_and_merge.cc: memory that is cut up, or put together, while uses of it are not over.
//
// Story   D13: the second version lets a split empty the list of waits once somebody has waited, which is right as long as the rest goes
//         to that same stream, and wrong in an allocator that gives the rest to another one. The first versions say nothing of merging: a
//         merged block that keeps one neighbour's list forgets the other's readers.
// Source  https://github.com/pytorch/pytorch/issues/181191, second and third version; written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d13_split_and_merge {
namespace {

enum class Cut { EmptiesTheList, EachPartKeepsIt };

// One block of two parts, read as a whole; the parts are given to two streams.
template <Cut cut>
struct Splits : WithPool {
  CUdeviceptr memory = 0;
  CUresult Work(DriverRef driver) {
    CUAUDIT_STEP(driver.MemAlloc(&memory, 2 * Streams::kBytes));
    CUAUDIT_STEP(driver.MemsetD8Async(memory, 1, 2 * Streams::kBytes, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.other));
    CUAUDIT_STEP(driver.MemcpyDtoHAsync(streams.result, memory, 2 * Streams::kBytes, streams.side));
    std::vector<CUstream> uses = {streams.side};
    for (CUstream stream : {streams.owner, streams.other}) {
      const CUdeviceptr part = memory + (stream == streams.other ? Streams::kBytes : 0);
      for (CUstream reader : uses) CUAUDIT_STEP(Order(driver, reader, stream));
      if (cut == Cut::EmptiesTheList) uses.clear();
      CUAUDIT_STEP(streams.Write(driver, part, stream));
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = streams.Settle(driver);
    if (memory != 0) code = First(code, driver.MemFree(std::exchange(memory, 0)));
    return First(code, WithPool::Teardown(driver));
  }
};

enum class Merged { KeepsOneList, JoinsThem };

// Two neighbours, each read by a stream of its own, are put together for the owner.
template <Merged merged>
struct Merges : Splits<Cut::EachPartKeepsIt> {
  CUresult Work(DriverRef driver) {
    CUAUDIT_STEP(driver.MemAlloc(&memory, 2 * Streams::kBytes));
    CUAUDIT_STEP(driver.MemsetD8Async(memory, 1, 2 * Streams::kBytes, streams.owner));
    std::vector<CUstream> uses;
    for (CUstream reader : {streams.side, streams.other}) {
      CUAUDIT_STEP(Order(driver, streams.owner, reader));
      CUAUDIT_STEP(streams.Read(driver, memory + (reader == streams.other ? Streams::kBytes : 0), reader));
      if (merged == Merged::KeepsOneList) uses.clear();
      uses.push_back(reader);
    }
    for (CUstream reader : uses) CUAUDIT_STEP(Order(driver, reader, streams.owner));
    return driver.MemsetD8Async(memory, 2, 2 * Streams::kBytes, streams.owner);
  }
};

// Two blocks of one segment, read by two streams; put together for one large block, and cut up again, all with uses that are not over.
struct OurAllocator : WithAllocator {
  static constexpr std::size_t kHalf = std::size_t{6} << 20;
  CUresult Work(DriverRef driver) {
    CUdeviceptr part[2] = {};
    for (CUdeviceptr& one : part) CUAUDIT_STEP(Get(kHalf, streams.owner, &one));
    for (int i = 0; i < 2; ++i) {
      CUstream reader = i == 0 ? streams.side : streams.other;
      CUAUDIT_STEP(streams.Write(driver, part[i], streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, reader));
      CUAUDIT_STEP(streams.Read(driver, part[i], reader));
      CUAUDIT_STEP(allocator->RecordUse(part[i], reader));
    }
    for (const CUdeviceptr one : part) CUAUDIT_STEP(Drop(one));
    CUdeviceptr whole = 0;
    CUAUDIT_STEP(Get(2 * kHalf, streams.owner, &whole));
    CUAUDIT_STEP(streams.Write(driver, whole, streams.owner));
    CUAUDIT_STEP(streams.Write(driver, whole + kHalf, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, whole + kHalf, streams.side));
    CUAUDIT_STEP(allocator->RecordUse(whole, streams.side));
    CUAUDIT_STEP(Drop(whole));
    for (CUdeviceptr& one : part) {
      CUAUDIT_STEP(Get(kHalf, streams.owner, &one));
      CUAUDIT_STEP(streams.Write(driver, one, streams.owner));
    }
    for (const CUdeviceptr one : part) CUAUDIT_STEP(Drop(one));
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD13, ASplitThatEmptiesTheListForgetsTheReaderOfTheRest) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Splits<Cut::EmptiesTheList>>("record_use_d13_split"), "unordered_access device_memory");
}

TEST(RecordUseD13, AMergeThatKeepsOneListForgetsTheOtherReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Merges<Merged::KeepsOneList>>("record_use_d13_merge"), "unordered_access device_memory");
}

TEST(RecordUseD13, EachPartKeepsTheListAndTheWholeHasBoth) {
  ExpectSilent(OnPool<Splits<Cut::EachPartKeepsIt>>("record_use_d13_split_right"));
  ExpectSilent(OnPool<Merges<Merged::JoinsThem>>("record_use_d13_merge_right"));
}

TEST(RecordUseD13, OursSplitsAndMergesWithUses) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d13_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d13_split_and_merge
