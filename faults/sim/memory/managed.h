// SPDX-License-Identifier: MIT
// managed.h: cuMemAdvise and prefetch settings of the parts of managed memory.
//
//   Owns      a range's parts, which are freed with the range.
//   Threads   the caller holds the world's lock.
//   Units     bytes; parts begin and end at pages.
//   Errors    nullptr or false: the arena is full.
//   Source    CUDA Driver API 13.0, cuMemAdvise and cuMemRangeGetAttribute; numbers as an H200 answers.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// id -2 with type INVALID: no place.
struct Place {
  CUmemLocationType type = CU_MEM_LOCATION_TYPE_INVALID;
  int id = CU_DEVICE_INVALID;
  bool operator==(const Place&) const = default;
};

struct Part {
  std::uint64_t end = 0;
  bool read_mostly = false;
  Place preferred;
  Place prefetched;
  std::uint32_t accessed_by = 0;  // one bit for each device, kHostBit for the CPU
};
inline constexpr std::uint32_t kHostBit = std::uint32_t{1} << kMaxDevices;

struct Managed {
  Vector<Part> parts;  // sorted by address; each begins where the one before ends
};

// The range's parts inside [address, address + bytes), split at both ends. Empty: the arena is full.
struct Parts {
  Part* first = nullptr;
  Part* last = nullptr;  // one past the last
  Part* begin() const noexcept { return first; }
  Part* end() const noexcept { return last; }
};
Parts CutParts(World& world, Range* range, std::uint64_t address, std::uint64_t bytes) noexcept;
// The settings that all parts of the interval have in common, for cuMemRangeGetAttribute.
Part Common(const World& world, const Range* range, std::uint64_t address, std::uint64_t bytes) noexcept;
void DropParts(World& world, Range* range) noexcept;

}  // namespace cuaudit::sim
