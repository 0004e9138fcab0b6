// SPDX-License-Identifier: MIT
// pinned_contexts.h: the gate's own reference of each primary context (scope pinned), and how many references the program holds.
//
//   Owns      one reference of each device's primary context, given back never: it ends with the process or the world.
//   Threads   safe.
//   Faults    Pin calls DevicePrimaryCtxRetain, past the plan.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "pinned_contexts.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "faults/driver/effects.h"
#include "faults/shim/call_record.h"

namespace cuaudit::faults {

class PinnedContexts {
 public:
  static constexpr std::size_t kMaxDevices = 64;

  // After a retain by the program: one more reference, once for each device.
  void Pin(driver::DriverRef next, std::uint64_t device) noexcept;
  // Somebody else holds a reference of that device's all the time.
  void NoteHeld(CUdevice device) noexcept;
  // Of a call that succeeded. Answers the device of whose primary context the program gave back its last reference, -1: of none.
  int Count(driver::Effect effect, const Passage& passage) noexcept {
    const bool primary = effect == driver::Effect::RetainsPrimary || effect == driver::Effect::ReleasesPrimary;
    return primary ? CountReference(effect, passage) : -1;
  }
  // Devices whose primary contexts only the pin keeps, one bit each: for the program they are gone.
  std::uint64_t Unreferenced() const noexcept;

 private:
  int CountReference(driver::Effect effect, const Passage& passage) noexcept;

  std::atomic<std::int32_t> references_[kMaxDevices] = {};  // the program's own
  std::atomic<std::uint64_t> pinned_{0};                    // one bit for each device
};

}  // namespace cuaudit::faults
