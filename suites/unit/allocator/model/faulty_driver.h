// SPDX-License-Identifier: MIT
// faulty_driver.h: a driver in which chosen calls fail, addressed by the number of fallible calls before them. It keeps what its caller
// was told.
//
// Owns a gate in front of another driver, and the gate's journal. A failing call returns an error that it is documented to return, or
// LAUNCH_FAILED in a context that it loses. Other calls are passed on; with How::After the failing call is, too. One call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"
#include "faults/journal/record.h"
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

  // All calls so far, in order; what Books and Bytes say is folded from them.
  std::span<const faults::Record> Calls();
  // Number of objects of a kind that the driver has but the program cannot be expected to release: the latest release was refused, or
  // the call that made the object reported an error. An object that was released later does not count.
  std::uint64_t Kept(driver::Kind kind);
  std::uint64_t Refused(driver::Kind kind);        // of those, releases
  std::uint64_t KeptBytes();                       // of device memory, mapped or not; as much at most
  std::uint64_t GoneBytes();                       // that were released and said not to be
  bool said_gone() { return Fold(), said_gone_; }  // a question about an address was refused as if nothing were there

  std::size_t fired() const { return fired_; }
  bool lost() const { return lost_; }                // a context is
  const std::string& text() const { return text_; }  // of the faults so far

 private:
  using Object = std::pair<driver::Kind, std::uint64_t>;
  struct Parts;
  static void BeforeCall(void* self, driver::BaseId base) noexcept;
  void Fire(driver::BaseId base);
  void Fold();
  void Fold(const faults::Record& record);

  std::unique_ptr<Parts> parts_;
  std::vector<ChosenFault> faults_;
  std::uint32_t calls_ = 0;  // that can fail, since the latest fault
  std::size_t fired_ = 0;
  bool lost_ = false, said_gone_ = false;
  std::size_t folded_ = 0;  // records
  std::map<Object, std::uint64_t> bytes_;
  std::map<Object, std::uint64_t> refused_, denied_;  // and how often
  std::uint64_t gone_bytes_ = 0;
  std::string text_;
};

// True when the gate made the result, not the driver.
inline bool IsInjected(const faults::Record& call) { return (call.flags & faults::kInjected) != 0; }
inline driver::BaseId BaseOf(const faults::Record& call) { return driver::BaseOf(static_cast<driver::CallId>(call.call)); }

}  // namespace cuaudit::alloc
