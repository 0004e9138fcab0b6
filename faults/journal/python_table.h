// SPDX-License-Identifier: MIT
// python_table.h: keeps each Python function of a call stack once in the journal.
//
//   Owns      a cache of the places that were last met. Borrows the journal.
//   Threads   safe and lock-free, also between processes.
//   Errors    a full table raises kModulesDropped; the frame then has no row, and is Python of an unknown name.
#pragma once

#include <atomic>
#include <cstddef>
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

  // What Remember was told of this place, if it is still kept. Reading a name and a line takes far longer.
  bool Recall(const python::Identity& identity, std::uint64_t* frame) const noexcept;
  void Remember(const python::Identity& identity, std::uint64_t frame) noexcept;

 private:
  // Two words that are written one by one, by any thread: they belong together when their difference is the key.
  struct Met {
    std::atomic<std::uint64_t> frame{0};
    std::atomic<std::uint64_t> mixed{0};  // the key, exclusive or the frame
  };
  static constexpr std::size_t kMet = 1024;

  Met met_[kMet];
  Journal* journal_ = nullptr;
  PageGuard<kMaxPythonFunctions * sizeof(PythonRow)> pages_;
};

}  // namespace cuaudit::faults
