// SPDX-License-Identifier: MIT
#include "faults/cudart/copy_plan.h"
#include "faults/cudart/registry.h"
#include "faults/cudart/symbols.h"

namespace cuaudit::cudart {

cudaError_t Locate(DriverRef driver, const void* symbol, size_t offset, size_t count, CUdeviceptr* address) noexcept {
  Variable* const variable = FindVariable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  size_t bytes = 0;
  if (const cudaError_t error = AddressOf(driver, variable, address, &bytes)) return error;
  if (offset > bytes || count > bytes - offset) return cudaErrorInvalidValue;
  *address += offset;
  return cudaSuccess;
}

cudaError_t MemcpyToSymbol(DriverRef driver, const void* symbol, const void* src, size_t count, size_t offset,
                           enum cudaMemcpyKind kind) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  if (const cudaError_t error = Locate(driver, symbol, offset, count, &address)) return error;
  return Memcpy(driver, Pointer(address), src, count, kind);
}

cudaError_t MemcpyToSymbolAsync(DriverRef driver, const void* symbol, const void* src, size_t count, size_t offset,
                                enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  if (const cudaError_t error = Locate(driver, symbol, offset, count, &address)) return error;
  return MemcpyAsync(driver, Pointer(address), src, count, kind, stream);
}

cudaError_t MemcpyFromSymbol(DriverRef driver, void* dst, const void* symbol, size_t count, size_t offset,
                             enum cudaMemcpyKind kind) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  if (const cudaError_t error = Locate(driver, symbol, offset, count, &address)) return error;
  return Memcpy(driver, dst, Pointer(address), count, kind);
}

cudaError_t MemcpyFromSymbolAsync(DriverRef driver, void* dst, const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                                  cudaStream_t stream) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  if (const cudaError_t error = Locate(driver, symbol, offset, count, &address)) return error;
  return MemcpyAsync(driver, dst, Pointer(address), count, kind, stream);
}

cudaError_t GetSymbolAddress(DriverRef driver, void** devPtr, const void* symbol) noexcept {
  if (devPtr == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const cudaError_t error = Locate(driver, symbol, 0, 0, &address);
  if (error == cudaSuccess) *devPtr = Pointer(address);
  return error;
}

cudaError_t GetSymbolSize(DriverRef driver, size_t* size, const void* symbol) noexcept {
  if (size == nullptr) return cudaErrorInvalidValue;
  Variable* const variable = FindVariable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  CUdeviceptr address = 0;
  return AddressOf(driver, variable, &address, size);
}

}  // namespace cuaudit::cudart
