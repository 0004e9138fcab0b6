// SPDX-License-Identifier: MIT
// Copies and fills.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

constexpr CUmemorytype kHost = CU_MEMORYTYPE_HOST;
constexpr CUmemorytype kDevice = CU_MEMORYTYPE_DEVICE;
constexpr CUmemorytype kAny = CU_MEMORYTYPE_UNIFIED;

std::uint64_t Address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// An upload of pageable memory stages the client's bytes and returns; a large upload, or a download, waits. An H200 did not wait for 1 MiB
// and waited for 4 MiB.
constexpr std::uint64_t kStaged = std::uint64_t{1} << 20;

bool IsDeviceOnly(const World& world, std::uint64_t address) {
  const Range* const range = world.ranges.Find(address);
  return range != nullptr && !range->host_visible;
}

// A copy within device memory does not wait, whatever its name says.
bool StaysOnDevice(const World& world, const CUDA_MEMCPY3D& copy) {
  const auto stays = [&](CUmemorytype type, CUdeviceptr address) {
    return type == CU_MEMORYTYPE_ARRAY || (type != CU_MEMORYTYPE_HOST && IsDeviceOnly(world, address));
  };
  return stays(copy.srcMemoryType, copy.srcDevice) && stays(copy.dstMemoryType, copy.dstDevice);
}

bool IsStaged(const World& world, const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.srcMemoryType == CU_MEMORYTYPE_DEVICE) return false;
  if (copy.dstMemoryType == CU_MEMORYTYPE_HOST || copy.Height > kStaged || copy.Depth > kStaged) return false;
  if (copy.WidthInBytes * copy.Height * copy.Depth > kStaged) return false;
  const bool known = copy.dstMemoryType == CU_MEMORYTYPE_ARRAY || world.ranges.Find(copy.dstDevice) != nullptr;
  return known && world.ranges.Find(copy.srcMemoryType == CU_MEMORYTYPE_HOST ? Address(copy.srcHost) : copy.srcDevice) == nullptr;
}

CUresult QueueStaged(World& world, Stream* stream, CUDA_MEMCPY3D copy) {
  const std::size_t bytes = copy.WidthInBytes * copy.Height * copy.Depth;
  void* const staging = world.arena.Allocate(bytes);
  if (staging == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUDA_MEMCPY3D stage = copy;
  stage.dstXInBytes = stage.dstY = stage.dstZ = 0;
  stage.dstMemoryType = kHost;
  stage.dstHost = staging;
  stage.dstPitch = copy.WidthInBytes;
  stage.dstHeight = copy.Height;
  (void)RunCopy(world, stage);
  copy.srcXInBytes = copy.srcY = copy.srcZ = 0;
  copy.srcMemoryType = kHost;
  copy.srcHost = staging;
  copy.srcPitch = copy.WidthInBytes;
  copy.srcHeight = copy.Height;
  Work work;
  work.type = WorkType::Copy;
  work.copy = copy;
  const CUresult result = Enqueue(world, stream, work, staging, bytes);
  if (result != CUDA_SUCCESS) world.arena.Free(staging, bytes);
  return result;
}

// Contexts whose work a copy through the default stream comes after, and whose later work comes after it; null: no others.
struct Sides {
  Context* to = nullptr;
  Context* from = nullptr;
};

// The same holds for a copy between the memories of two devices, whatever call makes it.
Sides SidesOf(const World& world, const CUDA_MEMCPY3D& copy) {
  const auto owner = [&](CUmemorytype type, CUdeviceptr address, CUarray handle) -> Context* {
    const Array* const array = type == CU_MEMORYTYPE_ARRAY ? world.Find<Array>(handle) : nullptr;
    if (type == CU_MEMORYTYPE_ARRAY) return array == nullptr ? nullptr : array->owner;
    const Range* const range = type == CU_MEMORYTYPE_HOST ? nullptr : world.ranges.Find(address);
    return range == nullptr || range->host_visible ? nullptr : range->owner;
  };
  const Sides sides{owner(copy.dstMemoryType, copy.dstDevice, copy.dstArray), owner(copy.srcMemoryType, copy.srcDevice, copy.srcArray)};
  const bool two = sides.to != nullptr && sides.from != nullptr && sides.to->device != sides.from->device;
  return two ? sides : Sides();
}

CUresult ForSides(World& world, Stream* stream, const Sides& sides, CUresult (*each)(World&, Stream*, Context*) noexcept) {
  Context* const own = stream->owner;
  if (sides.to == nullptr || (sides.to == own && sides.from == own)) return CUDA_SUCCESS;
  CUresult result = each(world, stream, own);
  if (result == CUDA_SUCCESS && sides.to != own) result = each(world, stream, sides.to);
  if (result == CUDA_SUCCESS && sides.from != own && sides.from != sides.to) result = each(world, stream, sides.from);
  return result;
}

CUresult RefuseWhileCaptured(World& world, Stream*, Context* context) noexcept { return RefuseImplicit(world, context); }

CUresult SubmitBetween(Call& call, Stream* stream, const Sides& sides, const Work& work) {
  CUresult result = call.world.captures != 0 ? ForSides(call.world, stream, sides, RefuseWhileCaptured) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) result = ForSides(call.world, stream, sides, FollowContext);
  if (result == CUDA_SUCCESS) result = Submit(call, stream, CU_GRAPH_NODE_TYPE_MEMCPY, work);
  return result == CUDA_SUCCESS ? ForSides(call.world, stream, sides, PrecedeContext) : result;
}

// A copy that was refused: the genuine driver follows the handles of its arrays, also of those that ended with their context.
void FollowArrays(Call& call, const CUDA_MEMCPY3D& copy) {
  const auto is_gone = [&](CUmemorytype type, CUarray handle) {
    return type == CU_MEMORYTYPE_ARRAY && handle != nullptr && call.world.Find<Array>(handle) == nullptr;
  };
  if (is_gone(copy.srcMemoryType, copy.srcArray) || is_gone(copy.dstMemoryType, copy.dstArray)) call.undefined = true;
}

CUresult Queue(Call& call, const CUDA_MEMCPY3D& copy, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  result = CheckCopy(call.world, copy, stream->capture != nullptr);
  if (result == CUDA_ERROR_INVALID_HANDLE && stream->capture == nullptr) FollowArrays(call, copy);
  if (result != CUDA_SUCCESS || copy.WidthInBytes == 0) return result;
  if (stream->capture == nullptr && IsStaged(call.world, copy)) {
    result = stream->legacy ? RefuseImplicit(call.world, stream->owner) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = QueueStaged(call.world, stream, copy);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;  // without room for a copy it waits
  }
  Work work;
  work.type = WorkType::Copy;
  work.copy = copy;
  result = SubmitBetween(call, stream, stream->legacy ? SidesOf(call.world, copy) : Sides(), work);
  // The driver is done with pageable host memory when the call returns.
  if (result == CUDA_SUCCESS && stream->capture == nullptr && TouchesPageable(call.world, copy)) {
    const std::uint64_t context = call.context->handle;
    Drain(call, stream);
    return StateAfterWait(call.world, context);
  }
  return result;
}

// Synchronous copies go through the default stream and wait. A capture tolerates them unless it is of a blocking stream.
CUresult Now(Call& call, const CUDA_MEMCPY3D& copy, Sides sides = {}) {
  CUresult result = CheckCopy(call.world, copy);
  if (result == CUDA_ERROR_INVALID_HANDLE) FollowArrays(call, copy);
  if (result != CUDA_SUCCESS) return result;
  if (call.world.captures != 0 && (result = RefuseImplicit(call.world, call.context)) != CUDA_SUCCESS) return result;
  Stream* const stream = FindStream(call, nullptr, &result);
  if (stream == nullptr) return result;
  Work work;
  work.type = WorkType::Copy;
  work.copy = copy;
  if (call.world.pending == 0 && !StaysOnDevice(call.world, copy)) {
    PerformAtOnce(call, stream, work);
    return call.context->sticky;
  }
  if (sides.to == nullptr) sides = SidesOf(call.world, copy);
  if ((result = SubmitBetween(call, stream, sides, work)) != CUDA_SUCCESS) return result;
  if (StaysOnDevice(call.world, copy)) return CUDA_SUCCESS;
  const std::uint64_t context = call.context->handle;
  Drain(call, stream);
  return StateAfterWait(call.world, context);
}

// An H200 takes none for the current one.
bool IsContext(const Call& call, CUcontext context) { return context == nullptr || call.world.Find<Context>(context) != nullptr; }

Context* ContextOf(const Call& call, CUcontext context) { return context == nullptr ? call.context : call.world.Find<Context>(context); }

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
  return Now(call, LinearCopy(kDevice, to, kHost, Address(from), bytes));
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
  if (!IsContext(call, to_context) || !IsContext(call, from_context)) return CUDA_ERROR_INVALID_CONTEXT;
  return Now(call, LinearCopy(kDevice, to, kDevice, from, bytes), {ContextOf(call, to_context), ContextOf(call, from_context)});
}
CUresult api::MemcpyPeerAsync(Call& call, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t bytes,
                              CUstream stream) {
  if (!IsContext(call, to_context) || !IsContext(call, from_context)) return CUDA_ERROR_INVALID_CONTEXT;
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
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsContext(call, copy->dstContext) || !IsContext(call, copy->srcContext)) return Now(call, Widen(*copy));
  return Now(call, Widen(*copy), {ContextOf(call, copy->dstContext), ContextOf(call, copy->srcContext)});
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

namespace {

CUDA_MEMSET_NODE_PARAMS Fill(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element, std::size_t width, std::size_t height) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = to;
  fill.pitch = pitch;
  fill.value = value;
  fill.elementSize = element;
  fill.width = width;
  fill.height = height;
  return fill;
}

CUresult Queue(Call& call, const CUDA_MEMSET_NODE_PARAMS& fill, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  // A capture takes a fill of address 0; whoever runs the graph fails.
  const bool nowhere = stream->capture != nullptr && fill.dst == 0 && fill.height == 1;
  result = nowhere ? CUDA_SUCCESS : CheckFill(call.world, fill, stream->capture != nullptr);
  if (result != CUDA_SUCCESS || fill.width == 0 || fill.height == 0) return result;
  Work work;
  work.type = WorkType::Fill;
  work.fill = fill;
  return Submit(call, stream, CU_GRAPH_NODE_TYPE_MEMSET, work);
}

// Without "Async" a memset of device memory still does not wait for the device: it is queued on the default stream. One of pinned host
// or managed memory does.
CUresult Default(Call& call, const CUDA_MEMSET_NODE_PARAMS& fill) {
  const CUresult result = Queue(call, fill, nullptr);
  const Range* const range = call.world.ranges.Find(fill.dst);
  if (result != CUDA_SUCCESS || range == nullptr || !range->host_visible) return result;
  const std::uint64_t context = call.context->handle;
  CUresult ignored = CUDA_SUCCESS;
  if (Stream* const stream = FindStream(call, nullptr, &ignored)) Drain(call, stream);
  return StateAfterWait(call.world, context);
}

}  // namespace

CUresult api::MemsetD8(Call& call, CUdeviceptr to, unsigned char value, std::size_t count) {
  return Default(call, Fill(to, 0, value, 1, count, 1));
}
CUresult api::MemsetD16(Call& call, CUdeviceptr to, unsigned short value, std::size_t count) {
  return Default(call, Fill(to, 0, value, 2, count, 1));
}
CUresult api::MemsetD32(Call& call, CUdeviceptr to, unsigned int value, std::size_t count) {
  return Default(call, Fill(to, 0, value, 4, count, 1));
}
CUresult api::MemsetD8Async(Call& call, CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return Queue(call, Fill(to, 0, value, 1, count, 1), stream);
}
CUresult api::MemsetD16Async(Call& call, CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return Queue(call, Fill(to, 0, value, 2, count, 1), stream);
}
CUresult api::MemsetD32Async(Call& call, CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream) {
  return Queue(call, Fill(to, 0, value, 4, count, 1), stream);
}
CUresult api::MemsetD2D8(Call& call, CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height) {
  return Default(call, Fill(to, pitch, value, 1, width, height));
}
CUresult api::MemsetD2D16(Call& call, CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height) {
  return Default(call, Fill(to, pitch, value, 2, width, height));
}
CUresult api::MemsetD2D32(Call& call, CUdeviceptr to, std::size_t pitch, unsigned int value, std::size_t width, std::size_t height) {
  return Default(call, Fill(to, pitch, value, 4, width, height));
}
CUresult api::MemsetD2D8Async(Call& call, CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,
                              CUstream stream) {
  return Queue(call, Fill(to, pitch, value, 1, width, height), stream);
}
CUresult api::MemsetD2D16Async(Call& call, CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height,
                               CUstream stream) {
  return Queue(call, Fill(to, pitch, value, 2, width, height), stream);
}
CUresult api::MemsetD2D32Async(Call& call, CUdeviceptr to, std::size_t pitch, unsigned int value, std::size_t width, std::size_t height,
                               CUstream stream) {
  return Queue(call, Fill(to, pitch, value, 4, width, height), stream);
}

}  // namespace cuaudit::sim
