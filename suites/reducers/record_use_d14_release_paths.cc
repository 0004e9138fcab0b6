// SPDX-License-Identifier: MIT
// record_use_d14_release_paths.cc: memory with uses that are not over goes back to the driver.
//
// Story   D14: freeing a plain segment synchronises, and allocators rely on it. Unmapping does not: an expandable segment that waits for
//         its own stream only takes the memory away from under a reader on another one. The same for whatever a trim or an emptied cache
//         gives back.
// Source  https://github.com/pytorch/pytorch/issues/181191 (what its tests leave out) and c10/cuda/CUDACachingAllocator.cpp (unmap);
//         written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d14_release_paths {
namespace {

// One expandable segment: an address range with one handle mapped.
struct Range {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  bool mapped = false;

  CUresult Open(DriverRef driver) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    CUAUDIT_STEP(driver.MemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUAUDIT_STEP(driver.MemAddressReserve(&base, bytes, 0, 0, 0));
    CUAUDIT_STEP(driver.MemCreate(&handle, bytes, &properties, 0));
    CUAUDIT_STEP(driver.MemMap(base, bytes, 0, handle, 0));
    mapped = true;
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return driver.MemSetAccess(base, bytes, &access, 1);
  }
  CUresult Unmap(DriverRef driver) {
    if (mapped) CUAUDIT_STEP(driver.MemUnmap(base, bytes));
    mapped = false;
    return CUDA_SUCCESS;
  }
  CUresult Close(DriverRef driver) {
    CUresult code = Unmap(driver);
    if (handle != 0) code = First(code, driver.MemRelease(std::exchange(handle, 0)));
    if (base != 0 && !mapped) code = First(code, driver.MemAddressFree(std::exchange(base, 0), bytes));
    return code;
  }
};

enum class WaitsFor { ItsOwnStream, ItsOwnStreamInLuck, TheReader };

template <WaitsFor whom>
struct Unmaps : WithPool {
  Range range;
  CUresult Work(DriverRef driver) {
    CUAUDIT_STEP(range.Open(driver));
    CUAUDIT_STEP(streams.Write(driver, range.base, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, range.base, streams.side));
    CUAUDIT_STEP(driver.StreamSynchronize(whom == WaitsFor::TheReader ? streams.side : streams.owner));
    // In luck: the device has come to the reader, and nobody has been told that it is done.
    for (int i = 0; whom == WaitsFor::ItsOwnStreamInLuck && i < 2; ++i) {
      if (driver.StreamQuery(streams.side) == CUDA_SUCCESS) return CUDA_ERROR_ASSERT;
    }
    return range.Unmap(driver);
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = streams.Settle(driver);
    code = First(code, range.Close(driver));
    if (range.mapped) (void)range.Close(driver);
    return First(code, WithPool::Teardown(driver));
  }
};

template <bool expandable>
struct OurAllocator : WithAllocator {
  OurAllocator() : WithAllocator(Expandable()) {}
  static alloc::Options Expandable() {
    alloc::Options options = Waiting();
    options.expandable_segments = expandable;
    return options;
  }
  CUresult Work(DriverRef driver) {
    for (const bool all : {false, true}) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
      CUAUDIT_STEP(Drop(block));
      CUAUDIT_STEP(all ? allocator->EmptyCache() : allocator->Trim(0, 0));
      alloc::Statistics statistics;
      allocator->GetStatistics(0, &statistics);
      if (statistics.reserved_bytes[0].current != 0) return CUDA_ERROR_ASSERT;
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD14, UnmappedAfterItsOwnStreamTheReaderIsLeftWithNothing) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("a device that loses the mapping under a reader loses the context, or nothing");
  EXPECT_EQ(Wrong<Unmaps<WaitsFor::ItsOwnStream>>("record_use_d14"),
            "without any fault teardown returned CUDA_ERROR_ILLEGAL_ADDRESS in cycle 1");
  EXPECT_EQ(Wrong<Unmaps<WaitsFor::ItsOwnStreamInLuck>>("record_use_d14_in_luck"), "freed_in_use mapping");
}

TEST(RecordUseD14, UnmappedAfterTheReaderIsSilent) { ExpectSilent(OnPool<Unmaps<WaitsFor::TheReader>>("record_use_d14_right")); }

TEST(RecordUseD14, TrimAndEmptyCacheWaitForTheUses) {
  ExpectSilentOnce(OnAllocator<OurAllocator<false>>("record_use_d14_segments"));
  ExpectSilentOnce(OnAllocator<OurAllocator<true>>("record_use_d14_expandable"));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d14_release_paths
