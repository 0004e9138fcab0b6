// SPDX-License-Identifier: MIT
// shape.h: the parameters of an entry point as data: the family of handle that each carries, and whether the call writes it.
// call_shape.h derives them from the C++ types.
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
  std::uint8_t size = 0;  // bytes of the value, or of an output's pointee; 0: a structure, which is not recorded
  bool handle = false;    // of an opaque type, or a pointer to values of one
};

struct Shape {
  Parameter parameter[kMaxParameters];
  std::size_t count = 0;
};

const Shape& ShapeOf(CallId id) noexcept;

}  // namespace cuaudit::driver
