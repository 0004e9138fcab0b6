// SPDX-License-Identifier: MIT
// array_plan.h: converts descriptions of arrays, textures and surfaces between the runtime's structures and the driver's.
//
//   Units     elements for extents, bytes for pitches.
//   Errors    cudaErrorInvalidChannelDescriptor for a format that no array can have.
//   Source    CUDA Runtime API 13.0: texture_types.h, surface_types.h, channel format kinds.
#pragma once

#include "faults/cudart/calls.h"

namespace cuaudit::cudart {

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
