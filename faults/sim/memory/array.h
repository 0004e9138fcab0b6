// SPDX-License-Identifier: MIT
// array.h: computes the size and layout of arrays and of mipmap levels.
//
//   Owns      nothing; an array belongs to its context.
//   Threads   the caller holds the world's lock.
//   Units     elements, bytes. A block-compressed format counts blocks of four by four elements.
//   Errors    false or nullptr when no such array exists or there is no memory.
//   Source    CUDA Driver API 13.0, cuArray3DCreate and cuMipmappedArrayCreate; limits of an H200 (profile_h200.def).
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

bool ShapeArray(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array* array) noexcept;

// Each level halves the one before until every extent is 1. `wanted` is clamped to between 1 and that many levels.
struct Levels {
  unsigned count = 0;
  std::uint64_t bytes = 0;
  CUDA_ARRAY3D_DESCRIPTOR size[MipmappedArray::kMaxLevels] = {};
};
bool ShapeLevels(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned wanted, Levels* levels) noexcept;
// Takes ownership of the range, and gives it back on failure.
MipmappedArray* MakeLevels(World& world, Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, const Levels& levels,
                           Range* range) noexcept;

// For a destroyed mipmapped array an H200 answered CONTEXT_IS_DESTROYED, and crashed in a process that had loaded no module.
MipmappedArray* FindLevels(Call& call, CUmipmappedArray handle) noexcept;
CUresult RefuseLevels(const Call& call, CUmipmappedArray handle) noexcept;  // when FindLevels finds none

// The array gets its memory later, by cuMemMapArrayAsync.
inline bool IsDeferred(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) noexcept {
  return (descriptor.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}
// Allocates device memory for the array's bytes. A deferred array gets addresses only.
Range* TakeForArray(World& world, Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::uint64_t bytes) noexcept;

}  // namespace cuaudit::sim
