// SPDX-License-Identifier: MIT
// cycle_plans.h: the faults of each cycle, when the tool gave one trial to each cycle (faults/plan/fork_file.h).
//
// Open maps the file while the program is loaded; the mapping stays for the rest of the process. Open returns null or a static phrase
// that says what is wrong.
#pragma once

#include <cstddef>

#include "faults/plan/fork_file.h"
#include "faults/plan/plan.h"

namespace cuaudit::faults {

class CyclePlans {
 public:
  [[nodiscard]] const char* Open(const char* path) noexcept;
  // As Open, for the content of a file. `bytes` must be aligned to a page and outlive this object.
  [[nodiscard]] const char* Adopt(const void* bytes, std::size_t size) noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }
  // The faults of a cycle; empty for a cycle that runs without faults.
  Plan Of(std::uint32_t cycle) const noexcept;

 private:
  const CycleHeader* header_ = nullptr;
};

}  // namespace cuaudit::faults
