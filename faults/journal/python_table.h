// SPDX-License-Identifier: MIT
// python_table.h: keeps each Python function of a call stack once in the journal.
//
//   Owns      nothing of the journal, which it borrows.
//   Threads   safe and lock-free, also between processes.
//   Errors    a full table raises kModulesDropped; the frame then has no row, and is Python of an unknown name.
#pragma once

#include <cstdint>

#include "faults/journal/journal.h"
#include "faults/journal/page_guard.h"
#include "faults/python/interpreter.h"

namespace cuaudit::faults {

class PythonTable {
 public:
  void Attach(Journal* journal) noexcept { journal_ = journal; }
  // The function and the line as a frame (layout.h).
  std::uint64_t Encode(const python::Function& function, int line) noexcept;

 private:
  Journal* journal_ = nullptr;
  PageGuard<kMaxPythonFunctions * sizeof(PythonRow)> pages_;
};

}  // namespace cuaudit::faults
