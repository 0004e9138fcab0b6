// SPDX-License-Identifier: MIT
// How a private pool was cut up, and is again: never over what is still at work.
#include <gmock/gmock.h>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::checkpoints_test {
namespace {

TEST(Checkpoints, RestoreHowAPoolWasCutUp) {
  Allocating a;
  CUstream s = a.Stream();
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  const CUdeviceptr y = a.Get(2 * kMiB, s);
  const CUdeviceptr z = a.Get(3 * kMiB, s);
  a.Drop(y);
  Checkpoint checkpoint;
  ASSERT_OK(a->TakeCheckpoint(0, pool, &checkpoint));
  ASSERT_EQ(checkpoint.segments.size(), 1U);
  EXPECT_EQ(checkpoint.segments[0].blocks.size(), 4U);
  a.Drop(x);
  a.Drop(z);
  const CUdeviceptr w = a.Get(9 * kMiB, s);
  const CUdeviceptr v = a.Get(14 * kMiB, s);
  RestoreResult result;
  ASSERT_OK(a->RestoreCheckpoint(checkpoint, &result)) << a.LastText();
  EXPECT_THAT(result.freed, testing::UnorderedElementsAre(w, v));
  EXPECT_THAT(result.allocated, testing::UnorderedElementsAre(x, z));
  EXPECT_EQ(a.Stats().allocated_bytes[0].current, static_cast<std::int64_t>(7 * kMiB));
  EXPECT_EQ(a.Get(2 * kMiB, s), y);
  EXPECT_EQ(a->Free(w), x == w ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  a.Drop(z);
  checkpoint.segments[0].address += 512;
  EXPECT_EQ(a->RestoreCheckpoint(checkpoint, &result), CUDA_ERROR_INVALID_VALUE);
  checkpoint.pool = {0, 99};
  EXPECT_EQ(a->RestoreCheckpoint(checkpoint, &result), CUDA_ERROR_INVALID_VALUE);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
}

// What is allocated from now on comes from a pool that cuts nothing up.
PoolId IntoWholeBlocks(Allocating& a) {
  PoolOptions whole = {.no_split = true};
  PoolId pool;
  EXPECT_OK(a->CreatePool(whole, &pool));
  EXPECT_OK(a->BeginAllocateToPool(0, pool, {}));
  return pool;
}

// In a pool that cuts nothing up a small block is as large as a large request.
TEST(Checkpoints, ARestoredBlockIsCachedForWhatItWasGivenOutFor) {
  Allocating a;
  CUstream s = a.Stream();
  const PoolId pool = IntoWholeBlocks(a);
  const CUdeviceptr x = a.Get(512, s);
  Checkpoint checkpoint;
  ASSERT_OK(a->TakeCheckpoint(0, pool, &checkpoint));
  RestoreResult result;
  ASSERT_OK(a->RestoreCheckpoint(checkpoint, &result)) << a.LastText();
  a.Drop(x);
  const CUdeviceptr y = a.Get(2 * kMiB, s);
  EXPECT_NE(y, x);
  EXPECT_EQ(a.Stats().allocation[1].current, 0);
  EXPECT_EQ(a.Stats().allocation[2].current, 1);
  EXPECT_EQ(a.Get(512, s), x);
  a.Drop(y);
  a.Drop(x);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
}

// A thread's cache would have it for nobody, and lose it: written into a checkpoint, or since the memory there is another segment's by now.
TEST(Checkpoints, ABlockThatIsGivenOutForNothingIsNotRestored) {
  Allocating a;
  CUstream s = a.Stream();
  const PoolId pool = IntoWholeBlocks(a);
  const CUdeviceptr x = a.Get(512, s);
  const CUdeviceptr z = a.Get(512, s);
  Checkpoint taken;
  ASSERT_OK(a->TakeCheckpoint(0, pool, &taken));
  ASSERT_EQ(taken.segments.size(), 2U);
  RestoreResult result;
  for (const std::size_t requested : {std::size_t{0}, 2 * kMiB}) {
    Checkpoint bad = taken;
    CheckpointBlock& block = bad.segments[bad.segments[0].address == x ? 0 : 1].blocks[0];
    ASSERT_EQ(block.address, x);
    block.requested = requested;
    EXPECT_EQ(a->RestoreCheckpoint(bad, &result), CUDA_ERROR_INVALID_VALUE) << requested;
    EXPECT_THAT(a.LastText(), testing::HasSubstr("no request for so many bytes"));
    EXPECT_EQ(a.Stats().allocation[1].current, 2);
    EXPECT_EQ(a.Stats().requested_bytes[1].current, 1024);
    a.Drop(x);
    a.Drop(z);
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    EXPECT_OK(a->EmptyCache(pool)) << a.LastText();
    EXPECT_EQ(a.Reserved(), 0);
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    ASSERT_EQ(a.Get(512, s), x);
    ASSERT_EQ(a.Get(512, s), z);
  }
  ASSERT_OK(a->RestoreCheckpoint(taken, &result)) << a.LastText();
  a.Drop(x);
  a.Drop(z);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_OK(a->EmptyCache(pool)) << a.LastText();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  ASSERT_EQ(a.Get(2 * kMiB, s), x);
  EXPECT_EQ(a->RestoreCheckpoint(taken, &result), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(a.LastText(), testing::HasSubstr("no request for so many bytes"));
  a.Drop(x);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_OK(a->EmptyCache(pool)) << a.LastText();
  EXPECT_EQ(a.Reserved(), 0);
}

TEST(Checkpoints, AreNotTakenOfWhatIsStillUsed) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  a.Use(x, 4 * kMiB, s, t);
  a.Drop(x);
  Checkpoint checkpoint;
  EXPECT_EQ(a->TakeCheckpoint(0, pool, &checkpoint), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  ASSERT_OK(a->EmptyCache(pool));
  EXPECT_OK(a->TakeCheckpoint(0, pool, &checkpoint));
}

TEST(Checkpoints, AreNotRestoredOverWhatIsStillUsed) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  Checkpoint checkpoint;
  ASSERT_OK(a->TakeCheckpoint(0, pool, &checkpoint));
  const CUdeviceptr y = a.Get(2 * kMiB, s);
  a.Use(y, 2 * kMiB, s, t);
  const Snapshot before = a.Look();
  RestoreResult result;
  EXPECT_EQ(a->RestoreCheckpoint(checkpoint, &result), CUDA_ERROR_ILLEGAL_STATE);  // y, which it would free
  EXPECT_THAT(a.LastText(), testing::HasSubstr("has uses"));
  a.Drop(y);
  EXPECT_EQ(a->RestoreCheckpoint(checkpoint, &result), CUDA_ERROR_ILLEGAL_STATE);  // and y is pending
  EXPECT_THAT(a.LastText(), testing::HasSubstr("not over"));
  EXPECT_EQ(a.Look().segments[0].allocated_size, 4 * kMiB);
  EXPECT_EQ(a.Look().segments[0].blocks.size(), before.segments[0].blocks.size());
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_OK(a->EmptyCache(pool));
  EXPECT_OK(a->RestoreCheckpoint(checkpoint, &result)) << a.LastText();
  a.Drop(x);
}

// What it frees may be at work still: on its own stream, and on one that it was lent to.
TEST(Checkpoints, GiveNothingBackBeforeItsWorkIsOver) {
  for (const bool is_expandable : {false, true}) {
    Options options;
    options.expandable_segments = is_expandable;
    options.cross_stream = CrossStream::Ready;
    options.max_split_size = 30 * kMiB;
    Allocating a(options);
    CUstream s = a.Stream();
    CUstream t = a.Stream();
    const PoolId pool = a.Pool();
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    Checkpoint empty;
    ASSERT_OK(a->TakeCheckpoint(0, pool, &empty));
    const CUdeviceptr x = a.Get(40 * kMiB, s);
    a.Write(x, 40 * kMiB, s);
    RestoreResult result;
    ASSERT_OK(a->RestoreCheckpoint(empty, &result)) << a.LastText();
    EXPECT_THAT(result.freed, testing::ElementsAre(x));
    EXPECT_EQ(a.Stats().oversize_allocations.current, 0);
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    EXPECT_OK(a->EmptyCache(pool)) << a.LastText();
    EXPECT_EQ(a.Reserved(), 0);
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    a.Drop(a.Get(4 * kMiB, s));
    EXPECT_OK(a->RetireStream(0, s));
    EXPECT_OK(a.d.StreamSynchronize(s));
    const CUdeviceptr lent = a.Get(4 * kMiB, t);
    a.Write(lent, 4 * kMiB, t);
    EXPECT_EQ(a.Stats().served_other_ready, 1U);
    EXPECT_EQ(a->RestoreCheckpoint(empty, &result), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_THAT(a.LastText(), testing::HasSubstr("has uses"));
    a.Drop(lent);
    ASSERT_OK(a->EndAllocateToPool(0, pool));
  }
}

// What has grown since, across the end of what there was.
TEST(Checkpoints, RestoreAPoolThatHasGrown) {
  for (const bool is_expandable : {false, true}) {
    Allocating a({.expandable_segments = is_expandable});
    CUstream s = a.Stream();
    const PoolId pool = a.Pool();
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    const CUdeviceptr x = a.Get(8 * kMiB, s);
    Checkpoint taken;
    ASSERT_OK(a->TakeCheckpoint(0, pool, &taken));
    const CUdeviceptr y = a.Get(50 * kMiB, s);
    a.Write(y, 50 * kMiB, s);
    RestoreResult result;
    ASSERT_OK(a->RestoreCheckpoint(taken, &result)) << a.LastText();
    EXPECT_THAT(result.freed, testing::UnorderedElementsAre(x, y));
    EXPECT_THAT(result.allocated, testing::ElementsAre(x));
    const CUdeviceptr z = a.Get(50 * kMiB, s);
    EXPECT_EQ(z, y);
    a.Drop(x);
    a.Drop(z);
    ASSERT_OK(a->EndAllocateToPool(0, pool));
  }
}

// A checkpoint is plain data: whatever was written into it, either it is one or nothing happens.
TEST(Checkpoints, ThatNoPoolEverHadAreRefused) {
  Allocating a;
  CUstream s = a.Stream();
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  const CUdeviceptr y = a.Get(512, s);
  Checkpoint taken;
  ASSERT_OK(a->TakeCheckpoint(0, pool, &taken));
  ASSERT_EQ(taken.segments.size(), 2U);
  const auto refuses = [&](const char* said, auto spoil) {
    Checkpoint bad = taken;
    CheckpointSegment& large = bad.segments[0].address == x ? bad.segments[0] : bad.segments[1];
    spoil(&bad, &large);
    RestoreResult result;
    EXPECT_EQ(a->RestoreCheckpoint(bad, &result), CUDA_ERROR_INVALID_VALUE) << said;
    EXPECT_THAT(a.LastText(), testing::HasSubstr(said));
    EXPECT_EQ(a.Stats().allocation[0].current, 2) << said;
  };
  using Segment = CheckpointSegment*;
  refuses("overlap", [](Checkpoint* bad, Segment) { bad->segments.push_back(bad->segments[0]); });
  refuses("overlap", [](Checkpoint* bad, Segment large) {
    bad->segments.push_back({large->blocks[1].address, large->blocks[1].size, {large->blocks[1]}});
  });
  refuses("tile", [](Checkpoint*, Segment large) { large->blocks[0].size += 512; });
  refuses("tile", [](Checkpoint*, Segment large) { large->blocks.clear(); });
  refuses("tile", [](Checkpoint*, Segment large) { large->blocks[0].requested = large->blocks[0].size + 1; });
  refuses("tile", [](Checkpoint*, Segment large) {  // sums that wrap around
    large->blocks = {{large->address, SIZE_MAX - 511, 1, true}, {large->address - 512, large->size + 512, 1, true}};
  });
  refuses("tile", [](Checkpoint*, Segment large) {
    large->blocks = {{large->address, 100, 1, true}, {large->address + 100, large->size - 100, 0, false}};
  });
  refuses("no request for so many bytes", [](Checkpoint*, Segment large) {
    large->blocks = {{large->address, 512, 1, true}, {large->address + 512, large->size - 512, 0, false}};
  });
  refuses("no longer has", [](Checkpoint*, Segment large) {
    large->address += 1 << 30;
    for (CheckpointBlock& block : large->blocks) block.address += 1 << 30;
  });
  refuses("device 7", [](Checkpoint* bad, Segment) { bad->device = 7; });
  a.Drop(x);
  a.Drop(y);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
}

}  // namespace
}  // namespace cuaudit::alloc::checkpoints_test
