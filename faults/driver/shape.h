// SPDX-License-Identifier: MIT
// shape.h: the parameters of an entry point as data: which family of handle each carries and whether the call writes it.
//
//   Owns      nothing; constant tables.
//   Threads   safe everywhere; no state.
//   Faults    makes no driver calls.
//   Source    derived from the parameter types in call_shape.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"

namespace cuaudit::driver {

inline constexpr std::size_t kMaxParameters = 16;

struct Parameter {
  Family family = Family::None;
  bool output = false;    // the call writes one value of `size` bytes through it
  std::uint8_t size = 0;  // of the value, or of the pointee of an output; 0: a structure, not recorded
};

struct Shape {
  Parameter parameter[kMaxParameters];
  std::size_t count = 0;
};

const Shape& ShapeOf(CallId id) noexcept;

}  // namespace cuaudit::driver
