// SPDX-License-Identifier: MIT
// misuse.h: one proof of misuse, as a simulated world tells it.
//
//   Owns      nothing; a plain value.
//   Threads   values.
//   Units     bytes.
//   Faults    makes no driver calls.
//   Source    ours: happens-before over streams and events as the CUDA Programming Guide orders them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "faults/driver/kinds.h"

namespace cuaudit::driver {

enum class MisuseRule : std::uint8_t {
#define CUAUDIT_MISUSE(name, text, help) name,
#include "faults/driver/misuse.def"
#undef CUAUDIT_MISUSE
};
inline constexpr std::size_t kMisuseRuleCount = 0
#define CUAUDIT_MISUSE(name, text, help) +1
#include "faults/driver/misuse.def"
#undef CUAUDIT_MISUSE
    ;

struct Misuse {
  MisuseRule rule{};
  Kind kind{};               // of the object
  std::uint64_t object = 0;  // handle or address
  std::uint64_t bytes = 0;   // 0: not memory
  std::uint64_t origin = 0;  // WorldOptions::origin at the call that is wrong, or at the call that queued the operation that is wrong
  std::uint64_t other = 0;   // the same for the operation that it collides with; 0: none
};

constexpr std::string_view Name(MisuseRule rule) noexcept {
  constexpr std::string_view names[] = {
#define CUAUDIT_MISUSE(name, text, help) text,
#include "faults/driver/misuse.def"
#undef CUAUDIT_MISUSE
  };
  return names[static_cast<std::size_t>(rule)];
}

}  // namespace cuaudit::driver
