// SPDX-License-Identifier: MIT
// limits.h: the limits that a context begins with.
//
//   Threads   the caller holds the world's lock.
//   Source    CUDA Driver API 13.0, cuCtxGetLimit; values of an H200 (580.159.04).
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

inline constexpr std::size_t kPersistingParts = 10;  // the L2 cache that a context may set aside is rounded to a tenth
// Toolkits before 12.5 have no name for it.
inline constexpr int kSharedMemory = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1;

inline std::size_t MostPersisting(const World& world) noexcept {
  return static_cast<std::size_t>(world.profile->Attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE));
}

void StartLimits(const World& world, Context* context) noexcept;

}  // namespace cuaudit::sim
