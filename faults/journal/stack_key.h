// SPDX-License-Identifier: MIT
// stack_key.h: a hash (FNV-1a) that identifies a call stack across runs, made from the build ids of modules and the offsets in them.
//
// A Python function counts by its qualified name, the name of its file and the line. A frame in no module counts only as such, because its
// address means nothing in another run. The functions allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

inline constexpr std::uint64_t kKeySeed = 0xcbf29ce484222325U;

// Hashes the bytes of a value, least significant first; or the characters of a text, followed by their number.
std::uint64_t MixKey(std::uint64_t hash, std::uint64_t value) noexcept;
std::uint64_t MixKey(std::uint64_t hash, std::string_view text) noexcept;

// Of StackRow::hash; never 0.
std::uint64_t HashOfFrames(const std::uint64_t* frames, std::size_t depth) noexcept;

// What the frames of a stack refer to.
struct FrameTables {
  std::span<const ModuleRow> modules;
  std::span<const PythonRow> python;
};
// Row of a frame whose module is kPython; null: there is none, or it is not complete.
const PythonRow* FindPython(const FrameTables& tables, std::uint64_t frame) noexcept;
std::uint64_t MixStack(std::uint64_t hash, std::span<const std::uint64_t> frames, const FrameTables& tables) noexcept;

// Identifies the place of a driver call. `base` is the name of the entry point without version, so that all versions have the same key.
std::uint64_t CallKey(std::string_view base, std::span<const std::uint64_t> frames, const FrameTables& tables) noexcept;

}  // namespace cuaudit::faults
