// SPDX-License-Identifier: MIT
// copy_plan.h: converts the runtime's description of a copy (kind, pitch, extent) to the driver's (memory types, rows).
//
//   Units     bytes. In cudaMemcpy3DParms, positions and extents count elements if either side is an array.
//   Errors    cudaErrorInvalidMemcpyDirection for an unknown kind, cudaErrorInvalidPitchValue for rows longer than their pitch.
//   Faults    calls the driver: Array3DGetDescriptor, for the element size.
//   Source    CUDA Runtime API 13.0, Memory Management.
#pragma once

#include "faults/cudart/calls.h"

namespace cuaudit::cudart {

// Size of one element of `array`.
cudaError_t ElementBytes(DriverRef driver, cudaArray_const_t array, size_t* bytes) noexcept;

bool IsKind(enum cudaMemcpyKind kind) noexcept;
bool IntoDevice(enum cudaMemcpyKind kind) noexcept;
bool OutOfDevice(enum cudaMemcpyKind kind) noexcept;
bool IsEmpty(const cudaExtent& extent) noexcept;
CUmemorytype SourceType(enum cudaMemcpyKind kind) noexcept;
CUmemorytype DestinationType(enum cudaMemcpyKind kind) noexcept;

// One side of a pitched copy: a pointer with a pitch, or an array.
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

// Check both sides and join them in the driver's structure.
cudaError_t Plan2D(const Side& to, const Side& from, size_t width_bytes, size_t height, CUDA_MEMCPY2D* plan) noexcept;
cudaError_t Plan3D(DriverRef driver, const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* plan) noexcept;

}  // namespace cuaudit::cudart
