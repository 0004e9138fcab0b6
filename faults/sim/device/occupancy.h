// SPDX-License-Identifier: MIT
// occupancy.h: how many blocks of a kernel fit on a multiprocessor, from the device's figures and the kernel's attributes.
//
//   Units     bytes, threads, blocks.
//   Source    CUDA C++ Programming Guide, Multiprocessor Level: limits by warps, blocks, registers and shared memory, each rounded up to
//             the device's allocation unit (profile.h).
#pragma once

#include <cstddef>

#include "faults/sim/device/profile.h"

namespace cuaudit::sim {

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
