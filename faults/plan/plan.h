// SPDX-License-Identifier: MIT
// plan.h: the faults of one trial, and the one question the gate asks of them.
//
//   Owns      nothing; a fixed-size value.
//   Threads   Decide is pure. The counting state lives in the journal header (fired, matched), so that it is shared by all processes
//             of a trial and survives them.
//   Errors    Add answers false when the plan is full, and of a first fault that counts from the one before it.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/plan/fault.h"

namespace cuaudit::faults {

// What the plan says about one call.
struct Decision {
  CUresult code = CUDA_SUCCESS;  // CUDA_SUCCESS: pass on
  How how = How::Refuse;
  std::uint16_t fault = 0;  // counted from 1
};

class Plan {
 public:
  [[nodiscard]] bool Add(const Fault& fault) noexcept;
  std::size_t size() const noexcept { return size_; }
  const Fault& fault(std::size_t i) const noexcept { return faults_[i]; }
  // True when some fault names this base entry point.
  bool Names(driver::BaseId base) const noexcept;

  // True when some fault names this base entry point at one call stack only.
  bool NamesSite(driver::BaseId base) const noexcept;

  // `matching` = how many calls of `base` matched fault i's phase and site so far, this one included.
  static Decision Decide(const Fault& fault, std::uint32_t matching) noexcept;

 private:
  static constexpr std::size_t kCapacity = 16;
  Fault faults_[kCapacity];
  std::size_t size_ = 0;
};

}  // namespace cuaudit::faults
