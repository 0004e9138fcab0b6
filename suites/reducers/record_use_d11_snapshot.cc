// SPDX-License-Identifier: MIT
// record_use_d11_snapshot.cc: somebody looks at the pool's own account of a block that was freed with a use that is not over.
//
// Story   D11: a block with pending waits looks inactive in a snapshot, and nothing says why a stream stalls later, or that the memory is
//         not at rest. A tool that believes it and moves the block to another stream lets that stream write under the reader.
// Source  https://github.com/pytorch/pytorch/issues/181191: asked for in the first version, dropped without an answer in the third;
//         written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d11_snapshot {
namespace {

template <bool uses_are_told>
struct MovedByATool : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    const std::vector<CUstream> pending = {streams.side};
    pool.Free(block);
    // The tool.
    if (!pool.IsFree(block)) return CUDA_ERROR_ASSERT;
    CUAUDIT_STEP(Order(driver, streams.owner, streams.other));
    if (uses_are_told) {
      for (CUstream reader : pending) CUAUDIT_STEP(Order(driver, reader, streams.other));
    }
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.other));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
};

// The tool is told who is not done yet, and by whose count.
struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
    CUAUDIT_STEP(Drop(block));
    alloc::Snapshot snapshot;
    CUAUDIT_STEP(allocator->TakeSnapshot(&snapshot));
    std::size_t told = 0;
    for (const alloc::SnapshotSegment& segment : snapshot.segments) {
      for (const alloc::SnapshotBlock& one : segment.blocks) {
        if (one.state == alloc::BlockState::ActiveAllocated) return CUDA_ERROR_ASSERT;
        for (const alloc::PendingUse& use : one.uses) {
          if (one.address != block || use.handle != streams.side || use.sequence == 0) return CUDA_ERROR_ASSERT;
          CUAUDIT_STEP(Order(driver, use.handle, streams.other));
          ++told;
        }
      }
    }
    return told == 1 ? CUDA_SUCCESS : CUDA_ERROR_ASSERT;
  }
};

TEST(RecordUseD11, AnAccountWithoutUsesLetsAnotherStreamWriteUnderTheReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<MovedByATool<false>>("record_use_d11"), "unordered_access device_memory");
}

TEST(RecordUseD11, AnAccountWithUsesIsEnough) { ExpectSilent(OnPool<MovedByATool<true>>("record_use_d11_right")); }

TEST(RecordUseD11, OurSnapshotNamesTheReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("on a device the read may be over before anybody looks");
  ExpectSilentOnce(OnAllocator<OurAllocator>("record_use_d11_allocator"));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d11_snapshot
