// SPDX-License-Identifier: MIT
// driver_kind.h: which driver answers a program. Journals store the number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuaudit::driver {

enum class DriverKind : std::uint32_t { None = 0, Genuine = 1, Simulated = 2 };

// As options and JSON have it.
constexpr std::string_view Name(DriverKind kind) {
  constexpr std::string_view kNames[] = {"", "real", "sim"};
  return kNames[static_cast<std::size_t>(kind)];
}

constexpr std::string_view DriverInWords(DriverKind kind) {
  constexpr std::string_view kWords[] = {"", "genuine", "simulated"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace cuaudit::driver
