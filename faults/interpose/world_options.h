// SPDX-License-Identifier: MIT
// world_options.h: the simulated driver's options (world_options.def) as text, for the drop-in and for the command line that passes them
// on.
//
// A SIZE is a number of bytes, or a number of KiB, MiB or GiB.
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
  std::uint64_t device_memory = 0;     // bytes of each device; 0: not set
  const char* given = nullptr;         // first key that was set, for the message when the driver is genuine
  bool seeded = false;                 // set by `seed`; random:SEED sets the same seed
  char kernels[kMaxKernelsPath] = "";  // library that registers host kernels; empty: none
};

bool IsWorldKey(std::string_view key) noexcept;

// Returns null when `value` is accepted, otherwise a static phrase that says what was expected.
[[nodiscard]] const char* SetWorldOption(std::string_view key, std::string_view value, WorldRequest* request) noexcept;

// Writes "schedule=lazy;devices=2;device_memory=64MiB;profile=h200;seed=1", with the granted memory, then "undefined=crash" and
// "kernels=FILE" if they are set. Equal texts mean equal worlds, and the text can be parsed again.
std::size_t FormatWorld(const WorldRequest& request, std::uint64_t granted_memory, char* text, std::size_t capacity) noexcept;

}  // namespace cuaudit::faults
