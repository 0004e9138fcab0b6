// SPDX-License-Identifier: MIT
// Virtual memory: addresses reserved, physical memory made, mapped and shared.
#define __CUDA_API_VERSION_INTERNAL
#include <sys/mman.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
namespace {

CUresult CheckProperties(const World& world, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if ((static_cast<unsigned>(properties->requestedHandleTypes) & ~kFd) != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(properties->location.type)) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return properties->location.id >= 0 && properties->location.id < world.device_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return properties->location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult api::MemCreate(Call& call, CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* properties,
                        unsigned long long flags) {
  if (out == nullptr || bytes == 0 || bytes % kGranularity != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProperties(call.world, properties);
  if (result != CUDA_SUCCESS) return result;
  Backing* const backing = MakeBacking(call.world, *properties, bytes);
  const Physical* const physical = backing == nullptr ? nullptr : MakePhysical(call.world, backing, *properties);
  if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

CUresult api::MemRelease(Call& call, CUmemGenericAllocationHandle handle) {
  Physical* const physical = call.world.Find<Physical>(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (--physical->references != 0) return CUDA_SUCCESS;
  if (physical->mappings != 0) {
    call.world.Retire(physical);
    physical->released = true;
  }
  DropPhysical(call.world, physical);
  return CUDA_SUCCESS;
}

CUresult api::MemGetAllocationGranularity(Call& call, std::size_t* granularity, const CUmemAllocationProp* properties,
                                          CUmemAllocationGranularity_flags option) {
  if (granularity == nullptr || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProperties(call.world, properties);
  if (result == CUDA_SUCCESS) *granularity = kGranularity;
  return result;
}

CUresult api::MemGetAllocationPropertiesFromHandle(Call& call, CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
  const Physical* const physical = call.world.Find<Physical>(handle);
  if (out == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = physical->properties;
  return CUDA_SUCCESS;
}

CUresult api::MemRetainAllocationHandle(Call& call, CUmemGenericAllocationHandle* out, void* pointer) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = call.world.ranges.Find(reinterpret_cast<std::uintptr_t>(pointer));
  if (range == nullptr || range->kind != Kind::Mapping) return CUDA_ERROR_INVALID_VALUE;
  Physical* const physical = range->physical;
  if (physical->released) {
    // Mappings kept it alive: it gets a handle again.
    if (!call.world.handles.Insert(physical)) return CUDA_ERROR_OUT_OF_MEMORY;
    call.world.free_standing.Add(physical);
    call.world.Count(Kind::PhysicalMemory, 1);
    physical->released = false;
  }
  ++physical->references;
  *out = ToHandle<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

CUresult api::MemExportToShareableHandle(Call& call, void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                         unsigned long long flags) {
  const Physical* const physical = call.world.Find<Physical>(handle);
  if (out == nullptr || physical == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if ((static_cast<unsigned>(physical->properties.requestedHandleTypes) & kFd) == 0) return CUDA_ERROR_INVALID_VALUE;
  const int file = ExportBacking(call.world, physical->backing, physical->properties);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(out, &file, sizeof(file));
  return CUDA_SUCCESS;
}

CUresult api::MemImportFromShareableHandle(Call& call, CUmemGenericAllocationHandle* out, void* os_handle, CUmemAllocationHandleType type) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemAllocationProp properties{};
  Backing* const backing = ImportBacking(call.world, static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle)), &properties);
  if (backing == nullptr) return CUDA_ERROR_UNKNOWN;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;  // nobody exports it again
  const Physical* const physical = MakePhysical(call.world, backing, properties);
  if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

// Nobody here could use the descriptor, but who asks for one has to close it.
CUresult api::MemGetHandleForAddressRange(Call& call, void* out, CUdeviceptr address, std::size_t bytes, CUmemRangeHandleType type,
                                          unsigned long long) {
  Range* const range = call.world.ranges.Find(address);
  if (out == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || bytes == 0 || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (address % kPage != 0 || bytes % kPage != 0 || bytes > range->size - (address - range->base)) return CUDA_ERROR_INVALID_VALUE;
  if (!range->on_device || call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const int file = MakeShareFile(bytes);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(out, &file, sizeof(file));
  return CUDA_SUCCESS;
}

namespace {

bool IsGranular(std::uint64_t value) { return value % kGranularity == 0; }

Reservation** FindReservation(World& world, std::uint64_t address, std::uint64_t bytes) {
  for (Reservation** at = &world.reservations; *at != nullptr; at = &(*at)->next) {
    const std::uint64_t offset = address - (*at)->base;
    if (offset < (*at)->size && bytes <= (*at)->size - offset) return at;
  }
  return nullptr;
}

// Calls `visit` for each mapping inside the interval; false when they do not cover it exactly.
template <typename F>
bool ForEachMapping(World& world, std::uint64_t address, std::uint64_t bytes, F visit) {
  const std::uint64_t end = address + bytes;
  while (address < end) {
    Range* const range = world.ranges.Find(address);
    if (range == nullptr || range->kind != Kind::Mapping || range->base != address || range->size > end - address) return false;
    address += range->size;
    visit(range);
  }
  return true;
}

constexpr int kHostPlace = kMaxDevices;

// An index of Range::access; -1: no such place.
int PlaceOf(const World& world, const CUmemLocation& location) {
  switch (static_cast<int>(location.type)) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return location.id >= 0 && location.id < world.device_count ? location.id : -1;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return location.id == 0 ? kHostPlace : -1;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return kHostPlace;
    default:
      return -1;
  }
}

// Makes mapped host memory readable and writable, or inaccessible again.
bool ShowToHost(Range* range, CUmemAccess_flags flags) {
  void* const at = reinterpret_cast<void*>(static_cast<std::uintptr_t>(range->base));
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
    return mmap(at, range->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  const int rights = flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_READ | PROT_WRITE;
  return mmap(at, range->size, rights, MAP_SHARED | MAP_FIXED, range->physical->backing->file, 0) != MAP_FAILED;
}

// True if no mapping crosses the ends of the interval.
bool CoversWhole(const World& world, std::uint64_t address, std::uint64_t bytes) {
  const Range* const first = world.ranges.Find(address);
  if (first != nullptr && first->base != address) return false;
  const Range* const last = world.ranges.Find(address + bytes - 1);
  return last == nullptr || last->base + last->size == address + bytes;
}

}  // namespace

CUresult api::MemAddressReserve(Call& call, CUdeviceptr* out, std::size_t bytes, std::size_t alignment, CUdeviceptr hint,
                                unsigned long long flags) {
  if (out == nullptr || bytes == 0 || !IsGranular(bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (alignment != 0 && (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t aligned = alignment > kGranularity ? alignment : kGranularity;
  Reservation* const reservation = call.world.arena.New<Reservation>();
  if (reservation == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  char* base = nullptr;
  if (hint != 0 && hint % aligned == 0) base = MapReserve(bytes, false, 0, reinterpret_cast<void*>(static_cast<std::uintptr_t>(hint)));
  if (base != nullptr && reinterpret_cast<std::uintptr_t>(base) != hint) {  // the address is in use
    MapRelease(base, bytes);
    base = nullptr;
  }
  if (base == nullptr) base = MapReserve(bytes, false, aligned);
  if (base == nullptr) {
    call.world.arena.Delete(reservation);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  reservation->base = reinterpret_cast<std::uintptr_t>(base);
  reservation->size = bytes;
  reservation->next = call.world.reservations;
  call.world.reservations = reservation;
  call.world.Count(Kind::AddressReservation, 1);
  *out = reservation->base;
  return CUDA_SUCCESS;
}

CUresult api::MemAddressFree(Call& call, CUdeviceptr address, std::size_t bytes) {
  Reservation** const at = FindReservation(call.world, address, bytes);
  if (at == nullptr || (*at)->base != address || (*at)->size != bytes) return CUDA_ERROR_INVALID_VALUE;
  const Range* const first = call.world.ranges.FirstFrom(address);
  if (first != nullptr && first->base - address < bytes) return CUDA_ERROR_INVALID_VALUE;
  Reservation* const reservation = *at;
  *at = reservation->next;
  MapRelease(reinterpret_cast<void*>(static_cast<std::uintptr_t>(reservation->base)), reservation->size);
  call.world.arena.Delete(reservation);
  call.world.Count(Kind::AddressReservation, -1);
  return CUDA_SUCCESS;
}

CUresult api::MemMap(Call& call, CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                     unsigned long long flags) {
  World& world = call.world;
  Physical* const physical = world.Find<Physical>(handle);
  if (physical == nullptr || flags != 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes != physical->size || offset != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsGranular(address) || FindReservation(world, address, bytes) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* const above = world.ranges.FirstFrom(address);
  if (world.ranges.Find(address) != nullptr || (above != nullptr && above->base - address < bytes)) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = world.arena.New<Range>();
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  range->base = address;
  range->size = range->asked = bytes;
  range->bytes = physical->backing->bytes;
  range->kind = Kind::Mapping;
  range->on_device = !IsOnHost(physical->properties);
  range->accessible = false;
  range->physical = physical;
  ++physical->mappings;
  Adopt(world, range, nullptr);
  return CUDA_SUCCESS;
}

CUresult api::MemUnmap(Call& call, CUdeviceptr address, std::size_t bytes) {
  World& world = call.world;
  if (bytes == 0 || FindReservation(world, address, bytes) == nullptr || !CoversWhole(world, address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  // It does not wait. Nothing may be mapped there at all.
  for (Range* range = world.ranges.FirstFrom(address); range != nullptr && range->base - address < bytes;
       range = world.ranges.FirstFrom(address)) {
    Physical* const physical = range->physical;
    if (physical->mappings == 1) ObserveRelease(world, range);  // else other addresses still reach the bytes
    if (range->access[kHostPlace] != 0) (void)ShowToHost(range, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    Forget(world, range);
    --physical->mappings;
    DropPhysical(world, physical);
  }
  return CUDA_SUCCESS;
}

CUresult api::MemSetAccess(Call& call, CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* list, std::size_t count) {
  World& world = call.world;
  if (list == nullptr || count == 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned flags = static_cast<unsigned>(list[i].flags);
    const bool known =
        flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ || flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!known || PlaceOf(world, list[i].location) < 0) return CUDA_ERROR_INVALID_VALUE;
  }
  bool on_host = true;
  if (!ForEachMapping(world, address, bytes, [&](const Range* range) { on_host = on_host && !range->on_device; }))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (PlaceOf(world, list[i].location) == kHostPlace && !on_host) return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUresult result = CUDA_SUCCESS;
  (void)ForEachMapping(world, address, bytes, [&](Range* range) {
    for (std::size_t i = 0; i < count; ++i) {
      const int place = PlaceOf(world, list[i].location);
      if (place == kHostPlace && !ShowToHost(range, list[i].flags)) result = CUDA_ERROR_OUT_OF_MEMORY;
      range->access[place] = static_cast<std::uint8_t>(list[i].flags);
    }
    range->accessible = range->host_visible = range->access[kHostPlace] != 0;
    for (int device = 0; device < world.device_count; ++device) range->accessible = range->accessible || range->access[device] != 0;
  });
  return result;
}

CUresult api::MemGetAccess(Call& call, unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = call.world.ranges.Find(address);
  const int place = PlaceOf(call.world, *location);
  if (range == nullptr || place < 0) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind == Kind::Mapping) {
    *flags = range->access[place];
  } else {
    const bool own = range->owner != nullptr && place == range->owner->device;
    *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
