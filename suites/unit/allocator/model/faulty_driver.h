// SPDX-License-Identifier: MIT
// faulty_driver.h: a driver some of whose calls fail, chosen by how many that can fail came before.
//
//   Owns      a gate in front of another driver.
//   Threads   one call at a time.
//   Errors    the failing call answers a code that it is documented to answer.
//   Faults    passes on every other call, and with `After` the failing one too.
//   Source    ours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"
#include "faults/plan/fault.h"

namespace cuaudit::alloc {

struct ChosenFault {
  std::uint32_t after_calls = 0;  // that can fail, since the fault before
  std::uint8_t code = 0;          // which of those that the call is documented to answer
  faults::How how = faults::How::Refuse;
};

class FaultyDriver {
 public:
  FaultyDriver(driver::DriverRef next, std::vector<ChosenFault> faults);
  ~FaultyDriver();
  FaultyDriver(const FaultyDriver&) = delete;
  FaultyDriver& operator=(const FaultyDriver&) = delete;

  driver::DriverRef ref();
  void Mend();  // nothing fails any more, except in a context that is lost

  std::size_t fired() const { return fired_; }
  bool lasting() const { return lasting_; }      // the latest one goes on: calls fail that are not counted in `fired`
  bool lost() const { return lost_; }            // a context is, or the driver: somebody was told so
  bool gone() const { return gone_; }            // something was released and its owner told that it was not
  bool unclaimed() const { return unclaimed_; }  // something was acquired and nobody told
  std::uint64_t unclaimed(driver::Kind kind) const { return unclaimed_of_[static_cast<std::size_t>(kind)]; }
  bool unsure() const { return unsure_; }  // a range was mapped and its owner told that it was not
  bool refused() const {
    return std::any_of(std::begin(refused_of_), std::end(refused_of_), [](std::uint64_t n) { return n != 0; });
  }
  std::uint64_t refused(driver::Kind kind) const { return refused_of_[static_cast<std::size_t>(kind)]; }  // releases
  const std::string& text() const { return text_; }                                                       // of the faults so far

 private:
  struct Parts;
  static void BeforeCall(void* self, driver::BaseId base) noexcept;
  void Fire(driver::BaseId base);

  std::unique_ptr<Parts> parts_;
  std::vector<ChosenFault> faults_;
  std::uint32_t calls_ = 0;  // that can fail, since the latest fault
  std::size_t fired_ = 0;
  bool lasting_ = false, lost_ = false, gone_ = false, unclaimed_ = false;
  std::uint64_t unclaimed_of_[driver::kKindCount] = {};
  std::uint64_t refused_of_[driver::kKindCount] = {};
  bool unsure_ = false;
  driver::BaseId latest_{};  // that a fault fired at
  std::string text_;
};

}  // namespace cuaudit::alloc
