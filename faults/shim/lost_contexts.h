// SPDX-License-Identifier: MIT
// lost_contexts.h: which contexts a `sticky` fault has lost, until they are destroyed, reset, or released for the last time.
//
//   Owns      a small table; what it cannot hold is lost for every context.
//   Threads   safe; a context lost on one thread is lost on all.
//   Errors    none.
//   Faults    Lose calls CtxGetCurrent, DeviceGetCount, DevicePrimaryCtxGetState, Retain and Release (to learn whose primary context it
//             is), Find calls CtxGetCurrent, both past the plan.
//   Source    CUDA Driver API 13.0: an asynchronous error is answered by all later calls of its context; other contexts go on.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "lost_contexts.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <atomic>
#include <cstdint>

#include "faults/driver/driver_ref.h"

namespace cuaudit::faults {

struct Loss {
  CUresult code = CUDA_SUCCESS;
  std::uint16_t fault = 0;
};

class LostContexts {
 public:
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  // The current context is lost; without one, every context.
  void Lose(driver::DriverRef driver, Loss loss) noexcept;
  // What the current context was lost to; SUCCESS when it was not.
  Loss Find(driver::DriverRef driver) const noexcept;

  void ForgetContext(std::uint64_t context) noexcept;
  void ForgetPrimary(int device) noexcept;
  void ForgetAll() noexcept;

 private:
  static constexpr std::size_t kMost = 16;
  struct Row {
    std::atomic<std::uint64_t> context{0};
    std::atomic<std::uint32_t> loss{0};  // fault << 16 | code; 0: free
    std::atomic<int> device{-1};         // whose primary context it is, -1: nobody's
  };
  void Clear(Row& row) noexcept;
  static Loss Unpack(std::uint32_t loss) noexcept;

  std::atomic<bool> any_{false};
  std::atomic<std::uint32_t> everywhere_{0};  // like Row::loss, of all contexts
  Row row_[kMost];
};

}  // namespace cuaudit::faults
