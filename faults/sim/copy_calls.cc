// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/capture.h"
#include "faults/sim/copy.h"
#include "faults/sim/executor.h"

namespace cuaudit::sim {
namespace {

constexpr CUmemorytype kHost = CU_MEMORYTYPE_HOST;
constexpr CUmemorytype kDevice = CU_MEMORYTYPE_DEVICE;
constexpr CUmemorytype kAny = CU_MEMORYTYPE_UNIFIED;

std::uint64_t Address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

CUresult Queue(Call& call, const CUDA_MEMCPY3D& copy, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  result = CheckCopy(call.world, copy);
  if (result != CUDA_SUCCESS || copy.WidthInBytes == 0) return result;
  Work work;
  work.type = WorkType::Copy;
  work.copy = copy;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_MEMCPY, work);
  // The driver is done with pageable host memory when the call returns.
  if (result == CUDA_SUCCESS && stream->capture == nullptr && TouchesPageable(call.world, copy)) {
    Drain(call, stream);
    return call.context->sticky;
  }
  return result;
}

// Synchronous copies go through the default stream and wait. A capture tolerates cuMemcpyHtoD of pageable memory.
CUresult Now(Call& call, const CUDA_MEMCPY3D& copy, bool upload = false) {
  CUresult result = CheckCopy(call.world, copy);
  if (result != CUDA_SUCCESS) return result;
  if (call.world.captures != 0) {
    if ((result = RefuseImplicit(call.world, call.context)) != CUDA_SUCCESS) return result;
    const bool harmless = upload && TouchesPageable(call.world, copy);
    if (!harmless && (result = RefuseUnsafe(call.world, call.thread)) != CUDA_SUCCESS) return result;
  }
  if (call.world.pending == 0) return RunCopy(call.world, copy);
  Stream* const stream = FindStream(call, nullptr, &result);
  if (stream == nullptr) return result;
  Work work;
  work.type = WorkType::Copy;
  work.copy = copy;
  if ((result = Submit(call, stream, CU_GRAPH_NODE_TYPE_MEMCPY, work)) != CUDA_SUCCESS) return result;
  Drain(call, stream);
  return call.context->sticky;
}

CUDA_MEMCPY3D Widen(const CUDA_MEMCPY2D& from) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = from.srcXInBytes;
  copy.srcY = from.srcY;
  copy.srcMemoryType = from.srcMemoryType;
  copy.srcHost = from.srcHost;
  copy.srcDevice = from.srcDevice;
  copy.srcArray = from.srcArray;
  copy.srcPitch = from.srcPitch;
  copy.dstXInBytes = from.dstXInBytes;
  copy.dstY = from.dstY;
  copy.dstMemoryType = from.dstMemoryType;
  copy.dstHost = from.dstHost;
  copy.dstDevice = from.dstDevice;
  copy.dstArray = from.dstArray;
  copy.dstPitch = from.dstPitch;
  copy.WidthInBytes = from.WidthInBytes;
  copy.Height = from.Height;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D Widen(const CUDA_MEMCPY3D_PEER& from) {
  CUDA_MEMCPY3D copy{};
  static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER));  // contexts stand where the other has reserved words
  std::memcpy(&copy, &from, sizeof(copy));
  copy.reserved0 = nullptr;
  copy.reserved1 = nullptr;
  return copy;
}

CUDA_MEMCPY3D FromArray(CUDA_MEMCPY3D copy, CUarray array, std::size_t offset) {
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = offset;
  return copy;
}

CUDA_MEMCPY3D ToArray(CUDA_MEMCPY3D copy, CUarray array, std::size_t offset) {
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.dstXInBytes = offset;
  return copy;
}

}  // namespace

CUresult api::Memcpy(Call& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return Now(call, LinearCopy(kAny, to, kAny, from, bytes));
}
CUresult api::MemcpyHtoD(Call& call, CUdeviceptr to, const void* from, std::size_t bytes) {
  return Now(call, LinearCopy(kDevice, to, kHost, Address(from), bytes), true);
}
CUresult api::MemcpyDtoH(Call& call, void* to, CUdeviceptr from, std::size_t bytes) {
  return Now(call, LinearCopy(kHost, Address(to), kDevice, from, bytes));
}
CUresult api::MemcpyDtoD(Call& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return Now(call, LinearCopy(kDevice, to, kDevice, from, bytes));
}
CUresult api::MemcpyAsync(Call& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return Queue(call, LinearCopy(kAny, to, kAny, from, bytes), stream);
}
CUresult api::MemcpyHtoDAsync(Call& call, CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return Queue(call, LinearCopy(kDevice, to, kHost, Address(from), bytes), stream);
}
CUresult api::MemcpyDtoHAsync(Call& call, void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return Queue(call, LinearCopy(kHost, Address(to), kDevice, from, bytes), stream);
}
CUresult api::MemcpyDtoDAsync(Call& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return Queue(call, LinearCopy(kDevice, to, kDevice, from, bytes), stream);
}

CUresult api::MemcpyPeer(Call& call, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes) {
  if (call.world.Find<Context>(to_context) == nullptr || call.world.Find<Context>(from_context) == nullptr)
    return CUDA_ERROR_INVALID_CONTEXT;
  return Now(call, LinearCopy(kDevice, to, kDevice, from, bytes));
}
CUresult api::MemcpyPeerAsync(Call& call, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes,
                              CUstream stream) {
  if (call.world.Find<Context>(to_context) == nullptr || call.world.Find<Context>(from_context) == nullptr)
    return CUDA_ERROR_INVALID_CONTEXT;
  return Queue(call, LinearCopy(kDevice, to, kDevice, from, bytes), stream);
}

CUresult api::Memcpy2D(Call& call, const CUDA_MEMCPY2D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Now(call, Widen(*copy));
}
CUresult api::Memcpy2DAsync(Call& call, const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Queue(call, Widen(*copy), stream);
}
CUresult api::Memcpy3D(Call& call, const CUDA_MEMCPY3D* copy) { return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Now(call, *copy); }
CUresult api::Memcpy3DAsync(Call& call, const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Queue(call, *copy, stream);
}
CUresult api::Memcpy3DPeer(Call& call, const CUDA_MEMCPY3D_PEER* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Now(call, Widen(*copy));
}
CUresult api::Memcpy3DPeerAsync(Call& call, const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Queue(call, Widen(*copy), stream);
}

CUresult api::MemcpyAtoH(Call& call, void* to, CUarray from, std::size_t offset, std::size_t bytes) {
  return Now(call, FromArray(LinearCopy(kHost, Address(to), kHost, 0, bytes), from, offset));
}
CUresult api::MemcpyAtoHAsync(Call& call, void* to, CUarray from, std::size_t offset, std::size_t bytes, CUstream stream) {
  return Queue(call, FromArray(LinearCopy(kHost, Address(to), kHost, 0, bytes), from, offset), stream);
}
CUresult api::MemcpyHtoA(Call& call, CUarray to, std::size_t offset, const void* from, std::size_t bytes) {
  return Now(call, ToArray(LinearCopy(kHost, 0, kHost, Address(from), bytes), to, offset));
}
CUresult api::MemcpyHtoAAsync(Call& call, CUarray to, std::size_t offset, const void* from, std::size_t bytes, CUstream stream) {
  return Queue(call, ToArray(LinearCopy(kHost, 0, kHost, Address(from), bytes), to, offset), stream);
}
CUresult api::MemcpyAtoD(Call& call, CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes) {
  return Now(call, FromArray(LinearCopy(kDevice, to, kDevice, 0, bytes), from, offset));
}
CUresult api::MemcpyDtoA(Call& call, CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes) {
  return Now(call, ToArray(LinearCopy(kDevice, 0, kDevice, from, bytes), to, offset));
}
CUresult api::MemcpyAtoA(Call& call, CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset, std::size_t bytes) {
  return Now(call, ToArray(FromArray(LinearCopy(kDevice, 0, kDevice, 0, bytes), from, from_offset), to, to_offset));
}

}  // namespace cuaudit::sim
