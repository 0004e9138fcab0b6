// SPDX-License-Identifier: MIT
// array.h: the shape of arrays and of their levels.
//
//   Owns      nothing; arrays belong to their context.
//   Threads   the world's lock is held by every caller.
//   Units     elements, bytes. A block-compressed format counts blocks of four by four elements.
//   Errors    false or nullptr: no such array, or no memory.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuArray3DCreate and cuMipmappedArrayCreate; limits of an H200.
#pragma once

#include "faults/sim/call.h"

namespace cuaudit::sim {

bool ShapeArray(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array* array) noexcept;

// Levels halve until all is one; more are never made, and less than one neither.
struct Levels {
  unsigned count = 0;
  std::uint64_t bytes = 0;
  CUDA_ARRAY3D_DESCRIPTOR size[MipmappedArray::kMaxLevels] = {};
};
bool ShapeLevels(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned wanted, Levels* levels) noexcept;
// Takes the range, which is given back when it fails.
MipmappedArray* MakeLevels(World& world, Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, const Levels& levels,
                           Range* range) noexcept;

// Memory comes later, by cuMemMapArrayAsync.
inline bool IsDeferred(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) noexcept {
  return (descriptor.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}
// Device memory for the array's bytes; of a deferred one only addresses.
Range* TakeForArray(World& world, Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::uint64_t bytes) noexcept;

// A part of a deferred array and the physical memory behind it.
struct Binding {
  Range* range;
  Physical* physical;
  std::uint32_t kind;  // of the subresource
  std::uint64_t part[8];
};
// The array is going.
void DropBindings(World& world, Range* range) noexcept;

}  // namespace cuaudit::sim
