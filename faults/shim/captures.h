// SPDX-License-Identifier: MIT
// captures.h: whether a call is made into a graph under capture, and which node it became.
//
//   Threads   safe.
//   Faults    See calls StreamIsCapturing and TellNode StreamGetCaptureInfo, both past the plan, and See only while a capture is open.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "captures.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <atomic>
#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "faults/driver/effects.h"
#include "faults/shim/call_record.h"

namespace cuaudit::faults {

class Captures {
 public:
  bool any() const noexcept { return open_.load(std::memory_order_relaxed) > 0; }
  // Notes in the passage that its stream is under capture, and which stream that is.
  static void See(driver::DriverRef next, Passage* passage) noexcept;
  // Of a call that the driver answered with `result`. A capture that is never ended, or ended past the gate, costs a question a launch.
  void Count(driver::Effect effect, CUresult result) noexcept {
    if (effect == driver::Effect::BeginsCapture && result == CUDA_SUCCESS) open_.fetch_add(1, std::memory_order_relaxed);
    if (effect == driver::Effect::EndsCapture) End(result);
  }
  // Into argument 0 and 2: the node that the captured call became, and its graph; 0 where the driver does not say.
  static void TellNode(driver::DriverRef next, const Passage& passage, Record* record) noexcept;

 private:
  void End(CUresult result) noexcept;

  std::atomic<std::int32_t> open_{0};  // begun through this gate and not ended
};

}  // namespace cuaudit::faults
