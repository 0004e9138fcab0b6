// SPDX-License-Identifier: MIT
#include "faults/cudart/calls.h"

namespace cuaudit::cudart {
namespace {

unsigned char Byte(int value) noexcept { return static_cast<unsigned char>(value); }

// Slices without a gap between them form one rectangle.
template <typename Fill>
cudaError_t FillSlices(const cudaPitchedPtr& to, const cudaExtent& extent, Fill fill) noexcept {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  if (to.ysize == extent.height || extent.depth == 1) return From(fill(Address(to.ptr), extent.height * extent.depth));
  for (size_t z = 0; z < extent.depth; ++z) {
    if (const CUresult result = fill(Address(to.ptr) + z * to.pitch * to.ysize, extent.height)) return From(result);
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t Memset(DriverRef driver, void* devPtr, int value, size_t count) noexcept {
  return count == 0 ? cudaSuccess : From(driver.MemsetD8(Address(devPtr), Byte(value), count));
}

cudaError_t MemsetAsync(DriverRef driver, void* devPtr, int value, size_t count, cudaStream_t stream) noexcept {
  return count == 0 ? cudaSuccess : From(driver.MemsetD8Async(Address(devPtr), Byte(value), count, stream));
}

cudaError_t Memset2D(DriverRef driver, void* devPtr, size_t pitch, int value, size_t width, size_t height) noexcept {
  if (width == 0 || height == 0) return cudaSuccess;
  return From(driver.MemsetD2D8(Address(devPtr), pitch, Byte(value), width, height));
}

cudaError_t Memset2DAsync(DriverRef driver, void* devPtr, size_t pitch, int value, size_t width, size_t height,
                          cudaStream_t stream) noexcept {
  if (width == 0 || height == 0) return cudaSuccess;
  return From(driver.MemsetD2D8Async(Address(devPtr), pitch, Byte(value), width, height, stream));
}

cudaError_t Memset3D(DriverRef driver, struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent) noexcept {
  return FillSlices(pitchedDevPtr, extent, [&](CUdeviceptr address, size_t rows) noexcept {
    return driver.MemsetD2D8(address, pitchedDevPtr.pitch, Byte(value), extent.width, rows);
  });
}

cudaError_t Memset3DAsync(DriverRef driver, struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                          cudaStream_t stream) noexcept {
  return FillSlices(pitchedDevPtr, extent, [&](CUdeviceptr address, size_t rows) noexcept {
    return driver.MemsetD2D8Async(address, pitchedDevPtr.pitch, Byte(value), extent.width, rows, stream);
  });
}

}  // namespace cuaudit::cudart
