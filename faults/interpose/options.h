// SPDX-License-Identifier: MIT
// options.h: CUAUDIT_OPTIONS as the drop-in libraries read it.
//
//   Owns      nothing; fixed-size values.
//   Threads   read once, while the library is loaded.
//   Errors    Parse names the first key or value that is wrong and what was expected. The drop-in then prints that one line and ends
//             the program with status 2: a mistyped fault must never pass for a clean run.
//   Faults    makes no driver calls.
//   Source    options.def.
#pragma once

#include <cstddef>

#include "faults/interpose/world_options.h"
#include "faults/plan/plan.h"
#include "faults/shim/scope.h"

namespace cuaudit::faults {

enum class DriverChoice : unsigned char { Auto, Real, Simulated };

inline constexpr std::size_t kMaxPath = 1024;

enum class HostChoice : unsigned char { None, Basic, Heap };

struct InterposeOptions {
  char journal[kMaxPath] = "";
  char real_driver[kMaxPath] = "";
  char forks[kMaxPath] = "";
  char cycles[kMaxPath] = "";
  DriverChoice driver = DriverChoice::Auto;
  Scope scope = Scope::Pinned;
  HostChoice host = HostChoice::Heap;
  WorldRequest world;
  Plan plan;
};

// Null on success; otherwise one line in `message` (and returned).
[[nodiscard]] const char* ParseOptions(const char* text, InterposeOptions* options, char* message, std::size_t capacity) noexcept;

}  // namespace cuaudit::faults
