// SPDX-License-Identifier: MIT
// managed.h: what is advised and prefetched about the parts of managed memory.
//
//   Owns      the parts of a range; gone with it.
//   Threads   the world's lock is held by every caller.
//   Units     bytes; parts begin and end at pages.
//   Errors    nullptr or false: the books are full.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuMemAdvise and cuMemRangeGetAttribute; numbers as an H200 answers.
#pragma once

#include "faults/sim/call.h"

namespace cuaudit::sim {

// id -2 and type invalid: none.
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
  std::uint32_t accessed_by = 0;  // a bit for each device, kHostBit for the processor
};
inline constexpr std::uint32_t kHostBit = std::uint32_t{1} << kMaxDevices;

struct Managed {
  Vector<Part> parts;  // by address; each begins where the one before ends
};

// The range's parts inside [address, address + bytes), cut there. Empty: the books are full.
struct Parts {
  Part* first = nullptr;
  Part* last = nullptr;  // behind the last
  Part* begin() const noexcept { return first; }
  Part* end() const noexcept { return last; }
};
Parts CutParts(World& world, Range* range, std::uint64_t address, std::uint64_t bytes) noexcept;
// What all of them have in common, for a question.
Part Common(const World& world, const Range* range, std::uint64_t address, std::uint64_t bytes) noexcept;
void DropParts(World& world, Range* range) noexcept;

}  // namespace cuaudit::sim
