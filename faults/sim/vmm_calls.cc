// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/executor.h"
#include "faults/sim/memory.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kGranularity = std::uint64_t{2} << 20;

bool IsGranular(std::uint64_t value) { return value % kGranularity == 0; }

Reservation** FindReservation(World& world, std::uint64_t address, std::uint64_t bytes) {
  for (Reservation** at = &world.reservations; *at != nullptr; at = &(*at)->next) {
    const std::uint64_t offset = address - (*at)->base;
    if (offset < (*at)->size && bytes <= (*at)->size - offset) return at;
  }
  return nullptr;
}

CUresult CheckProperties(const World& world, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  return properties->location.id >= 0 && properties->location.id < world.device_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

void FreePhysical(World& world, Physical* physical) {
  physical->region->Free(world.arena, physical->block);
  Discharge(world, physical->properties.location.id, physical->size);
  if (!physical->released) world.Retire(physical);
  world.arena.Delete(physical);
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

// No mapping sticks out of the interval.
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
  char* const base = MapReserve(bytes, false, aligned, reinterpret_cast<void*>(static_cast<std::uintptr_t>(hint)));
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

CUresult api::MemCreate(Call& call, CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* properties,
                        unsigned long long flags) {
  World& world = call.world;
  if (out == nullptr || bytes == 0 || !IsGranular(bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProperties(world, properties);
  if (result != CUDA_SUCCESS) return result;
  if (!Charge(world, properties->location.id, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  Block* const block = world.device_memory.Allocate(world.arena, bytes);
  Physical* const physical = block == nullptr ? nullptr : world.Make<Physical>(nullptr);
  if (physical == nullptr) {
    if (block != nullptr) world.device_memory.Free(world.arena, block);
    Discharge(world, properties->location.id, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  physical->properties = *properties;
  physical->size = bytes;
  physical->block = block;
  physical->region = &world.device_memory;
  *out = ToHandle<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

CUresult api::MemRelease(Call& call, CUmemGenericAllocationHandle handle) {
  Physical* const physical = call.world.Find<Physical>(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (--physical->references != 0) return CUDA_SUCCESS;
  if (physical->mappings == 0) {
    FreePhysical(call.world, physical);
  } else {
    call.world.Retire(physical);
    physical->released = true;
  }
  return CUDA_SUCCESS;
}

CUresult api::MemMap(Call& call, CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                     unsigned long long flags) {
  World& world = call.world;
  Physical* const physical = world.Find<Physical>(handle);
  if (physical == nullptr || flags != 0 || offset != 0 || bytes == 0 || !IsGranular(bytes) || !IsGranular(address))
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes != physical->size || FindReservation(world, address, bytes) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* const above = world.ranges.FirstFrom(address);
  if (world.ranges.Find(address) != nullptr || (above != nullptr && above->base - address < bytes)) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = world.arena.New<Range>();
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  range->base = address;
  range->size = range->asked = bytes;
  range->bytes = physical->region->Bytes(physical->block->base);
  range->kind = Kind::Mapping;
  range->on_device = true;
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
  for (int i = 0; i < world.device_count; ++i) {
    if (world.devices[i].primary->active) DrainContext(call, world.devices[i].primary);
  }
  // Nothing may be mapped there at all.
  for (Range* range = world.ranges.FirstFrom(address); range != nullptr && range->base - address < bytes;
       range = world.ranges.FirstFrom(address)) {
    Physical* const physical = range->physical;
    Forget(world, range);
    if (--physical->mappings == 0 && physical->released) FreePhysical(world, physical);
  }
  return CUDA_SUCCESS;
}

CUresult api::MemSetAccess(Call& call, CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* list, std::size_t count) {
  World& world = call.world;
  if (list == nullptr || count == 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = list[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (location.id < 0 || location.id >= world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  }
  if (!ForEachMapping(world, address, bytes, [](Range*) {})) return CUDA_ERROR_INVALID_VALUE;
  const unsigned flags = static_cast<unsigned>(list[0].flags);
  (void)ForEachMapping(world, address, bytes, [flags](Range* range) {
    range->flags = flags;
    range->accessible = flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
  return CUDA_SUCCESS;
}

CUresult api::MemGetAccess(Call& call, unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = call.world.ranges.Find(address);
  if (range == nullptr || range->kind != Kind::Mapping) return CUDA_ERROR_INVALID_VALUE;
  *flags = range->flags;
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

}  // namespace cuaudit::sim
