// SPDX-License-Identifier: MIT
// toml_keys.h: finds keys of a TOML text that are nested too deep for toml++, which recurses once for each dot of a key.
//
//   Units     lines are counted from 1.
//   Errors    none: any bytes are a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cuaudit::harness {

inline constexpr std::size_t kMostDotsInKey = 64;
inline constexpr std::string_view kExpectedDots = "expected at most 64 dots in a key";

// The first line with more dots in a key or in a [header]. The keys of an inline table and of those inside it count together.
std::optional<std::uint32_t> LineOfDeepKey(std::string_view text);

}  // namespace cuaudit::harness
