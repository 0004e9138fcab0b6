// SPDX-License-Identifier: MIT
// Memory of device and host, registered memory, and attributes of pointers.
#define __CUDA_API_VERSION_INTERNAL
#include <sys/mman.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/stream/schedule.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kPitchAlignment = 512;

template <typename T>
CUresult Narrow(T* out, std::uint64_t value) {
  if (static_cast<std::uint64_t>(static_cast<T>(value)) != value) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = static_cast<T>(value);
  return CUDA_SUCCESS;
}

CUresult AllocatePitch(Call& call, CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height, unsigned element) {
  if (address == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (row < width || height > ~std::uint64_t{0} / row) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = TakeDevice(call.world, call.context, row * height, Kind::DeviceMemory);
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = range->base;
  *pitch = row;
  return CUDA_SUCCESS;
}

// Kernels before 5.14 cannot say, not even of pages that surely are; then everything is taken for readable.
bool IsReadable(const World& world, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = begin / kPage * kPage;
  if (madvise(reinterpret_cast<void*>(static_cast<std::uintptr_t>(first)), end - first, MADV_POPULATE_READ) == 0) return true;
  return madvise(world.shell.books, kPage, MADV_POPULATE_READ) != 0;
}

// `gone`: the result when another thread ended the range during the wait.
CUresult EndHostRange(Call& call, Range* range, CUresult gone) {
  const CUresult result = Borrow(call, range->owner);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t base = range->base;
  const std::uint64_t id = range->id;
  ObserveRelease(call.world, range);  // the manual promises no wait
  DrainContext(call, range->owner);
  range = call.world.ranges.Find(base);
  if (range == nullptr || range->id != id) return gone;
  GiveBack(call.world, range);
  return CUDA_SUCCESS;
}

Range* HostRange(const World& world, const void* pointer) { return world.ranges.Find(reinterpret_cast<std::uintptr_t>(pointer)); }

}  // namespace

CUresult api::MemAlloc(Call& call, CUdeviceptr* address, std::size_t bytes) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = TakeDevice(call.world, call.context, bytes, Kind::DeviceMemory);
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = range->base;
  return CUDA_SUCCESS;
}

CUresult api::MemAllocPitch(Call& call, CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned int element) {
  return AllocatePitch(call, address, pitch, width, height, element);
}

CUresult api::MemFree(Call& call, CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  Range* range = call.world.ranges.Find(address);
  if (range == nullptr || range->base != address) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind != Kind::DeviceMemory && range->kind != Kind::ManagedMemory && range->kind != Kind::StreamOrderedMemory) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (range->freeing) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Borrow(call, range->owner);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t id = range->id;
  if (range->kind != Kind::StreamOrderedMemory) DrainContext(call, range->owner);  // memory of a pool goes back without waiting
  range = call.world.ranges.Find(address);                                         // a host function may have let another thread in
  if (range == nullptr || range->id != id) return CUDA_ERROR_INVALID_VALUE;
  ObserveRelease(call.world, range);
  if (range->graph != nullptr) range->freeing = true;  // a free before it may still be queued
  FinishFree(call.world, address);
  return CUDA_SUCCESS;
}

CUresult api::MemGetInfo(Call& call, std::size_t* free, std::size_t* total) {
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const DeviceState& device = call.world.devices[call.context->device];
  *free = device.total - device.used;
  *total = device.total;
  return CUDA_SUCCESS;
}

CUresult api::MemGetAddressRange(Call& call, CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  const Range* const range = call.world.ranges.Find(address);
  if (range == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range->base;
  if (size != nullptr) *size = range->size;
  return CUDA_SUCCESS;
}

CUresult api::MemAllocManaged(Call& call, CUdeviceptr* address, std::size_t bytes, unsigned int flags) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = TakeHost(call.world, call.context, bytes, Kind::ManagedMemory);
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  range->on_device = true;
  range->flags = flags;
  *address = range->base;
  return CUDA_SUCCESS;
}

CUresult api::MemHostAlloc(Call& call, void** out, std::size_t bytes, unsigned int flags) {
  constexpr unsigned kLegal = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (out == nullptr || (flags & ~kLegal) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *out = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  }
  Range* const range = TakeHost(call.world, call.context, bytes, Kind::PinnedMemory);
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  range->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
  *out = reinterpret_cast<void*>(static_cast<std::uintptr_t>(range->base));
  return CUDA_SUCCESS;
}

CUresult api::MemAllocHost(Call& call, void** out, std::size_t bytes) { return MemHostAlloc(call, out, bytes, 0); }

CUresult api::MemFreeHost(Call& call, void* pointer) {
  if (pointer == nullptr) return CUDA_SUCCESS;
  Range* const range = HostRange(call.world, pointer);
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(pointer);
  if (range == nullptr || range->base != address || range->kind != Kind::PinnedMemory) return CUDA_ERROR_INVALID_VALUE;
  return EndHostRange(call, range, CUDA_ERROR_INVALID_VALUE);
}

CUresult api::MemHostGetDevicePointer(Call& call, CUdeviceptr* address, void* pointer, unsigned int flags) {
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = HostRange(call.world, pointer);
  if (range == nullptr || (range->kind != Kind::PinnedMemory && range->kind != Kind::HostRegistration)) return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<std::uintptr_t>(pointer);
  return CUDA_SUCCESS;
}

CUresult api::MemHostGetFlags(Call& call, unsigned int* flags, void* pointer) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = HostRange(call.world, pointer);
  if (range == nullptr || (range->kind != Kind::PinnedMemory && range->kind != Kind::HostRegistration)) return CUDA_ERROR_INVALID_VALUE;
  *flags = range->flags;
  return CUDA_SUCCESS;
}

CUresult api::MemHostRegister(Call& call, void* pointer, std::size_t bytes, unsigned int flags) {
  constexpr unsigned kLegal =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (pointer == nullptr || bytes == 0 || (flags & ~kLegal) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address + bytes < address) return CUDA_ERROR_INVALID_VALUE;
  // Registered before, or the driver's own; and pages that nobody can read cannot be pinned.
  const std::uint64_t end = address + bytes;
  const Range* known = call.world.ranges.Find(address);
  if (known == nullptr) known = call.world.ranges.FirstFrom(address);
  if (known != nullptr && known->base < end) {
    return known->kind == Kind::HostRegistration ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE;
  }
  if (!IsReadable(call.world, address, end)) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = call.world.arena.New<Range>();
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  range->base = address;
  range->size = range->asked = bytes;
  range->bytes = static_cast<char*>(pointer);
  range->kind = Kind::HostRegistration;
  range->host_visible = true;
  range->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
  Adopt(call.world, range, call.context);
  return CUDA_SUCCESS;
}

CUresult api::MemHostUnregister(Call& call, void* pointer) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = HostRange(call.world, pointer);
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(pointer);
  if (range == nullptr) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (range->base != address || range->kind != Kind::HostRegistration) return CUDA_ERROR_INVALID_VALUE;
  return EndHostRange(call, range, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

namespace {

template <typename T>
CUresult Put(void* out, T value) {
  std::memcpy(out, &value, sizeof(value));
  return CUDA_SUCCESS;
}

unsigned long long HandleTypes(const Range* range) {
  if (range->physical != nullptr) return static_cast<unsigned long long>(range->physical->properties.requestedHandleTypes);
  return range->pool != nullptr ? static_cast<unsigned long long>(range->pool->properties.handleTypes) : 0;
}

int DeviceOf(const Range* range) {
  if (range->owner != nullptr) return range->owner->device;
  if (range->physical != nullptr) return range->physical->properties.location.id;
  if (range->pool != nullptr) return range->pool->device;
  return range->graph != nullptr ? range->graph->device : 0;
}

CUresult Attribute(const World& world, void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  const Range* const range = world.ranges.Find(address);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int device = DeviceOf(range);
  void* const host = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Put(out, range->owner == nullptr ? CUcontext{} : ToHandle<CUcontext>(range->owner));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put(out, static_cast<unsigned>(range->on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Put(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return range->host_visible ? Put(out, host) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Put(out, range->sync_memops ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Put(out, static_cast<unsigned long long>(range->id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put(out, IsManaged(range) ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put(out, device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Put(out, range->kind == Kind::DeviceMemory ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Put(out, range->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put(out, static_cast<std::size_t>(range->size));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Put(out, 1U);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put(out, HandleTypes(range));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Put(out, 0U);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Put(out, static_cast<unsigned>(range->accessible ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                              : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put(out, range->pool == nullptr ? CUmemoryPool{} : ToHandle<CUmemoryPool>(range->pool));  // though it be destroyed
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Put(out, static_cast<std::size_t>(range->size));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Put(out, range->base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Put(out, static_cast<unsigned long long>(range->id));
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return range->on_device ? Put(out, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS{}) : CUDA_ERROR_INVALID_VALUE;
#if CUDA_VERSION >= 12080
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
#endif
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

bool IsAttribute(CUpointer_attribute attribute) {
#if CUDA_VERSION >= 12080
  constexpr CUpointer_attribute kLast = CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
#else
  constexpr CUpointer_attribute kLast = CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID;
#endif
  return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= kLast;
}

// What the plural form writes for memory the driver does not know.
void PutNothing(void* out, CUpointer_attribute attribute) {
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    (void)Put(out, -2);
  } else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
             attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED || attribute == CU_POINTER_ATTRIBUTE_MAPPED ||
             attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE || attribute == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS ||
             attribute == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) {
    (void)Put(out, 0U);
  } else if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
    return;
#if CUDA_VERSION >= 12080
  } else if (attribute == CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE) {
    return;
#endif
  } else {
    (void)Put(out, 0ULL);
  }
}

}  // namespace

CUresult api::PointerGetAttribute(Call& call, void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  const Range* const range = call.world.ranges.Find(address);
  if (out == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Borrow(call, range->owner);
  return result == CUDA_SUCCESS ? Attribute(call.world, out, attribute, address) : result;
}

CUresult api::PointerGetAttributes(Call& call, unsigned int count, CUpointer_attribute* attributes, void** out, CUdeviceptr address) {
  const Range* const range = call.world.ranges.Find(address);
  const CUresult result = Borrow(call, range == nullptr ? nullptr : range->owner);
  if (result != CUDA_SUCCESS) return result;
  if (range == nullptr && call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (count == 0 || attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (out[i] == nullptr || !IsAttribute(attributes[i])) return CUDA_ERROR_INVALID_VALUE;
    if (Attribute(call.world, out[i], attributes[i], address) != CUDA_SUCCESS) PutNothing(out[i], attributes[i]);
  }
  return CUDA_SUCCESS;
}

CUresult api::PointerSetAttribute(Call& call, const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Range* const range = call.world.ranges.Find(address);
  if (value == nullptr || range == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  unsigned on = 0;
  std::memcpy(&on, value, sizeof(on));
  range->sync_memops = on != 0;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
