// SPDX-License-Identifier: MIT
// diversion.h: while it lives, calls that the program makes by name (cuMemAlloc) go where its DriverRef goes, if the drop-in library is
// in the process.
//
//   Owns      the drop-in's diversion, for its lifetime; the last one made counts, and the one before counts again when it goes.
//   Threads   made and destroyed by one thread while no other is inside a driver call.
//   Errors    without the drop-in, or with one built from other headers, nothing is diverted: present() says so.
//   Faults    makes no driver calls.
//   Source    ours; cuaudit_divert, cuaudit_undiverted and cuaudit_simulates are exported by faults/interpose.
#pragma once

#include <cstdint>
#include <string>

#include "faults/driver/driver_ref.h"
#include "faults/journal/record.h"

namespace cuaudit::harness {

class Diversion {
 public:
  explicit Diversion(driver::DriverRef driver) noexcept;
  ~Diversion();
  Diversion(const Diversion&) = delete;
  Diversion& operator=(const Diversion&) = delete;

  // Where calls by name go without any diversion; a null table where there is no drop-in.
  static driver::DriverRef Undiverted() noexcept;
  // Which driver that is: "simulated" or "genuine"; empty before the first call and without a drop-in.
  static std::string UndivertedDriver();
  // Where they go now; a null table where nothing is diverted.
  static driver::DriverRef Current() noexcept;
  // The drop-in is there and was built from the same table.
  static bool present() noexcept;
  // The drop-in's file; null where there is none.
  static const char* DropInPath() noexcept;

 private:
  driver::DriverRef before_;
};

// What a pool says of a block of its own goes to the gate that stands behind `driver`; false, and nothing, where none does.
// What another table than a gate's hands on cannot be judged; BlocksUnheard counts what was handed out through such a one so far.
bool NoteBlock(driver::DriverRef driver, faults::MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept;
std::uint64_t BlocksUnheard() noexcept;

}  // namespace cuaudit::harness
