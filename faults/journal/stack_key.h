// SPDX-License-Identifier: MIT
// stack_key.h: by what a call stack of one run is known again in another: build ids of modules and offsets in them.
//
//   Owns      nothing.
//   Threads   pure.
//   Units     none; 64-bit hashes.
//   Errors    none. A frame in no module counts as such: its address means nothing in another run.
//   Faults    makes no driver calls; allocates nothing.
//   Source    FNV-1a.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

inline constexpr std::uint64_t kKeySeed = 0xcbf29ce484222325U;

// The bytes of a value, least significant first; the characters of a text, then their number.
std::uint64_t MixKey(std::uint64_t hash, std::uint64_t value) noexcept;
std::uint64_t MixKey(std::uint64_t hash, std::string_view text) noexcept;
std::uint64_t MixStack(std::uint64_t hash, std::span<const std::uint64_t> frames, const ModuleRow* modules, std::size_t count) noexcept;

// The place of a driver call, whatever the version of its entry point: `base` is the name without one.
std::uint64_t CallKey(std::string_view base, std::span<const std::uint64_t> frames, const ModuleRow* modules, std::size_t count) noexcept;

}  // namespace cuaudit::faults
