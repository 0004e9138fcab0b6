// SPDX-License-Identifier: MIT
// vmaf_b4_picture_pool.cc: a pool of pictures, filled in a loop.
//
// Story   B4: slot k fails; its picture unwinds itself, but all earlier slots stay with their streams, events and planes, and the caller is
//         handed the half-built pool, whose later close crashes.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982, review round 26; written anew from the facts. Slot array and mutex are host
//         memory, which the C program picture_pool.c shows.
#include <memory>

#include "suites/reducers/picture.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b4_picture_pool {
namespace {

constexpr int kSlots = 3;

struct Pool {
  Picture<true> slot[kSlots];
};

template <bool repaired>
struct PicturePool {
  std::unique_ptr<Pool> storage;  // so that host memory is no part of this case
  Pool* pool = nullptr;           // what the caller is handed

  CUresult Init(Cycle& cycle) {
    cycle.Output("pool", &pool);
    storage = std::make_unique<Pool>();
    int made = 0;
    CUresult code = CUDA_SUCCESS;
    while (code == CUDA_SUCCESS && made < kSlots) {
      code = storage->slot[made].Allocate(cycle.driver());
      if (code == CUDA_SUCCESS) ++made;
    }
    if (repaired && code != CUDA_SUCCESS) {
      while (made > 0) {
        Picture<true>& picture = storage->slot[--made];
        if (picture.Free(cycle.driver()) != CUDA_SUCCESS) (void)picture.Free(cycle.driver());
      }
      return code;
    }
    pool = storage.get();
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (Picture<true>& picture : pool->slot) code = First(code, picture.Free(driver));
    return code;
  }
};

TEST(VmafB4, LosesTheEarlierSlotsAndHandsOutHalfAPool) {
  const auto lifecycle = Lifecycle::Of<PicturePool<false>>("vmaf_b4").Prepare(MakeTheContext);
  const std::vector<std::string> earlier = {"", "device_memory 3, event 2, stream 1, ", "device_memory 6, event 4, stream 2, "};
  for (int k = 0; k < kSlots; ++k) {
    const std::string fault = "cuStreamCreate#" + std::to_string(k + 1) + "=OUT_OF_MEMORY,refuse";
    EXPECT_EQ(Lost(Replay(lifecycle, {fault})), earlier[static_cast<std::size_t>(k)] + "output_on_failure") << fault;
    const std::string last = "cuMemAllocPitch#" + std::to_string(3 * k + 3) + "=OUT_OF_MEMORY,refuse";
    EXPECT_EQ(Lost(Replay(lifecycle, {last})), earlier[static_cast<std::size_t>(k)] + "output_on_failure") << last;
  }
}

// The caller takes the half-built pool for a whole one and closes it.
struct ClosesHalfAPool : PicturePool<false> {
  CUresult Init(Cycle& cycle) {
    const CUresult code = PicturePool<false>::Init(cycle);
    if (code != CUDA_SUCCESS) pool = nullptr;
    return code;
  }
};

TEST(VmafB4, TheLaterCloseCrashes) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kCannotBeForked);
  const auto lifecycle = Lifecycle::Of<ClosesHalfAPool>("vmaf_b4_close").Prepare(MakeTheContext).TeardownAfterFailedInit();
  EXPECT_EQ(Lost(Replay(lifecycle, {"cuStreamCreate#2=OUT_OF_MEMORY,refuse"}, {.isolate = true})), CUAUDIT_DEATH_THROUGH_NULL);
}

TEST(VmafB4, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<PicturePool<true>>("vmaf_b4_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b4_picture_pool
