// SPDX-License-Identifier: MIT
#include <initializer_list>

#include "faults/cudart/copy_plan.h"

namespace cuaudit::cudart {
namespace {

// Tag for a call without a stream, which uses the synchronous entry point.
struct Now {};

CUresult Copy(DriverRef driver, const CUDA_MEMCPY2D& plan, Now) noexcept { return driver.Memcpy2DUnaligned(&plan); }
CUresult Copy(DriverRef driver, const CUDA_MEMCPY2D& plan, cudaStream_t stream) noexcept { return driver.Memcpy2DAsync(&plan, stream); }

template <typename When>
cudaError_t Rows(DriverRef driver, const Side& to, const Side& from, size_t width, size_t height, When when) noexcept {
  CUDA_MEMCPY2D plan;
  for (const Side* const side : {&to, &from}) {
    if (side->type == CU_MEMORYTYPE_ARRAY && side->array == nullptr) return cudaErrorInvalidResourceHandle;
  }
  if (const cudaError_t error = Plan2D(to, from, width, height, &plan)) return error;
  return width == 0 || height == 0 ? cudaSuccess : From(Copy(driver, plan, when));
}

cudaError_t RowBytes(DriverRef driver, cudaArray_const_t array, size_t* bytes) noexcept {
  cudaMemcpy3DParms probe{};
  probe.srcArray = const_cast<cudaArray_t>(array);
  probe.dstArray = const_cast<cudaArray_t>(array);
  probe.kind = cudaMemcpyDeviceToDevice;
  probe.extent = {1, 1, 1};
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = Plan3D(driver, probe, &plan)) return error;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  const CUresult result = driver.Array3DGetDescriptor(&descriptor, Array(array));
  *bytes = descriptor.Width * plan.WidthInBytes;
  return From(result);
}

// Splits a linear range that starts within a row and wraps: the rest of the first row, whole rows, the start of the last row.
template <typename When>
cudaError_t Linear(DriverRef driver, cudaArray_const_t array, size_t x, size_t y, const void* pointer, size_t count, CUmemorytype type,
                   bool to_array, When when) noexcept {
  size_t row = 0;
  if (const cudaError_t error = RowBytes(driver, array, &row)) return error;
  if (row == 0 || x >= row) return cudaErrorInvalidValue;
  const char* at = static_cast<const char*>(pointer);
  while (count != 0) {
    const bool part = x != 0 || count < row;
    const size_t width = part ? (count < row - x ? count : row - x) : row;
    const size_t height = part ? 1 : count / row;
    const Side there = ArraySide(array, x, y);
    const Side here = PointerSide(type, at, width);
    const cudaError_t error = to_array ? Rows(driver, there, here, width, height, when) : Rows(driver, here, there, width, height, when);
    if (error != cudaSuccess) return error;
    at += width * height;
    count -= width * height;
    y += height;
    x = 0;
  }
  return cudaSuccess;
}

// Copies one linear range to another, row by row of either side.
cudaError_t BetweenArrays(DriverRef driver, cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x, size_t from_y,
                          size_t count) noexcept {
  size_t to_row = 0;
  size_t from_row = 0;
  if (const cudaError_t error = RowBytes(driver, to, &to_row)) return error;
  if (const cudaError_t error = RowBytes(driver, from, &from_row)) return error;
  if (to_x >= to_row || from_x >= from_row) return cudaErrorInvalidValue;
  while (count != 0) {
    size_t width = count < to_row - to_x ? count : to_row - to_x;
    if (width > from_row - from_x) width = from_row - from_x;
    const cudaError_t error = Rows(driver, ArraySide(to, to_x, to_y), ArraySide(from, from_x, from_y), width, 1, Now());
    if (error != cudaSuccess) return error;
    count -= width;
    to_x += width;
    from_x += width;
    to_y += to_x == to_row ? 1 : 0;
    from_y += from_x == from_row ? 1 : 0;
    to_x %= to_row;
    from_x %= from_row;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t Memcpy2DToArray(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width,
                            size_t height, enum cudaMemcpyKind kind) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, ArraySide(dst, wOffset, hOffset), PointerSide(SourceType(kind), src, spitch), width, height, Now());
}

cudaError_t Memcpy2DToArrayAsync(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch,
                                 size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, ArraySide(dst, wOffset, hOffset), PointerSide(SourceType(kind), src, spitch), width, height, stream);
}

cudaError_t Memcpy2DFromArray(DriverRef driver, void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                              size_t width, size_t height, enum cudaMemcpyKind kind) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, PointerSide(DestinationType(kind), dst, dpitch), ArraySide(src, wOffset, hOffset), width, height, Now());
}

cudaError_t Memcpy2DFromArrayAsync(DriverRef driver, void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                   size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, PointerSide(DestinationType(kind), dst, dpitch), ArraySide(src, wOffset, hOffset), width, height, stream);
}

cudaError_t Memcpy2DArrayToArray(DriverRef driver, cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                 size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height, enum cudaMemcpyKind kind) noexcept {
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, ArraySide(dst, wOffsetDst, hOffsetDst), ArraySide(src, wOffsetSrc, hOffsetSrc), width, height, Now());
}

cudaError_t MemcpyArrayToArray(DriverRef driver, cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                               size_t wOffsetSrc, size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind) noexcept {
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  return BetweenArrays(driver, dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count);
}

cudaError_t MemcpyToArray(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                          enum cudaMemcpyKind kind) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, dst, wOffset, hOffset, src, count, SourceType(kind), true, Now());
}

cudaError_t MemcpyToArrayAsync(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                               enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, dst, wOffset, hOffset, src, count, SourceType(kind), true, stream);
}

cudaError_t MemcpyFromArray(DriverRef driver, void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                            enum cudaMemcpyKind kind) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, src, wOffset, hOffset, dst, count, DestinationType(kind), false, Now());
}

cudaError_t MemcpyFromArrayAsync(DriverRef driver, void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                 enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, src, wOffset, hOffset, dst, count, DestinationType(kind), false, stream);
}

}  // namespace cuaudit::cudart
