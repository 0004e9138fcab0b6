// SPDX-License-Identifier: MIT
// lent.h: which calls answer a handle or an address that belongs to somebody else, so that whoever asked must not release it.
//
//   Source    README.md, section "What a getter lends": each row with the sentence of the headers.
#pragma once

#include <cstdint>
#include <optional>

#include "faults/driver/kinds.h"
#include "faults/journal/record.h"

namespace cuaudit::harness {

struct Lent {
  driver::Kind kind{};  // of the call that would release it
  std::uint64_t handle = 0;
  // False where code without records may have acquired the object and may release it. Then only a release that the driver declines is
  // wrong.
  bool sure = false;
};

// What a call that has succeeded lends; empty for all others.
[[nodiscard]] std::optional<Lent> LentBy(const faults::Record& record);

}  // namespace cuaudit::harness
