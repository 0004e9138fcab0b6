// SPDX-License-Identifier: MIT
// profile.h: which device is simulated: its attributes, its memory, and how many blocks of a kernel fit on a multiprocessor.
//
//   Units     bytes, registers, warps.
//   Errors    FindProfile returns nullptr for an unknown name; an attribute beyond the table is 0.
//   Source    profile_h200.def is measured, profile_small.def is from public figures. Granularities of registers and shared memory are
//             those of the CUDA toolkit's occupancy calculator for compute capability 7.5 and 9.0.
#pragma once

#include <cuda.h>

#include <cstddef>
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

// How many blocks of a kernel fit on a multiprocessor, from the device's figures and the kernel's attributes.
//
//   Units     bytes, threads, blocks.
//   Source    CUDA C++ Programming Guide, Multiprocessor Level: limits by warps, blocks, registers and shared memory, each rounded up to
//             the device's allocation unit.

constexpr unsigned kPortableCluster = 8;   // largest cluster, in blocks, that is portable
constexpr unsigned kGreatestCluster = 16;  // largest cluster with CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED

// Resources that a kernel needs of a multiprocessor.
struct KernelNeeds {
  unsigned registers = 0;  // per thread
  std::size_t shared = 0;  // static, per block
};

// 0: not even one block fits.
int BlocksPerMultiprocessor(const Profile& profile, const KernelNeeds& kernel, unsigned threads, std::size_t dynamic_shared) noexcept;
// Dynamic shared memory for each of `blocks` resident blocks, without the limit for a single block.
std::size_t SharedForBlocks(const Profile& profile, const KernelNeeds& kernel, unsigned blocks) noexcept;

}  // namespace cuaudit::sim
