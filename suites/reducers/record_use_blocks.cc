// SPDX-License-Identifier: MIT
// record_use_blocks.cc: a block handed out again, split and merged, released.
#include <thread>

#include "suites/reducers/side_stream.h"

// Two streams that are called by one handle.
//
// Story   D12: "the own stream" is decided by comparing handles. A new stream may have the handle of one that was destroyed, and the
//         default stream of each thread has the same one: a use on it is then taken for the owner's, does nothing, and the reader is
//         forgotten. The driver's number of a stream is never given out twice. Here two threads' default streams, which need no luck to
//         meet.
// Source  https://github.com/pytorch/pytorch/issues/181191, and https://github.com/rapidsai/rmm (streams by cuStreamGetId); written anew
//         from the facts.
namespace cuaudit::reducers::record_use_d12_same_handle {
namespace {

const CUstream kOfThisThread = CU_STREAM_PER_THREAD;

// On a thread of its own, whose default stream waits for `ready`, then reads the block; `use` tells of it there.
template <typename Use>
CUresult ReadOnAnotherThread(DriverRef driver, const Streams& streams, CUdeviceptr block, CUevent ready, CUevent done, const Use& use) {
  CUcontext context = nullptr;
  CUAUDIT_STEP(driver.CtxGetCurrent(&context));
  CUresult code = CUDA_SUCCESS;
  std::thread([&] {
    code = driver.CtxPushCurrent(context);
    if (code != CUDA_SUCCESS) return;
    code = driver.StreamWaitEvent(kOfThisThread, ready, 0);
    if (code == CUDA_SUCCESS) code = streams.Read(driver, block, kOfThisThread);
    if (code == CUDA_SUCCESS) code = driver.EventRecord(done, kOfThisThread);
    if (code == CUDA_SUCCESS) code = use();
    CUcontext popped = nullptr;
    const CUresult left = driver.CtxPopCurrent(&popped);
    if (left != CUDA_SUCCESS) (void)driver.CtxPopCurrent(&popped);
    code = First(code, left);
  }).join();
  return code;
}

enum class SameBy { Handle, Number };

template <SameBy same>
struct Pooled : WithPool {
  CUevent ready = nullptr;
  CUevent done = nullptr;
  CUresult Init(DriverRef driver) {
    CUAUDIT_STEP(WithPool::Init(driver));
    CUAUDIT_STEP(driver.EventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    return driver.EventCreate(&done, CU_EVENT_DISABLE_TIMING);
  }
  CUresult Identify(DriverRef driver, unsigned long long* identity) const {
    *identity = reinterpret_cast<std::uintptr_t>(kOfThisThread);
    return same == SameBy::Handle ? CUDA_SUCCESS : driver.StreamGetId(kOfThisThread, identity);
  }
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    unsigned long long owner = 0;
    CUAUDIT_STEP(Identify(driver, &owner));
    CUAUDIT_STEP(streams.Write(driver, block, kOfThisThread));
    CUAUDIT_STEP(driver.EventRecord(ready, kOfThisThread));
    unsigned long long user = 0;
    CUAUDIT_STEP(ReadOnAnotherThread(driver, streams, block, ready, done, [&] { return Identify(driver, &user); }));
    if (user != owner) CUAUDIT_STEP(driver.StreamWaitEvent(kOfThisThread, done, 0));
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, kOfThisThread));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = driver.StreamSynchronize(kOfThisThread);
    if (done != nullptr) {  // the other thread's read, for which this thread's stream need not have waited
      const CUresult waited = driver.EventSynchronize(done);
      if (waited != CUDA_SUCCESS) (void)driver.EventSynchronize(done);
      code = First(code, waited);
    }
    for (CUevent* one : {&ready, &done}) {
      if (*one != nullptr) code = First(code, driver.EventDestroy(std::exchange(*one, nullptr)));
    }
    return First(code, WithPool::Teardown(driver));
  }
};

struct OurAllocator : WithAllocator {
  CUevent ready = nullptr;
  CUevent done = nullptr;
  CUresult Init(DriverRef driver) {
    CUAUDIT_STEP(driver.EventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    CUAUDIT_STEP(driver.EventCreate(&done, CU_EVENT_DISABLE_TIMING));
    return WithAllocator::Init(driver);
  }
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, kOfThisThread, &block));
      CUAUDIT_STEP(streams.Write(driver, block, kOfThisThread));
      CUAUDIT_STEP(driver.EventRecord(ready, kOfThisThread));
      CUAUDIT_STEP(
          ReadOnAnotherThread(driver, streams, block, ready, done, [&] { return allocator->RecordUse(block, CU_STREAM_PER_THREAD); }));
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = driver.StreamSynchronize(kOfThisThread);
    if (code != CUDA_SUCCESS) (void)driver.StreamSynchronize(kOfThisThread);
    code = First(code, WithAllocator::Teardown(driver));
    for (CUevent* one : {&ready, &done}) {
      if (*one != nullptr) code = First(code, driver.EventDestroy(std::exchange(*one, nullptr)));
    }
    return code;
  }
};

TEST(RecordUseD12, AnotherThreadsDefaultStreamIsTakenForTheOwn) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Pooled<SameBy::Handle>>("record_use_d12"), "unordered_access device_memory");
}

TEST(RecordUseD12, StreamsByTheirNumberAreSilent) { ExpectSilent(OnPool<Pooled<SameBy::Number>>("record_use_d12_right")); }

TEST(RecordUseD12, OursTellsThemApart) { ExpectSilentInOneSegment<OurAllocator>("record_use_d12_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d12_same_handle

// Memory that is cut up, or put together, while uses of it are not over.
//
// Story   D13: the second version lets a split empty the list of waits once somebody has waited, which is right as long as the rest goes
//         to that same stream, and wrong in an allocator that gives the rest to another one. The first versions say nothing of merging: a
//         merged block that keeps one neighbour's list forgets the other's readers.
// Source  https://github.com/pytorch/pytorch/issues/181191, second and third version; written anew from the facts.
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

TEST(RecordUseD13, OursSplitsAndMergesWithUses) { ExpectSilentInOneSegment<OurAllocator>("record_use_d13_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d13_split_and_merge

// Memory with uses that are not over goes back to the driver.
//
// Story   D14: freeing a plain segment synchronises, and allocators rely on it. Unmapping does not: an expandable segment that waits for
//         its own stream only takes the memory away from under a reader on another one. The same for whatever a trim or an emptied cache
//         gives back.
// Source  https://github.com/pytorch/pytorch/issues/181191 (what its tests leave out) and c10/cuda/CUDACachingAllocator.cpp (unmap);
//         written anew from the facts.
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
