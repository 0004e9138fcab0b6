// SPDX-License-Identifier: MIT
// plan.h: the faults of one trial, and the decision about one call that the gate asks for.
//
// Decide keeps no state. The counters (fired, matched) live in the journal's header, so that all processes of a trial share them and
// they survive the processes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/plan/fault.h"

namespace cuaudit::faults {

// What to do with one call.
struct Decision {
  CUresult code = CUDA_SUCCESS;  // error to inject; CUDA_SUCCESS: pass the call on
  How how = How::Refuse;
  std::uint16_t fault = 0;  // number of the fault, counted from 1
};

class Plan {
 public:
  static constexpr std::size_t kCapacity = 16;
  [[nodiscard]] bool Add(const Fault& fault) noexcept;
  std::size_t size() const noexcept { return size_; }
  const Fault& fault(std::size_t i) const noexcept { return faults_[i]; }
  // True when some fault names this base entry point.
  bool Names(driver::BaseId base) const noexcept;

  // True when some fault names this base entry point at a certain call stack.
  bool NamesSite(driver::BaseId base) const noexcept;

  // `matching`: number of calls that matched the phase and site of the fault so far, including this one.
  static Decision Decide(const Fault& fault, std::uint32_t matching) noexcept;

 private:
  Fault faults_[kCapacity];
  std::size_t size_ = 0;
};

}  // namespace cuaudit::faults
