// SPDX-License-Identifier: MIT
// occupancy.h: how many blocks of a kernel fit on a multiprocessor, from the device's figures and the kernel's attributes.
//
//   Owns      nothing.
//   Threads   safe everywhere; no state.
//   Units     bytes, threads, blocks.
//   Faults    makes no driver calls.
//   Source    the occupancy rules of the CUDA toolkit: limits by warps, blocks, registers and shared memory; each is rounded up to what
//             the device gives out at once.
#pragma once

#include <cstddef>

#include "faults/sim/profile.h"

namespace cuaudit::sim {

// What a kernel needs of a multiprocessor.
struct KernelNeeds {
  unsigned registers = 0;  // of a thread
  std::size_t shared = 0;  // static, of a block
};

// 0: not one block fits.
int BlocksPerMultiprocessor(const Profile& profile, const KernelNeeds& kernel, unsigned threads, std::size_t dynamic_shared) noexcept;
// Dynamic shared memory of each of `blocks` blocks on one multiprocessor, without the limit of a single block.
std::size_t SharedForBlocks(const Profile& profile, const KernelNeeds& kernel, unsigned blocks) noexcept;

}  // namespace cuaudit::sim
