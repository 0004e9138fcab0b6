// SPDX-License-Identifier: MIT
// diversion.h: while it lives, calls that the program makes by name (cuMemAlloc) go where its DriverRef goes, if the drop-in library is
// in the process.
//
//   Owns      the drop-in's diversion, for its lifetime; one at a time in a process.
//   Threads   made and destroyed by one thread while no other is inside a driver call.
//   Errors    without the drop-in, or with one built from other headers, nothing is diverted: present() says so.
//   Faults    makes no driver calls.
//   Source    ours; cuaudit_divert is exported by faults/interpose.
#pragma once

#include "faults/driver/driver_ref.h"

namespace cuaudit::harness {

class Diversion {
 public:
  explicit Diversion(driver::DriverRef driver) noexcept;
  ~Diversion();
  Diversion(const Diversion&) = delete;
  Diversion& operator=(const Diversion&) = delete;

  // The drop-in is there and was built from the same table.
  static bool present() noexcept;
};

}  // namespace cuaudit::harness
