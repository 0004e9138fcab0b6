// SPDX-License-Identifier: MIT
// diversion.h: while a Diversion exists, calls that the program makes by name (cuMemAlloc) go where its DriverRef goes, if the drop-in
// library is in the process.
//
//   Owns      the drop-in's diversion, for its lifetime. The newest one is in force; when it ends, the one before is in force again.
//   Threads   made and destroyed by one thread, while no other thread is inside a driver call.
//   Errors    without the drop-in, or with one built from other headers, nothing is diverted: present() says so.
//   Source    faults/interpose exports cuaudit_divert, cuaudit_undiverted and cuaudit_simulates.
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

  // The driver of calls by name without any diversion; a null table without a drop-in.
  static driver::DriverRef Undiverted() noexcept;
  // The kind of that driver: "simulated" or "genuine"; empty before the first call and without a drop-in.
  static std::string UndivertedDriver();
  // The driver of the current diversion; a null table without one.
  static driver::DriverRef Current() noexcept;
  // True when the drop-in is present and was built from the same table.
  static bool present() noexcept;
  // An address in the drop-in, and the path of its file; null when there is none.
  static const void* DropInCode() noexcept;
  static const char* DropInPath() noexcept;

 private:
  driver::DriverRef before_;
};

// Passes a pool's statement about a block of its own to the gate behind `driver`. Answers false, and does nothing, when there is no gate.
// A statement through a table that is not a gate's cannot be judged. BlocksUnheard counts the blocks handed out in this way so far.
bool NoteBlock(driver::DriverRef driver, faults::MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept;
std::uint64_t BlocksUnheard() noexcept;

}  // namespace cuaudit::harness
