// SPDX-License-Identifier: MIT
// unaligned.h: reads one value at any byte of an image, whose fields need not be aligned.
#pragma once

#include <cstring>

namespace cuaudit::sim {

template <typename T>
[[nodiscard]] T Read(const unsigned char* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace cuaudit::sim
