// SPDX-License-Identifier: MIT
// descriptions.h: converts descriptions of copies, arrays, textures and surfaces between the runtime's structures and the driver's.
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

// Converts descriptions of arrays, textures and surfaces between the runtime's structures and the driver's.
//
//   Units     elements for extents, bytes for pitches.
//   Errors    cudaErrorInvalidChannelDescriptor for a format that no array can have.
//   Source    CUDA Runtime API 13.0: texture_types.h, surface_types.h, channel format kinds.

struct Format {
  CUarray_format format;
  unsigned channels;
};

cudaError_t FormatOf(const cudaChannelFormatDesc& description, Format* format) noexcept;
cudaChannelFormatDesc DescriptionOf(const Format& format) noexcept;

cudaError_t PlanArray(const cudaChannelFormatDesc& description, cudaExtent extent, unsigned flags, CUDA_ARRAY3D_DESCRIPTOR* plan) noexcept;
cudaError_t PlanResource(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* plan) noexcept;
cudaResourceDesc ResourceOf(const CUDA_RESOURCE_DESC& from) noexcept;
CUDA_TEXTURE_DESC PlanTexture(const cudaTextureDesc& from) noexcept;
cudaTextureDesc TextureOf(const CUDA_TEXTURE_DESC& from) noexcept;

inline CUmipmappedArray Mipmap(cudaMipmappedArray_const_t mipmap) noexcept {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(mipmap));
}

}  // namespace cuaudit::cudart
