// SPDX-License-Identifier: MIT
// world_options.h: the simulated driver's options as text, for the drop-in and for the command line that hands them on.
//
//   Owns      its texts; a plain value.
//   Threads   values; no shared state.
//   Units     bytes; SIZE is a number of bytes, or one of KiB, MiB, GiB.
//   Errors    what was expected, as a static phrase.
//   Faults    makes no driver calls.
//   Source    world_options.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "faults/sim/world.h"

namespace cuaudit::faults {

inline constexpr std::size_t kMaxKernelsPath = 1024;
inline constexpr std::size_t kMaxWorldText = kMaxKernelsPath + 192;

struct WorldRequest {
  sim::WorldOptions world;
  std::uint64_t device_memory = 0;     // of each device; 0: nothing asked for
  const char* given = nullptr;         // the first key that was set: it means nothing on a genuine driver
  bool seeded = false;                 // by `seed`; random:SEED sets the same seed
  char kernels[kMaxKernelsPath] = "";  // library that registers host kernels; empty: none
};

bool IsWorldKey(std::string_view key) noexcept;

// Null when `value` was taken.
[[nodiscard]] const char* SetWorldOption(std::string_view key, std::string_view value, WorldRequest* request) noexcept;

// "schedule=lazy;devices=2;device_memory=64MiB;profile=h200;seed=1", the memory as granted, and "kernels=FILE" if there is one. Equal texts
// are equal worlds, and the text is read back.
std::size_t FormatWorld(const WorldRequest& request, std::uint64_t granted_memory, char* text, std::size_t capacity) noexcept;

}  // namespace cuaudit::faults
