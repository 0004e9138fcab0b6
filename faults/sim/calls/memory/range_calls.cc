// SPDX-License-Identifier: MIT
// Hints for ranges of managed memory: advice, prefetches, discards.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

Range* FindManaged(const World& world, CUdeviceptr address, std::size_t bytes) {
  Range* const range = world.ranges.Find(address);
  const bool managed = range != nullptr && IsManaged(range);
  return managed && bytes != 0 && bytes <= range->size - (address - range->base) ? range : nullptr;
}

bool IsDevice(const World& world, const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 && location.id < world.device_count;
}

bool IsHost(const CUmemLocation& location) {
  const int type = static_cast<int>(location.type);
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
         (type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id == 0);
}

// The older calls name the CPU by a device number.
CUmemLocation FromDevice(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult Advise(Call& call, CUdeviceptr address, std::size_t bytes, CUmem_advise advice, const CUmemLocation& location) {
  World& world = call.world;
  Range* const range = FindManaged(world, address, bytes);
  if (range == nullptr || advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  const bool node = static_cast<int>(location.type) == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  const bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (placed && !IsDevice(world, location) && !IsHost(location)) return CUDA_ERROR_INVALID_VALUE;
  if (placed && node && advice != CU_MEM_ADVISE_SET_PREFERRED_LOCATION) return CUDA_ERROR_INVALID_VALUE;
  if (node && advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) return CUDA_SUCCESS;  // an H200 accepts it and remembers nothing
  const std::uint32_t bit = IsDevice(world, location) ? std::uint32_t{1} << location.id : kHostBit;
  const Parts parts = CutParts(world, range, address, bytes);
  if (parts.first == parts.last) return CUDA_ERROR_OUT_OF_MEMORY;
  for (Part& part : parts) {
    if (advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY) {
      part.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
    } else if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) {
      part.preferred = {location.type, IsDevice(world, location) ? location.id : CU_DEVICE_CPU};
    } else if (advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION) {
      part.preferred = {};
    } else if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY) {
      part.accessed_by |= bit;
    } else {
      part.accessed_by &= ~bit;
    }
  }
  return CUDA_SUCCESS;
}

CUresult CheckPrefetch(const World& world, CUdeviceptr address, std::size_t bytes, const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && !IsDevice(world, location)) return CUDA_ERROR_INVALID_DEVICE;
  if (!IsDevice(world, location) && !IsHost(location)) return CUDA_ERROR_INVALID_VALUE;
  return FindManaged(world, address, bytes) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult RememberPrefetch(World& world, CUdeviceptr address, std::size_t bytes, const CUmemLocation& location) {
  const Parts parts = CutParts(world, FindManaged(world, address, bytes), address, bytes);
  if (parts.first == parts.last) return CUDA_ERROR_OUT_OF_MEMORY;
  const int id = static_cast<int>(location.type) == CU_MEM_LOCATION_TYPE_HOST ? CU_DEVICE_CPU : location.id;
  for (Part& part : parts) part.prefetched = {location.type, id};
  return CUDA_SUCCESS;
}

// Prefetching is stream work without a visible effect; a capture cannot hold it.
CUresult Occupy(Call& call, Stream* stream) {
  if (stream->capture != nullptr) {
    Invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return Submit(call, stream, CU_GRAPH_NODE_TYPE_EMPTY, Work());
}

CUresult Prefetch(Call& call, CUdeviceptr address, std::size_t bytes, const CUmemLocation& location, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if ((result = CheckPrefetch(call.world, address, bytes, location)) != CUDA_SUCCESS) return result;
  if ((result = Occupy(call, stream)) != CUDA_SUCCESS) return result;
  return RememberPrefetch(call.world, address, bytes, location);
}

void Tell(std::int32_t* out, std::size_t count, CUmem_range_attribute attribute, const World& world, const Part& part) {
  const auto old_style = [](const Place& place) {
    if (place.type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
    return place.type == CU_MEM_LOCATION_TYPE_DEVICE ? place.id : CU_DEVICE_CPU;
  };
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      *out = part.read_mostly ? 1 : 0;
      return;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      *out = old_style(part.preferred);
      return;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      *out = old_style(part.prefetched);
      return;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      *out = static_cast<std::int32_t>(part.preferred.type);
      return;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      *out = part.preferred.id;
      return;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      *out = static_cast<std::int32_t>(part.prefetched.type);
      return;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      *out = part.prefetched.id;
      return;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      for (std::size_t i = 0; i < count; ++i) out[i] = CU_DEVICE_INVALID;
      for (int device = 0; device < world.device_count && count != 0; ++device) {
        if ((part.accessed_by >> device & 1U) == 0) continue;
        *out++ = device;
        --count;
      }
      if (count != 0 && (part.accessed_by & kHostBit) != 0) *out = CU_DEVICE_CPU;
      return;
  }
}

CUresult GetAttribute(const World& world, void* data, std::size_t size, CUmem_range_attribute attribute, CUdeviceptr address,
                      std::size_t bytes) {
  const Range* const range = FindManaged(world, address, bytes);
  if (data == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute < CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY || attribute > CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID)
    return CUDA_ERROR_INVALID_VALUE;
  const bool list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
  if (size == 0 || size % sizeof(std::int32_t) != 0 || (!list && size != sizeof(std::int32_t))) return CUDA_ERROR_INVALID_VALUE;
  Tell(static_cast<std::int32_t*>(data), size / sizeof(std::int32_t), attribute, world, Common(world, range, address, bytes));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::MemAdvise(Call& call, CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return Advise(call, address, bytes, advice, FromDevice(device));
}

CUresult api::MemAdvise(Call& call, CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUmemLocation location) {
  return Advise(call, address, bytes, advice, location);
}

CUresult api::MemPrefetchAsync(Call& call, CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream) {
  return Prefetch(call, address, bytes, FromDevice(device), stream);
}

CUresult api::MemPrefetchAsync(Call& call, CUdeviceptr address, std::size_t bytes, CUmemLocation location, unsigned int flags,
                               CUstream stream) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : Prefetch(call, address, bytes, location, stream);
}

CUresult api::MemRangeGetAttribute(Call& call, void* data, std::size_t size, CUmem_range_attribute attribute, CUdeviceptr address,
                                   std::size_t bytes) {
  return GetAttribute(call.world, data, size, attribute, address, bytes);
}

CUresult api::MemRangeGetAttributes(Call& call, void** data, std::size_t* sizes, CUmem_range_attribute* attributes, std::size_t count,
                                    CUdeviceptr address, std::size_t bytes) {
  if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUresult result = GetAttribute(call.world, data[i], sizes[i], attributes[i], address, bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

#ifdef CUAUDIT_HAS_MemPrefetchBatchAsync
namespace {

// Batches need a stream of their own, never the legacy one.
CUresult CheckBatch(Call& call, const CUdeviceptr* addresses, const std::size_t* sizes, std::size_t count, unsigned long long flags,
                    CUstream handle, Stream** stream) {
  CUresult result = CUDA_SUCCESS;
  *stream = FindStream(call, handle, &result);
  if (*stream == nullptr) return result;
  if (addresses == nullptr || sizes == nullptr || count == 0 || flags != 0 || (*stream)->legacy) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (FindManaged(call.world, addresses[i], sizes[i]) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult PrefetchBatch(Call& call, const CUdeviceptr* addresses, const std::size_t* sizes, std::size_t count,
                       const CUmemLocation* locations, const std::size_t* firsts, std::size_t location_count, unsigned long long flags,
                       CUstream handle) {
  Stream* stream = nullptr;
  CUresult result = CheckBatch(call, addresses, sizes, count, flags, handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (locations == nullptr || firsts == nullptr || location_count == 0 || location_count > count || firsts[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 1; i < location_count; ++i) {
    if (firsts[i] <= firsts[i - 1] || firsts[i] >= count) return CUDA_ERROR_INVALID_VALUE;
  }
  const auto location_of = [&](std::size_t index) {
    std::size_t at = location_count - 1;
    while (firsts[at] > index) --at;
    return locations[at];
  };
  for (std::size_t i = 0; i < count; ++i) {
    if ((result = CheckPrefetch(call.world, addresses[i], sizes[i], location_of(i))) != CUDA_SUCCESS) return result;
  }
  if ((result = Occupy(call, stream)) != CUDA_SUCCESS) return result;
  for (std::size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    result = RememberPrefetch(call.world, addresses[i], sizes[i], location_of(i));
  }
  return result;
}

// The content of discarded memory is undefined. It is filled with a pattern, so that a program that relies on it shows.
CUresult Discard(Call& call, Stream* stream, const CUdeviceptr* addresses, const std::size_t* sizes, std::size_t count) {
  CUresult result = Occupy(call, stream);
  for (std::size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    Work work;
    work.type = WorkType::Fill;
    work.fill = {};
    work.fill.dst = addresses[i];
    work.fill.value = 0xd5;
    work.fill.elementSize = 1;
    work.fill.width = sizes[i];
    work.fill.height = 1;
    result = Submit(call, stream, CU_GRAPH_NODE_TYPE_MEMSET, work);
  }
  return result;
}

}  // namespace

CUresult api::MemPrefetchBatchAsync(Call& call, CUdeviceptr* addresses, std::size_t* sizes, std::size_t count, CUmemLocation* locations,
                                    std::size_t* firsts, std::size_t location_count, unsigned long long flags, CUstream stream) {
  return PrefetchBatch(call, addresses, sizes, count, locations, firsts, location_count, flags, stream);
}

CUresult api::MemDiscardBatchAsync(Call& call, CUdeviceptr* addresses, std::size_t* sizes, std::size_t count, unsigned long long flags,
                                   CUstream handle) {
  Stream* stream = nullptr;
  const CUresult result = CheckBatch(call, addresses, sizes, count, flags, handle, &stream);
  return result == CUDA_SUCCESS ? Discard(call, stream, addresses, sizes, count) : result;
}

CUresult api::MemDiscardAndPrefetchBatchAsync(Call& call, CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                              CUmemLocation* locations, std::size_t* firsts, std::size_t location_count,
                                              unsigned long long flags, CUstream handle) {
  CUresult result = PrefetchBatch(call, addresses, sizes, count, locations, firsts, location_count, flags, handle);
  if (result != CUDA_SUCCESS) return result;
  Stream* const stream = FindStream(call, handle, &result);
  return stream == nullptr ? result : Discard(call, stream, addresses, sizes, count);
}
#endif

}  // namespace cuaudit::sim
