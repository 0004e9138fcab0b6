// SPDX-License-Identifier: MIT
// profile.h: which device is simulated: its attributes, its memory, and the figures from which occupancy follows.
//
//   Owns      constants.
//   Threads   safe everywhere; no state.
//   Units     bytes, registers, warps.
//   Errors    FindProfile answers nullptr for a name that nobody has; an attribute beyond the table is 0.
//   Faults    makes no driver calls.
//   Source    profile_h200.def is measured, profile_small.def is from public figures; granularities of registers and shared memory are
//             those of the occupancy calculator in the CUDA toolkit for compute capability 7.5 and 9.0.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace cuaudit::sim {

inline constexpr int kAttributeEnd = 148;  // one past the last attribute that CUDA 13.0 knows

struct Profile {
  const char* name;
  const char* device_name;      // says that it is simulated
  std::uint64_t memory;         // a device of this kind has no more
  std::uint32_t shared_unit;    // shared memory is given to blocks in multiples of this
  std::uint32_t register_unit;  // registers to warps
  std::uint32_t warp_unit;      // warps by registers are a multiple of this
  std::uint32_t least_group;    // multiprocessors in a partition: at least, and a multiple of
  std::uint32_t group_unit;
  std::uint32_t most_groups;  // of the least size: how multiprocessors lie together leaves some over
  int attribute[kAttributeEnd];

  int Attribute(int number) const noexcept { return number > 0 && number < kAttributeEnd ? attribute[number] : 0; }
};

const Profile* FindProfile(const char* name) noexcept;
// The one of a world that asks for none.
const Profile* DefaultProfile() noexcept;

}  // namespace cuaudit::sim
