// SPDX-License-Identifier: MIT
// cycle_plans.h: under which faults each cycle runs, when the tool gave a trial to each.
//
//   Owns      a mapping of the cycle file, for the rest of the process.
//   Threads   Open is called while the program is loaded; Of is pure.
//   Errors    Open answers a static phrase.
//   Faults    makes no driver calls.
//   Source    faults/plan/cycle_file.h.
#pragma once

#include <cstddef>

#include "faults/plan/cycle_file.h"
#include "faults/plan/plan.h"

namespace cuaudit::faults {

class CyclePlans {
 public:
  [[nodiscard]] const char* Open(const char* path) noexcept;
  // The same of a file's content, which must outlive it; aligned as a page is.
  [[nodiscard]] const char* Adopt(const void* bytes, std::size_t size) noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }
  // Empty for a cycle that runs without faults.
  Plan Of(std::uint32_t cycle) const noexcept;

 private:
  const CycleHeader* header_ = nullptr;
};

}  // namespace cuaudit::faults
