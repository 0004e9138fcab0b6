// SPDX-License-Identifier: MIT
// options.h: CUAUDIT_OPTIONS as the drop-in libraries read it, once, while the library is loaded. options.def has the keys.
//
// The parser reports the first key or value that is wrong and what it expected. The drop-in then prints that line and ends the program
// with status 2, because a mistyped fault must never pass for a clean run.
#pragma once

#include <cstddef>

#include "faults/interpose/world_options.h"
#include "faults/plan/plan.h"
#include "faults/shim/scope.h"

namespace cuaudit::faults {

enum class DriverChoice : unsigned char { Auto, Genuine, Simulated };

inline constexpr std::size_t kMaxPath = 1024;

enum class HostChoice : unsigned char { None, Basic, Heap };

struct InterposeOptions {
  char journal[kMaxPath] = "";  // of `journal` or `record`
  bool record = false;          // a journal that cannot be opened does not stop the program
  char real_driver[kMaxPath] = "";
  char forks[kMaxPath] = "";
  char cycles[kMaxPath] = "";
  DriverChoice driver = DriverChoice::Auto;
  Scope scope = Scope::Pinned;
  HostChoice host = HostChoice::Heap;
  WorldRequest world;
  Plan plan;
};

// Returns null on success; otherwise writes one line to `message` and returns it.
[[nodiscard]] const char* ParseOptions(const char* text, InterposeOptions* options, char* message, std::size_t capacity) noexcept;

}  // namespace cuaudit::faults
