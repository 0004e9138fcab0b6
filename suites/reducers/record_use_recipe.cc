// SPDX-License-Identifier: MIT
// record_use_recipe.cc: the recipe that RecordUse replaces, and each way to get it wrong.
#include "suites/reducers/side_stream.h"

// A block per layer is read on a side stream; the event behind the read comes too late.
//
// Story   D1: the recipe asks for an event right behind the last read. Recorded once for all layers at the end of the step, it keeps each
//         layer's block until then: safe, and six blocks are reserved where two would do.
// Source  https://github.com/pytorch/pytorch/issues/181191 (the recipe that record_use replaces); written anew from the facts. How much
//         is reserved is asked by refusing the allocation that must never be needed.
namespace cuaudit::reducers::record_use_d1_event_too_late {
namespace {

constexpr int kLayers = 6;

enum class Recorded { BehindTheRead, AtTheEnd };

template <Recorded when>
struct FiveSteps : WithPool {
  FiveSteps() : WithPool(1) {}
  struct Stashed {
    CUdeviceptr block;
    CUevent read;
  };
  std::vector<Stashed> stash;

  CUresult Work(DriverRef driver) {
    for (int layer = 0; layer < kLayers; ++layer) {
      if (when == Recorded::BehindTheRead && stash.size() > 1) CUAUDIT_STEP(LetGo(driver, 1));
      CUdeviceptr block = 0;
      CUAUDIT_STEP(pool.Allocate(&block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      stash.push_back({block, nullptr});
      CUAUDIT_STEP(driver.EventCreate(&stash.back().read, CU_EVENT_DISABLE_TIMING));
      if (when == Recorded::BehindTheRead) CUAUDIT_STEP(driver.EventRecord(stash.back().read, streams.side));
    }
    if (when == Recorded::AtTheEnd) {
      for (const Stashed& one : stash) CUAUDIT_STEP(driver.EventRecord(one.read, streams.side));
    }
    return LetGo(driver, stash.size());
  }
  // The owner waits for the read, then the block goes back.
  CUresult LetGo(DriverRef driver, std::size_t count) {
    for (; count > 0; --count) {
      CUAUDIT_STEP(driver.StreamWaitEvent(streams.owner, stash.front().read, 0));
      CUAUDIT_STEP(driver.EventDestroy(stash.front().read));
      pool.Free(stash.front().block);
      stash.erase(stash.begin());
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    for (const Stashed& one : stash) {
      if (one.read != nullptr) (void)driver.EventDestroy(one.read);
    }
    stash.clear();
    return WithPool::Teardown(driver);
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int layer = 0; layer < kLayers; ++layer) {
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

TEST(RecordUseD1, AnEventForTheWholeStepReservesABlockForEachLayer) {
  const auto lifecycle = OnPool<FiveSteps<Recorded::AtTheEnd>>("record_use_d1");
  EXPECT_EQ(Lost(RunCycles(lifecycle)), "");  // safe
  EXPECT_FALSE(FitsInto(2, lifecycle));
  EXPECT_FALSE(FitsInto(kLayers - 1, lifecycle));
  EXPECT_TRUE(FitsInto(kLayers, lifecycle));
}

TEST(RecordUseD1, AnEventBehindEachReadNeedsTwoBlocks) {
  const auto lifecycle = OnPool<FiveSteps<Recorded::BehindTheRead>>("record_use_d1_right");
  ExpectSilent(lifecycle);
  EXPECT_TRUE(FitsInto(2, lifecycle));
}

TEST(RecordUseD1, RecordUseNeedsNoMore) { ExpectSilentInOneSegment<OurAllocator>("record_use_d1_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d1_event_too_late

// The stash that keeps a block alive is emptied too early.
//
// Story   D2: event and block are to be kept until the owner's stream waits for the event. Dropped before that, the block is written by
//         its next owner while the side stream reads it; dropped before the read was even queued, the side stream reads what is not its
//         own any more. Both are silent on a device.
// Source  https://github.com/pytorch/pytorch/issues/181191 (the recipe that record_use replaces); written anew from the facts.
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

TEST(RecordUseD2, RecordUseMayBeFollowedByTheDropAtOnce) { ExpectSilentInOneSegment<OurAllocator>("record_use_d2_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d2_dropped_early

// The wait for the reader is put on a stream that does not get the memory.
//
// Story   D3: the stream that will be handed the block must wait for the event. A wait on whatever stream is current where the stash is
//         dropped protects nothing: the owner's next block is the same memory, still being read.
// Source  https://github.com/pytorch/pytorch/issues/181191 (the recipe that record_use replaces); written anew from the facts.
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

TEST(RecordUseD3, WhoeverIsGivenTheMemoryWaits) { ExpectSilentInOneSegment<OurAllocator>("record_use_d3_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d3_wrong_stream

// Record_use is called, and then the stream reads once more.
//
// Story   D4: record_use promises that the last access was enqueued. One that comes after it is covered by nothing: the memory is handed
//         out again and written while it is read. The proposal calls a check of that infeasible and makes it a non-goal; the simulated
//         driver compares what each operation touches with what orders it, so it is told of although all happens inside one segment.
// Source  https://github.com/pytorch/pytorch/issues/181191; written anew from the facts.
namespace cuaudit::reducers::record_use_d4_before_the_last_read {
namespace {

enum class Called { BeforeTheLastRead, BehindTheDrop, BehindTheLastRead };

template <Called when>
struct Reader : WithAllocator {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    if (when == Called::BehindTheLastRead) CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
    if (when == Called::BeforeTheLastRead) CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    CUAUDIT_STEP(Drop(block));
    // A view of the tensor outlived it.
    if (when == Called::BehindTheDrop) return streams.Read(driver, block, streams.side);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(Get(kLarge, streams.owner, &next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
    return Drop(next);
  }
};

TEST(RecordUseD4, AReadBehindTheCallRacesWithTheNextOwner) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Reader<Called::BeforeTheLastRead>>("record_use_d4"), "unordered_access device_memory");
}

// Before anybody else has the block: nothing collides, and it is wrong all the same.
TEST(RecordUseD4, AReadBehindTheDropIsAUseAfterFree) {
  EXPECT_EQ(Wrong<Reader<Called::BehindTheDrop>>("record_use_d4_stale"), "use_after_release block");
}

TEST(RecordUseD4, ACallBehindTheLastReadIsSilent) {
  const auto lifecycle = OnAllocator<Reader<Called::BehindTheLastRead>>("record_use_d4_repaired");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d4_before_the_last_read
