// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/stream/schedule.h"

namespace cuaudit::sim {
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
  Event* event = call.world.Find<Event>(handle);
  if (out == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((event->flags & CU_EVENT_INTERPROCESS) == 0 || event->foreign || event->owner != call.context) return CUDA_ERROR_INVALID_HANDLE;
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

}  // namespace cuaudit::sim
