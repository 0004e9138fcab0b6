// SPDX-License-Identifier: MIT
// lost_contexts.h: which contexts a `sticky` fault has lost, until they are destroyed, reset, or released for the last time.
//
//   Owns      a small table. What it cannot hold is lost for every context that is there, but not for one made, reset or released
//             for the last time since; of those it holds sixteen, the next one ends the loss of all.
//   Threads   safe; a context lost on one thread is lost on all.
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
#include "faults/driver/effects.h"
#include "faults/shim/call_record.h"

namespace cuaudit::faults {

struct Loss {
  CUresult code = CUDA_SUCCESS;
  std::uint16_t fault = 0;
};

class LostContexts {
 public:
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  // The current context is lost; without one, every context that is there: a primary context that is not active, or is only kept for the
  // devices of `unreferenced` (one bit each), is none.
  void Lose(driver::DriverRef driver, Loss loss, std::uint64_t unreferenced = 0) noexcept;
  // What the current context was lost to; SUCCESS when it was not.
  Loss Find(driver::DriverRef driver) const noexcept;

  // Whether a lost context answers the call: it needs a context.
  static bool Concerns(const driver::EffectRow& row) noexcept;
  // Of a call that succeeded: a context that it made begins, one that it destroyed or reset takes its loss with it.
  void After(driver::Effect effect, const Passage& passage) noexcept {
    using driver::Effect;
    if (effect == Effect::CreatesContext || effect == Effect::DestroysContext || effect == Effect::ResetsPrimary) Change(effect, passage);
  }
  // The context begins: what was lost before is not it.
  void Begin(std::uint64_t context) noexcept;
  void ForgetContext(std::uint64_t context) noexcept;
  void ForgetPrimary(int device) noexcept;
  void ForgetAll() noexcept;

 private:
  void Change(driver::Effect effect, const Passage& passage) noexcept;
  static constexpr std::size_t kMost = 16;
  struct Row {
    std::atomic<std::uint64_t> context{0};
    std::atomic<std::uint32_t> loss{0};  // fault << 16 | code; 0: spared by the loss of all
    std::atomic<int> device{-1};         // whose primary context it is, -1: nobody's
  };
  void Clear(Row& row) noexcept;
  static Loss Unpack(std::uint32_t loss) noexcept;

  std::atomic<bool> any_{false};
  std::atomic<std::uint32_t> everywhere_{0};      // like Row::loss, of all contexts without a row
  std::atomic<std::uint64_t> spared_devices_{0};  // whose primary contexts are spared by it, one bit each
  Row row_[kMost];
};

}  // namespace cuaudit::faults
