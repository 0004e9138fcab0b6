// SPDX-License-Identifier: MIT
// profile.h: which device is simulated: its attributes, its memory, and the figures that occupancy depends on.
//
//   Units     bytes, registers, warps.
//   Errors    FindProfile returns nullptr for an unknown name; an attribute beyond the table is 0.
//   Source    profile_h200.def is measured, profile_small.def is from public figures. Granularities of registers and shared memory are
//             those of the CUDA toolkit's occupancy calculator for compute capability 7.5 and 9.0.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace cuaudit::sim {

inline constexpr int kAttributeEnd = 148;  // one past the last attribute that CUDA 13.0 knows

struct Profile {
  const char* name;
  const char* device_name;      // includes that the device is simulated
  std::uint64_t memory;         // the most memory that a device of this kind has
  std::uint32_t shared_unit;    // shared memory of a block is a multiple of this
  std::uint32_t register_unit;  // registers of a warp are a multiple of this
  std::uint32_t warp_unit;      // the register limit of warps is a multiple of this
  std::uint32_t least_group;    // fewest multiprocessors in a partition (least_group); a partition is a multiple of group_unit
  std::uint32_t group_unit;
  std::uint32_t most_groups;  // most partitions of the least size; some multiprocessors are left over
  int attribute[kAttributeEnd];

  int Attribute(int number) const noexcept { return number > 0 && number < kAttributeEnd ? attribute[number] : 0; }
};

const Profile* FindProfile(const char* name) noexcept;
// The profile of a world that does not name one.
const Profile* DefaultProfile() noexcept;

}  // namespace cuaudit::sim
