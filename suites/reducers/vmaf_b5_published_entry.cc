// SPDX-License-Identifier: MIT
// vmaf_b5_published_entry.cc: a registry of graphs, each entry with a queue of its own.
//
// Story   B5: the entry is pushed into the registry before its queue is made. When that fails nothing is lost, but the entry stays
//         without a queue, and the next use of the registry goes through null.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982, review round 26 (SYCL); written anew from the facts, on the driver API.
#include <memory>
#include <vector>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b5_published_entry {
namespace {

struct Queue {
  CUstream stream = nullptr;
};
struct Entry {
  std::unique_ptr<Queue> queue;
};

template <bool repaired>
struct Registry {
  std::vector<Entry> entries;

  CUresult Init(DriverRef driver) {
    if (!repaired) entries.emplace_back();
    auto queue = std::make_unique<Queue>();
    const CUresult code = driver.StreamCreate(&queue->stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    if (repaired) entries.emplace_back();
    entries.back().queue = std::move(queue);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (const Entry& entry : entries) code = First(code, Destroy(driver, &entry.queue.get()->stream));
    entries.clear();
    return code;
  }
};

template <bool repaired>
Lifecycle OneEntry(const char* name) {
  return Lifecycle::Of<Registry<repaired>>(name).WithCurrentContext().TeardownAfterFailedInit();
}

TEST(VmafB5, TheNextUseGoesThroughNull) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kCannotBeForked);
  const Audit audit = Replay(OneEntry<false>("vmaf_b5"), {"cuStreamCreate#1=OUT_OF_MEMORY,refuse"}, {.isolate = true});
  EXPECT_EQ(Lost(audit), CUAUDIT_DEATH_THROUGH_NULL);
}

TEST(VmafB5, RepairedIsSilent) { ExpectSilent(OneEntry<true>("vmaf_b5_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b5_published_entry
