// SPDX-License-Identifier: MIT
#include "faults/cudart/descriptions.h"

#include <string.h>

namespace cuaudit::cudart {
namespace {

size_t FormatBytes(CUarray_format format) noexcept {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

}  // namespace

cudaError_t ElementBytes(DriverRef driver, cudaArray_const_t array, size_t* bytes) noexcept {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  const CUresult result = driver.Array3DGetDescriptor(&descriptor, Array(array));
  *bytes = FormatBytes(descriptor.Format) * descriptor.NumChannels;
  return From(result);
}

bool IsKind(enum cudaMemcpyKind kind) noexcept { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

bool IntoDevice(enum cudaMemcpyKind kind) noexcept {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

bool OutOfDevice(enum cudaMemcpyKind kind) noexcept {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

bool IsEmpty(const cudaExtent& extent) noexcept { return extent.width == 0 || extent.height == 0 || extent.depth == 0; }

CUmemorytype SourceType(enum cudaMemcpyKind kind) noexcept {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype DestinationType(enum cudaMemcpyKind kind) noexcept {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

Side PointerSide(CUmemorytype type, const void* pointer, size_t pitch) noexcept { return {type, pointer, pitch, nullptr, 0, 0}; }

Side ArraySide(cudaArray_const_t array, size_t x_bytes, size_t y) noexcept {
  return {CU_MEMORYTYPE_ARRAY, nullptr, 0, Array(array), x_bytes, y};
}

cudaError_t Plan2D(const Side& to, const Side& from, size_t width_bytes, size_t height, CUDA_MEMCPY2D* plan) noexcept {
  const bool to_array = to.type == CU_MEMORYTYPE_ARRAY;
  const bool from_array = from.type == CU_MEMORYTYPE_ARRAY;
  if ((!to_array && width_bytes > to.pitch) || (!from_array && width_bytes > from.pitch)) return cudaErrorInvalidPitchValue;
  *plan = {};
  plan->dstMemoryType = to.type;
  plan->dstArray = to.array;
  plan->dstXInBytes = to.x_bytes;
  plan->dstY = to.y;
  plan->dstPitch = to.pitch;
  if (to.type == CU_MEMORYTYPE_HOST) {
    plan->dstHost = const_cast<void*>(to.pointer);
  } else {
    plan->dstDevice = Address(to.pointer);
  }
  plan->srcMemoryType = from.type;
  plan->srcArray = from.array;
  plan->srcXInBytes = from.x_bytes;
  plan->srcY = from.y;
  plan->srcPitch = from.pitch;
  if (from.type == CU_MEMORYTYPE_HOST) {
    plan->srcHost = from.pointer;
  } else {
    plan->srcDevice = Address(from.pointer);
  }
  plan->WidthInBytes = width_bytes;
  plan->Height = height;
  return cudaSuccess;
}

cudaError_t Plan3D(DriverRef driver, const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* plan) noexcept {
  if (!IsKind(from.kind)) return cudaErrorInvalidMemcpyDirection;
  if ((from.srcArray != nullptr) == (from.srcPtr.ptr != nullptr)) return cudaErrorInvalidValue;
  if ((from.dstArray != nullptr) == (from.dstPtr.ptr != nullptr)) return cudaErrorInvalidValue;
  size_t source_element = 1;
  size_t destination_element = 1;
  if (from.srcArray != nullptr) {
    if (const cudaError_t error = ElementBytes(driver, from.srcArray, &source_element)) return error;
  }
  if (from.dstArray != nullptr) {
    if (const cudaError_t error = ElementBytes(driver, from.dstArray, &destination_element)) return error;
  }
  if (from.srcArray != nullptr && from.dstArray != nullptr && source_element != destination_element) return cudaErrorInvalidValue;
  const size_t width = from.extent.width * (from.srcArray != nullptr ? source_element : destination_element);
  const bool pointers = from.srcArray == nullptr && from.dstArray == nullptr;  // with an array the driver checks the sizes
  if (pointers && (width > from.srcPtr.pitch || width > from.dstPtr.pitch)) return cudaErrorInvalidPitchValue;
  *plan = {};
  plan->srcMemoryType = from.srcArray != nullptr ? CU_MEMORYTYPE_ARRAY : SourceType(from.kind);
  plan->srcArray = Array(from.srcArray);
  plan->srcHost = plan->srcMemoryType == CU_MEMORYTYPE_HOST ? from.srcPtr.ptr : nullptr;
  plan->srcDevice = plan->srcMemoryType == CU_MEMORYTYPE_HOST ? 0 : Address(from.srcPtr.ptr);
  plan->srcPitch = from.srcPtr.pitch;
  plan->srcHeight = from.srcPtr.ysize;
  plan->srcXInBytes = from.srcPos.x * source_element;
  plan->srcY = from.srcPos.y;
  plan->srcZ = from.srcPos.z;
  plan->dstMemoryType = from.dstArray != nullptr ? CU_MEMORYTYPE_ARRAY : DestinationType(from.kind);
  plan->dstArray = Array(from.dstArray);
  plan->dstHost = plan->dstMemoryType == CU_MEMORYTYPE_HOST ? from.dstPtr.ptr : nullptr;
  plan->dstDevice = plan->dstMemoryType == CU_MEMORYTYPE_HOST ? 0 : Address(from.dstPtr.ptr);
  plan->dstPitch = from.dstPtr.pitch;
  plan->dstHeight = from.dstPtr.ysize;
  plan->dstXInBytes = from.dstPos.x * destination_element;
  plan->dstY = from.dstPos.y;
  plan->dstZ = from.dstPos.z;
  plan->WidthInBytes = width;
  plan->Height = from.extent.height;
  plan->Depth = from.extent.depth;
  return cudaSuccess;
}

namespace {

// Formats that a channel kind determines alone; the channels' bit counts add nothing.
struct Whole {
  enum cudaChannelFormatKind kind;
  CUarray_format format;
  unsigned channels;
  int bits;
};
constexpr Whole kWhole[] = {
    {cudaChannelFormatKindNV12, CU_AD_FORMAT_NV12, 3, 8},
    {cudaChannelFormatKindUnsignedNormalized8X1, CU_AD_FORMAT_UNORM_INT8X1, 1, 8},
    {cudaChannelFormatKindUnsignedNormalized8X2, CU_AD_FORMAT_UNORM_INT8X2, 2, 8},
    {cudaChannelFormatKindUnsignedNormalized8X4, CU_AD_FORMAT_UNORM_INT8X4, 4, 8},
    {cudaChannelFormatKindUnsignedNormalized16X1, CU_AD_FORMAT_UNORM_INT16X1, 1, 16},
    {cudaChannelFormatKindUnsignedNormalized16X2, CU_AD_FORMAT_UNORM_INT16X2, 2, 16},
    {cudaChannelFormatKindUnsignedNormalized16X4, CU_AD_FORMAT_UNORM_INT16X4, 4, 16},
    {cudaChannelFormatKindSignedNormalized8X1, CU_AD_FORMAT_SNORM_INT8X1, 1, 8},
    {cudaChannelFormatKindSignedNormalized8X2, CU_AD_FORMAT_SNORM_INT8X2, 2, 8},
    {cudaChannelFormatKindSignedNormalized8X4, CU_AD_FORMAT_SNORM_INT8X4, 4, 8},
    {cudaChannelFormatKindSignedNormalized16X1, CU_AD_FORMAT_SNORM_INT16X1, 1, 16},
    {cudaChannelFormatKindSignedNormalized16X2, CU_AD_FORMAT_SNORM_INT16X2, 2, 16},
    {cudaChannelFormatKindSignedNormalized16X4, CU_AD_FORMAT_SNORM_INT16X4, 4, 16},
    {cudaChannelFormatKindUnsignedBlockCompressed1, CU_AD_FORMAT_BC1_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed1SRGB, CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed2, CU_AD_FORMAT_BC2_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed2SRGB, CU_AD_FORMAT_BC2_UNORM_SRGB, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed3, CU_AD_FORMAT_BC3_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed3SRGB, CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed4, CU_AD_FORMAT_BC4_UNORM, 1, 8},
    {cudaChannelFormatKindSignedBlockCompressed4, CU_AD_FORMAT_BC4_SNORM, 1, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed5, CU_AD_FORMAT_BC5_UNORM, 2, 8},
    {cudaChannelFormatKindSignedBlockCompressed5, CU_AD_FORMAT_BC5_SNORM, 2, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed6H, CU_AD_FORMAT_BC6H_UF16, 3, 16},
    {cudaChannelFormatKindSignedBlockCompressed6H, CU_AD_FORMAT_BC6H_SF16, 3, 16},
    {cudaChannelFormatKindUnsignedBlockCompressed7, CU_AD_FORMAT_BC7_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed7SRGB, CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 8},
};

struct Plain {
  enum cudaChannelFormatKind kind;
  int bits;
  CUarray_format format;
};
constexpr Plain kPlain[] = {
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

// One, two or four channels of equal width, without a gap.
unsigned Channels(const cudaChannelFormatDesc& d) noexcept {
  if (d.y == 0) return d.z == 0 && d.w == 0 ? 1 : 0;
  if (d.y != d.x) return 0;
  if (d.z == 0) return d.w == 0 ? 2 : 0;
  return d.z == d.x && d.w == d.x ? 4 : 0;
}

}  // namespace

cudaError_t FormatOf(const cudaChannelFormatDesc& description, Format* format) noexcept {
  for (const Whole& whole : kWhole) {
    if (whole.kind != description.f) continue;
    *format = {whole.format, whole.channels};
    return cudaSuccess;
  }
  const unsigned channels = Channels(description);
  for (const Plain& plain : kPlain) {
    if (plain.kind != description.f || plain.bits != description.x || channels == 0) continue;
    *format = {plain.format, channels};
    return cudaSuccess;
  }
  return cudaErrorInvalidChannelDescriptor;
}

cudaChannelFormatDesc DescriptionOf(const Format& format) noexcept {
  int bits = 0;
  enum cudaChannelFormatKind kind = cudaChannelFormatKindNone;
  for (const Whole& whole : kWhole) {
    if (whole.format == format.format) {
      bits = whole.bits;
      kind = whole.kind;
    }
  }
  for (const Plain& plain : kPlain) {
    if (plain.format == format.format) {
      bits = plain.bits;
      kind = plain.kind;
    }
  }
  return {bits, format.channels > 1 ? bits : 0, format.channels > 2 ? bits : 0, format.channels > 3 ? bits : 0, kind};
}

cudaError_t PlanArray(const cudaChannelFormatDesc& description, cudaExtent extent, unsigned flags, CUDA_ARRAY3D_DESCRIPTOR* plan) noexcept {
  static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED && cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
                cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP && cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER &&
                cudaArrayColorAttachment == CUDA_ARRAY3D_COLOR_ATTACHMENT && cudaArraySparse == CUDA_ARRAY3D_SPARSE &&
                cudaArrayDeferredMapping == CUDA_ARRAY3D_DEFERRED_MAPPING);
  Format format{};
  if (const cudaError_t error = FormatOf(description, &format)) return error;
  *plan = {extent.width, extent.height, extent.depth, format.format, format.channels, flags};
  return cudaSuccess;
}

cudaError_t PlanResource(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* plan) noexcept {
  *plan = {};
  plan->flags = from.flags;
  Format format{};
  switch (from.resType) {
    case cudaResourceTypeArray:
      if (from.res.array.array == nullptr) return cudaErrorInvalidResourceHandle;
      plan->resType = CU_RESOURCE_TYPE_ARRAY;
      plan->res.array.hArray = Array(from.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      plan->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      plan->res.mipmap.hMipmappedArray = Mipmap(from.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear:
      if (const cudaError_t error = FormatOf(from.res.linear.desc, &format)) return error;
      plan->resType = CU_RESOURCE_TYPE_LINEAR;
      plan->res.linear = {Address(from.res.linear.devPtr), format.format, format.channels, from.res.linear.sizeInBytes};
      return cudaSuccess;
    case cudaResourceTypePitch2D: {
      const auto& pitched = from.res.pitch2D;
      if (const cudaError_t error = FormatOf(pitched.desc, &format)) return error;
      plan->resType = CU_RESOURCE_TYPE_PITCH2D;
      plan->res.pitch2D = {Address(pitched.devPtr), format.format, format.channels, pitched.width, pitched.height, pitched.pitchInBytes};
      return cudaSuccess;
    }
  }
  return cudaErrorInvalidValue;
}

cudaResourceDesc ResourceOf(const CUDA_RESOURCE_DESC& from) noexcept {
  cudaResourceDesc to;
  memset(&to, 0, sizeof(to));
  to.flags = from.flags;
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      to.resType = cudaResourceTypeArray;
      to.res.array.array = reinterpret_cast<cudaArray_t>(from.res.array.hArray);
      break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to.resType = cudaResourceTypeMipmappedArray;
      to.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
      break;
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = from.res.linear;
      to.resType = cudaResourceTypeLinear;
      to.res.linear.devPtr = Pointer(linear.devPtr);
      to.res.linear.desc = DescriptionOf({linear.format, linear.numChannels});
      to.res.linear.sizeInBytes = linear.sizeInBytes;
      break;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& pitched = from.res.pitch2D;
      to.resType = cudaResourceTypePitch2D;
      to.res.pitch2D.devPtr = Pointer(pitched.devPtr);
      to.res.pitch2D.desc = DescriptionOf({pitched.format, pitched.numChannels});
      to.res.pitch2D.width = pitched.width;
      to.res.pitch2D.height = pitched.height;
      to.res.pitch2D.pitchInBytes = pitched.pitchInBytes;
      break;
    }
  }
  return to;
}

CUDA_TEXTURE_DESC PlanTexture(const cudaTextureDesc& from) noexcept {
  CUDA_TEXTURE_DESC plan{};
  for (int i = 0; i < 3; ++i) plan.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
  plan.filterMode = static_cast<CUfilter_mode>(from.filterMode);
  if (from.readMode == cudaReadModeElementType) plan.flags |= CU_TRSF_READ_AS_INTEGER;
  if (from.normalizedCoords != 0) plan.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (from.sRGB != 0) plan.flags |= CU_TRSF_SRGB;
  if (from.disableTrilinearOptimization != 0) plan.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (from.seamlessCubemap != 0) plan.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  plan.maxAnisotropy = from.maxAnisotropy;
  plan.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  plan.mipmapLevelBias = from.mipmapLevelBias;
  plan.minMipmapLevelClamp = from.minMipmapLevelClamp;
  plan.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  memcpy(plan.borderColor, from.borderColor, sizeof(plan.borderColor));
  return plan;
}

cudaTextureDesc TextureOf(const CUDA_TEXTURE_DESC& from) noexcept {
  cudaTextureDesc to{};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<cudaTextureAddressMode>(from.addressMode[i]);
  to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
  to.readMode = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  to.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0 ? 1 : 0;
  to.sRGB = (from.flags & CU_TRSF_SRGB) != 0 ? 1 : 0;
  to.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0 ? 1 : 0;
  to.seamlessCubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0 ? 1 : 0;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  memcpy(to.borderColor, from.borderColor, sizeof(to.borderColor));
  return to;
}

}  // namespace cuaudit::cudart
