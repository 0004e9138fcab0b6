// SPDX-License-Identifier: MIT
#include "faults/cudart/copy_plan.h"

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

}  // namespace cuaudit::cudart
