// SPDX-License-Identifier: MIT
// plus.h: sums of counts that came from files.
#pragma once

#include <cstdint>
#include <limits>

namespace cuaudit::report {

// The sum, or the largest number when the sum is larger.
constexpr std::uint64_t Plus(std::uint64_t a, std::uint64_t b) { return a + b < a ? std::numeric_limits<std::uint64_t>::max() : a + b; }

}  // namespace cuaudit::report
