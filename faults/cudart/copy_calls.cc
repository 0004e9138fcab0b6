// SPDX-License-Identifier: MIT

#include "faults/cudart/descriptions.h"
#include "faults/cudart/process.h"
#include "faults/cudart/registry.h"

namespace cuaudit::cudart {
namespace {

cudaError_t Contexts(DriverRef driver, int to, int from, CUcontext* to_context, CUcontext* from_context) noexcept {
  if (!IsDevice(to) || !IsDevice(from)) return cudaErrorInvalidDevice;
  if (const cudaError_t error = RetainDevice(driver, to, to_context)) return error;
  return RetainDevice(driver, from, from_context);
}

cudaError_t PlanPeer(DriverRef driver, const cudaMemcpy3DPeerParms* p, CUDA_MEMCPY3D_PEER* peer) noexcept {
  if (p == nullptr) return cudaErrorInvalidValue;
  const cudaMemcpy3DParms one{p->srcArray, p->srcPos, p->srcPtr, p->dstArray, p->dstPos, p->dstPtr, p->extent, cudaMemcpyDeviceToDevice};
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = Plan3D(driver, one, &plan)) return error;
  *peer = {};
  if (const cudaError_t error = Contexts(driver, p->dstDevice, p->srcDevice, &peer->dstContext, &peer->srcContext)) return error;
  peer->srcXInBytes = plan.srcXInBytes;
  peer->srcY = plan.srcY;
  peer->srcZ = plan.srcZ;
  peer->srcMemoryType = plan.srcMemoryType;
  peer->srcDevice = plan.srcDevice;
  peer->srcArray = plan.srcArray;
  peer->srcPitch = plan.srcPitch;
  peer->srcHeight = plan.srcHeight;
  peer->dstXInBytes = plan.dstXInBytes;
  peer->dstY = plan.dstY;
  peer->dstZ = plan.dstZ;
  peer->dstMemoryType = plan.dstMemoryType;
  peer->dstDevice = plan.dstDevice;
  peer->dstArray = plan.dstArray;
  peer->dstPitch = plan.dstPitch;
  peer->dstHeight = plan.dstHeight;
  peer->WidthInBytes = plan.WidthInBytes;
  peer->Height = plan.Height;
  peer->Depth = plan.Depth;
  return cudaSuccess;
}

}  // namespace

cudaError_t Memcpy(DriverRef driver, void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) noexcept {
  if (count == 0) return cudaSuccess;
  if (!IsKind(kind)) return cudaErrorInvalidMemcpyDirection;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return From(driver.MemcpyHtoD(Address(dst), src, count));
    case cudaMemcpyDeviceToHost:
      return From(driver.MemcpyDtoH(dst, Address(src), count));
    case cudaMemcpyDeviceToDevice:
      return From(driver.MemcpyDtoD(Address(dst), Address(src), count));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      break;
  }
  return From(driver.Memcpy(Address(dst), Address(src), count));
}

cudaError_t MemcpyAsync(DriverRef driver, void* dst, const void* src, size_t count, enum cudaMemcpyKind kind,
                        cudaStream_t stream) noexcept {
  if (count == 0) return cudaSuccess;
  if (!IsKind(kind)) return cudaErrorInvalidMemcpyDirection;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return From(driver.MemcpyHtoDAsync(Address(dst), src, count, stream));
    case cudaMemcpyDeviceToHost:
      return From(driver.MemcpyDtoHAsync(dst, Address(src), count, stream));
    case cudaMemcpyDeviceToDevice:
      return From(driver.MemcpyDtoDAsync(Address(dst), Address(src), count, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      break;
  }
  return From(driver.MemcpyAsync(Address(dst), Address(src), count, stream));
}

cudaError_t MemcpyPeer(DriverRef driver, void* dst, int dstDevice, const void* src, int srcDevice, size_t count) noexcept {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  if (const cudaError_t error = Contexts(driver, dstDevice, srcDevice, &to, &from)) return error;
  return From(driver.MemcpyPeer(Address(dst), to, Address(src), from, count));
}

cudaError_t MemcpyPeerAsync(DriverRef driver, void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                            cudaStream_t stream) noexcept {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  if (const cudaError_t error = Contexts(driver, dstDevice, srcDevice, &to, &from)) return error;
  return From(driver.MemcpyPeerAsync(Address(dst), to, Address(src), from, count, stream));
}

cudaError_t Memcpy2D(DriverRef driver, void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                     enum cudaMemcpyKind kind) noexcept {
  if (!IsKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width == 0 || height == 0) return cudaSuccess;
  CUDA_MEMCPY2D plan;
  const cudaError_t error =
      Plan2D(PointerSide(DestinationType(kind), dst, dpitch), PointerSide(SourceType(kind), src, spitch), width, height, &plan);
  if (error != cudaSuccess) return error;
  return From(driver.Memcpy2DUnaligned(&plan));
}

cudaError_t Memcpy2DAsync(DriverRef driver, void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                          enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!IsKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width == 0 || height == 0) return cudaSuccess;
  CUDA_MEMCPY2D plan;
  const cudaError_t error =
      Plan2D(PointerSide(DestinationType(kind), dst, dpitch), PointerSide(SourceType(kind), src, spitch), width, height, &plan);
  if (error != cudaSuccess) return error;
  return From(driver.Memcpy2DAsync(&plan, stream));
}

cudaError_t Memcpy3D(DriverRef driver, const struct cudaMemcpy3DParms* p) noexcept {
  if (p == nullptr) return cudaErrorInvalidValue;
  if (IsEmpty(p->extent)) return cudaSuccess;
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = Plan3D(driver, *p, &plan)) return error;
  return From(driver.Memcpy3D(&plan));
}

cudaError_t Memcpy3DAsync(DriverRef driver, const struct cudaMemcpy3DParms* p, cudaStream_t stream) noexcept {
  if (p == nullptr) return cudaErrorInvalidValue;
  if (IsEmpty(p->extent)) return cudaSuccess;
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = Plan3D(driver, *p, &plan)) return error;
  return From(driver.Memcpy3DAsync(&plan, stream));
}

cudaError_t Memcpy3DPeer(DriverRef driver, const struct cudaMemcpy3DPeerParms* p) noexcept {
  CUDA_MEMCPY3D_PEER peer;
  if (const cudaError_t error = PlanPeer(driver, p, &peer)) return error;
  return From(driver.Memcpy3DPeer(&peer));
}

cudaError_t Memcpy3DPeerAsync(DriverRef driver, const struct cudaMemcpy3DPeerParms* p, cudaStream_t stream) noexcept {
  CUDA_MEMCPY3D_PEER peer;
  if (const cudaError_t error = PlanPeer(driver, p, &peer)) return error;
  return From(driver.Memcpy3DPeerAsync(&peer, stream));
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
