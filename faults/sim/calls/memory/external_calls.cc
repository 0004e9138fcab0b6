// SPDX-License-Identifier: MIT
// Memory that comes from elsewhere: external memory, CUDA IPC, graphics resources.
#define __CUDA_API_VERSION_INTERNAL
#include <unistd.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/array.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/stream/schedule.h"

// The memory that another interface would export is, between simulated drivers, exported physical memory.
namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kLeastAlignment = 4096;

// Bytes of the external memory at device addresses of their own, which keep it alive.
Range* MapPart(Call& call, External* external, std::uint64_t offset, std::uint64_t bytes, Kind kind) {
  if (bytes == 0 || offset > external->backing->size || bytes > external->backing->size - offset) return nullptr;
  Range* const range = TakeElsewhere(call.world, call.context, bytes, kind, external->backing->bytes + offset);
  if (range == nullptr) return nullptr;
  range->external = external;
  ++external->mappings;
  return range;
}

}  // namespace

CUresult api::ImportExternalMemory(Call& call, CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* from) {
  if (out == nullptr || from == nullptr || from->size == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((from->flags & ~static_cast<unsigned>(CUDA_EXTERNAL_MEMORY_DEDICATED)) != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(from->type)) {
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD:
      break;
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  CUmemAllocationProp properties{};
  Backing* const backing = ImportBacking(call.world, from->handle.fd, &properties);
  if (backing == nullptr) {
    close(from->handle.fd);  // as a device does with what is no memory
    return CUDA_ERROR_UNKNOWN;
  }
  External* const external = call.world.Make<External>(call.context);
  if (external == nullptr) {
    DropBacking(call.world, backing);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  external->backing = backing;
  close(from->handle.fd);  // an imported descriptor is the driver's
  *out = ToHandle<CUexternalMemory>(external);
  return CUDA_SUCCESS;
}

CUresult api::DestroyExternalMemory(Call& call, CUexternalMemory handle) {
  External* const external = call.world.Find<External>(handle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (external == nullptr && call.world.DiedWithContext(handle) && !call.IsLost(handle))
    return CUDA_SUCCESS;  // outlives.released_external_memory
  if (external == nullptr) return call.Gone(handle);
  const CUresult result = Borrow(call, external->owner);
  if (result != CUDA_SUCCESS) return result;
  FreeExternal(call.world, external);
  return CUDA_SUCCESS;
}

CUresult api::ExternalMemoryGetMappedBuffer(Call& call, CUdeviceptr* out, CUexternalMemory handle,
                                            const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* part) {
  if (out == nullptr || part == nullptr || part->flags != 0 || part->size == 0 || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  External* const external = call.world.Find<External>(handle);
  if (external == nullptr) return call.Gone(handle);
  const CUresult result = Borrow(call, external->owner);
  if (result != CUDA_SUCCESS) return result;
  const Range* const range = MapPart(call, external, part->offset, part->size, Kind::DeviceMemory);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = range->base;
  return CUDA_SUCCESS;
}

CUresult api::ExternalMemoryGetMappedMipmappedArray(Call& call, CUmipmappedArray* out, CUexternalMemory handle,
                                                    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* part) {
  External* const external = call.world.Find<External>(handle);
  if (external == nullptr) return call.Gone(handle);
  Levels levels;
  if (out == nullptr || part == nullptr || part->offset % kLeastAlignment != 0 || !ShapeLevels(part->arrayDesc, part->numLevels, &levels))
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Borrow(call, external->owner);
  if (result != CUDA_SUCCESS) return result;
  Range* const range = MapPart(call, external, part->offset, levels.bytes, Kind::None);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const MipmappedArray* const array = MakeLevels(call.world, call.context, part->arrayDesc, levels, range);
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmipmappedArray>(array);
  return CUDA_SUCCESS;
}

namespace {

template <typename Handle>
void Write(Handle* out, const ShareName& name) {
  *out = {};
  std::memcpy(out, &name, sizeof(name));
}

template <typename Handle>
ShareName Read(const Handle& handle) {
  ShareName name{};
  std::memcpy(&name, &handle, sizeof(name));
  return name;
}

}  // namespace

CUresult api::IpcGetMemHandle(Call& call, CUipcMemHandle* out, CUdeviceptr address) {
  Range* range = call.world.ranges.Find(address);
  if (out == nullptr || range == nullptr || range->kind != Kind::DeviceMemory) return CUDA_ERROR_INVALID_VALUE;
  if (call.world.running != 0) {  // a host function may be writing where the bytes are now
    const std::uint64_t id = range->id;
    DrainContext(call, range->owner);
    range = call.world.ranges.Find(address);
    if (range == nullptr || range->id != id) return CUDA_ERROR_INVALID_VALUE;
  }
  if (!ShareRange(call.world, range, ShareKind::Memory)) return CUDA_ERROR_OUT_OF_MEMORY;
  Write(out, NameShare(call.world, range->share));
  return CUDA_SUCCESS;
}

CUresult api::IpcOpenMemHandle(Call& call, CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  World& world = call.world;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ShareName name = Read(handle);
  if (IsOwnShare(name)) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (name.kind != ShareKind::Memory) return CUDA_ERROR_INVALID_VALUE;
  if (Import* const known = FindImport(world, name); known != nullptr) {
    if (known->range->owner != call.context) return CUDA_ERROR_INVALID_HANDLE;
    ++known->opens;
    *out = known->range->base;
    return CUDA_SUCCESS;
  }
  Import* const import = OpenShare(world, name);
  if (import == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = TakeElsewhere(world, call.context, name.size, Kind::IpcMemory, import->bytes);
  if (range == nullptr) {
    CloseShare(world, import);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  range->import = import;
  import->range = range;
  import->opens = 1;
  *out = range->base;
  return CUDA_SUCCESS;
}

CUresult api::IpcCloseMemHandle(Call& call, CUdeviceptr address) {
  Range* range = call.world.ranges.Find(address);
  if (range == nullptr || range->base != address || range->kind != Kind::IpcMemory)
    return call.context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Borrow(call, range->owner);
  if (result != CUDA_SUCCESS) return result;
  if (range->import->opens > 1) {
    --range->import->opens;
    return CUDA_SUCCESS;
  }
  const std::uint64_t id = range->id;
  DrainContext(call, range->owner);
  range = call.world.ranges.Find(address);
  if (range == nullptr || range->id != id) return CUDA_ERROR_INVALID_VALUE;
  ObserveRelease(call.world, range);
  GiveBack(call.world, range);
  return CUDA_SUCCESS;
}

CUresult api::IpcGetEventHandle(Call& call, CUipcEventHandle* out, CUevent handle) {
  if (out == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Event* event = call.Read<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((event->flags & CU_EVENT_INTERPROCESS) == 0 || event->foreign) return CUDA_ERROR_INVALID_HANDLE;
  if (event->owner != call.context) return call.Undefined(CUDA_ERROR_INVALID_HANDLE);
  // Another process cannot run the work that this event waits for. From here on, recording the event runs that work.
  DrainMarker(call, event->marker);
  event = call.world.Find<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->share == 0) event->share = ShareSlot(call.world, ShareKind::Event);
  if (event->share == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Write(out, NameShare(call.world, event->share));
  return CUDA_SUCCESS;
}

CUresult api::IpcOpenEventHandle(Call& call, CUevent* out, CUipcEventHandle handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ShareName name = Read(handle);
  if (IsOwnShare(name)) return CUDA_ERROR_INVALID_CONTEXT;
  if (name.kind != ShareKind::Event || !IsShareAlive(name)) return CUDA_ERROR_MAP_FAILED;
  Event* const event = call.world.Make<Event>(call.context);
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  event->foreign = true;
  *out = ToHandle<CUevent>(event);
  return CUDA_SUCCESS;
}

// Without a display nothing can be registered, so no handle names a resource.
namespace {

CUresult CheckList(unsigned count, const CUgraphicsResource* resources) {
  return count == 0 || resources == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult api::GraphicsUnregisterResource(Call&, CUgraphicsResource) { return CUDA_ERROR_INVALID_HANDLE; }

CUresult api::GraphicsMapResources(Call&, unsigned int count, CUgraphicsResource* resources, CUstream) {
  return CheckList(count, resources);
}

CUresult api::GraphicsUnmapResources(Call&, unsigned int count, CUgraphicsResource* resources, CUstream) {
  return CheckList(count, resources);
}

CUresult api::GetExportTable(Call&, const void**, const CUuuid*) { return CUDA_ERROR_INVALID_VALUE; }

}  // namespace cuaudit::sim
