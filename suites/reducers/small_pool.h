// SPDX-License-Identifier: MIT
// small_pool.h: the plainest pool there is. It knows nothing of streams, so its user must order the work, as the five steps do.
//
// Owns its segments, each cut into blocks of one size. The block that was freed last is handed out first. A pool that failed to grow
// hands out nothing and stays as it was. The pool reports its blocks (cuaudit/block.h), so that their misuse can be judged.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "cuaudit/block.h"

namespace cuaudit::reducers {

class SmallPool {
 public:
  static constexpr std::size_t kBlock = 4096;

  void Open(DriverRef driver, std::size_t blocks_in_segment) {
    driver_ = driver;
    blocks_ = blocks_in_segment;
  }
  CUresult Allocate(CUdeviceptr* out) {
    if (free_.empty()) {
      CUdeviceptr segment = 0;
      const CUresult code = driver_.MemAlloc(&segment, blocks_ * kBlock);
      if (code != CUDA_SUCCESS) return code;
      segments_.push_back(segment);
      for (std::size_t i = blocks_; i > 0; --i) free_.push_back(segment + (i - 1) * kBlock);
    }
    *out = free_.back();
    free_.pop_back();
    out_.push_back(*out);
    BlockOut(driver_, *out, kBlock);
    return CUDA_SUCCESS;
  }
  void Free(CUdeviceptr block) {
    if (std::erase(out_, block) == 0) return;
    BlockBack(driver_, block);
    free_.push_back(block);
  }
  // For tools that believe what a pool says of a block: whether it is free. Of pending reads it knows nothing.
  bool IsFree(CUdeviceptr block) const { return std::find(free_.begin(), free_.end(), block) != free_.end(); }
  // All of it, what is still out included.
  CUresult Close() {
    CUresult first = CUDA_SUCCESS;
    while (!out_.empty()) Free(out_.back());
    free_.clear();
    for (const CUdeviceptr segment : std::exchange(segments_, {})) {
      const CUresult code = driver_.MemFree(segment);
      if (first == CUDA_SUCCESS) first = code;
    }
    return first;
  }

 private:
  DriverRef driver_;
  std::size_t blocks_ = 1;
  std::vector<CUdeviceptr> segments_, free_, out_;
};

}  // namespace cuaudit::reducers
