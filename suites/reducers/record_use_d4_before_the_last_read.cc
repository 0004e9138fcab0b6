// SPDX-License-Identifier: MIT
// record_use_d4_before_the_last_read.cc: record_use is called, and then the stream reads once more.
//
// Story   D4: record_use promises that the last access was enqueued. One that comes after it is covered by nothing: the memory is handed
//         out again and written while it is read. The proposal calls a check of that infeasible and makes it a non-goal; the simulated
//         driver compares what each operation touches with what orders it, so it is told of although all happens inside one segment.
// Source  https://github.com/pytorch/pytorch/issues/181191; written anew from the facts.
#include "suites/reducers/side_stream.h"

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
