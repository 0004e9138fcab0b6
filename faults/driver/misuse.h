// SPDX-License-Identifier: MIT
// misuse.h: one proof of misuse, reported by a simulated world. Sizes are in bytes.
//
// Operations on streams and events are ordered by happens-before, as in the CUDA Programming Guide, chapter "Asynchronous Concurrent
// Execution".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "faults/driver/kinds.h"

namespace cuaudit::driver {

enum class MisuseRule : std::uint8_t {
#define CUAUDIT_MISUSE(name, text, help, advice) name,
#include "faults/driver/misuse.def"
#undef CUAUDIT_MISUSE
};
inline constexpr std::size_t kMisuseRuleCount = 0
#define CUAUDIT_MISUSE(name, text, help, advice) +1
#include "faults/driver/misuse.def"
#undef CUAUDIT_MISUSE
    ;

struct Misuse {
  MisuseRule rule{};
  Kind kind{};                // of the object
  std::uint64_t object = 0;   // handle or address
  std::uint64_t bytes = 0;    // 0: not memory
  std::uint64_t origin = 0;   // WorldOptions::origin at the wrong call, or at the call that queued the wrong operation
  std::uint64_t other = 0;    // the same for the operation that collides with it; 0: none
  bool refused_wait = false;  // true: no misuse if the fault plan had refused no wait
};

constexpr std::string_view Name(MisuseRule rule) noexcept {
  constexpr std::string_view names[] = {
#define CUAUDIT_MISUSE(name, text, help, advice) text,
#include "faults/driver/misuse.def"
#undef CUAUDIT_MISUSE
  };
  return names[static_cast<std::size_t>(rule)];
}

}  // namespace cuaudit::driver
