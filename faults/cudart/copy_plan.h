// SPDX-License-Identifier: MIT
// copy_plan.h: from the runtime's words for a copy (kind, pitch, extent) to the driver's (memory types, rows).
//
//   Owns      nothing.
//   Threads   safe.
//   Units     bytes, but positions and extents of cudaMemcpy3DParms count elements where an array takes part.
//   Errors    cudaErrorInvalidMemcpyDirection for a kind that is none, cudaErrorInvalidPitchValue for rows longer than their pitch.
//   Faults    makes driver calls: Array3DGetDescriptor, to learn an element's size.
//   Source    CUDA Runtime API 13.0, memory management.
#pragma once

#include "faults/cudart/calls.h"

namespace cuaudit::cudart {

// Of one element of `array`.
cudaError_t ElementBytes(DriverRef driver, cudaArray_const_t array, size_t* bytes) noexcept;

bool IsKind(enum cudaMemcpyKind kind) noexcept;
bool IntoDevice(enum cudaMemcpyKind kind) noexcept;
bool OutOfDevice(enum cudaMemcpyKind kind) noexcept;
bool IsEmpty(const cudaExtent& extent) noexcept;
CUmemorytype SourceType(enum cudaMemcpyKind kind) noexcept;
CUmemorytype DestinationType(enum cudaMemcpyKind kind) noexcept;

// One side of a copy by rows: a pointer with a pitch, or an array.
struct Side {
  CUmemorytype type;
  const void* pointer;
  size_t pitch;
  CUarray array;
  size_t x_bytes;
  size_t y;
};
Side PointerSide(CUmemorytype type, const void* pointer, size_t pitch) noexcept;
Side ArraySide(cudaArray_const_t array, size_t x_bytes, size_t y) noexcept;

// Both sides checked and joined.
cudaError_t Plan2D(const Side& to, const Side& from, size_t width_bytes, size_t height, CUDA_MEMCPY2D* plan) noexcept;
cudaError_t Plan3D(DriverRef driver, const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* plan) noexcept;

}  // namespace cuaudit::cudart
