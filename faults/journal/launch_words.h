// SPDX-License-Identifier: MIT
// launch_words.h: which kernel arguments can be told from plain numbers.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

// A driver may count its texture and surface objects from 1. Then an argument of that value may as well be a length or a flag, so a smaller
// handle proves nothing.
constexpr bool IsDistinctive(std::uint64_t handle) noexcept { return handle >= std::uint64_t{1} << 20U; }

}  // namespace cuaudit::faults
