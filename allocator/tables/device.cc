// SPDX-License-Identifier: MIT
#include "allocator/tables/device.h"

#include "allocator/allocator.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {

bool Device::Reserve(std::size_t bytes) noexcept {
  const std::size_t most = limit.load(std::memory_order_relaxed);
  std::size_t before = reserved.load(std::memory_order_relaxed);
  do {
    if (bytes > most || before > most - bytes) return false;
  } while (!reserved.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

void Device::CountSegments(bool large, int count, std::int64_t bytes, bool is_oversize) noexcept {
  const Held held(totals.lock);
  if (count != 0) AddTo(totals.segment, large, count);
  if (bytes != 0) AddTo(totals.reserved, large, bytes);
  if (is_oversize) AddTo(&totals.oversize_segments, count);
}

CUresult Devices::OpenDevice(const DeviceConfig& config, Device* device) noexcept {
  device->ordinal = config.device;
  CUresult result = CUDA_SUCCESS;
  if (config.context != nullptr) {
    device->context = config.context;
  } else {
    result = env_.driver.DevicePrimaryCtxRetain(&device->context, config.device);
    if (result != CUDA_SUCCESS) return result;
    device->retained = true;
  }
  int supported = 0;
  if (env_.options.expandable_segments) {
    result = env_.driver.DeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, config.device);
    if (result != CUDA_SUCCESS) return result;
    if (supported != 0) {
      CUmemAllocationProp properties{};
      properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      properties.location.id = config.device;
      result = env_.driver.MemGetAllocationGranularity(&device->granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      if (result != CUDA_SUCCESS) return result;
    }
    // Pages are of 2 MiB and of large_segment_size: a coarser granularity does not divide them.
    if (device->granularity == 0 || kSmallSegment % device->granularity != 0) {
      device->granularity = 0;
      device->fallbacks.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (env_.options.completion == Completion::StreamWrites) {
    result = env_.driver.DeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, config.device);
    if (result != CUDA_SUCCESS) return result;
    device->stream_writes = supported != 0;
  }
  result = env_.driver.DeviceTotalMem(&device->total, config.device);
  device->limit.store(env_.options.memory_fraction >= 1.0
                          ? ~std::size_t{0}
                          : static_cast<std::size_t>(env_.options.memory_fraction * static_cast<double>(device->total)));
  return result;
}

CUresult Devices::Open(const DeviceConfig* configs, int count) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    try {
      all_.push_back(std::make_unique<Device>());
    } catch (...) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    Device* const device = all_.back().get();
    device->index = i;
    result = OpenDevice(configs[i], device);
    for (const std::unique_ptr<Device>& other : all_) {
      if (result == CUDA_SUCCESS && other.get() != device && other->context == device->context) result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (result == CUDA_SUCCESS) return CUDA_SUCCESS;
  (void)Refuse(result, "Create: device %d of the list does not open, or stands there twice", static_cast<int>(all_.size()) - 1);
  (void)ReleaseContexts();
  return result;
}

// None twice: references have no names, so a second release of one that was done takes somebody else's.
CUresult Devices::ReleaseContexts() noexcept {
  CUresult first = CUDA_SUCCESS;
  for (const std::unique_ptr<Device>& device : all_) {
    if (!device->retained) continue;
    device->retained = false;
    const CUresult result = env_.driver.DevicePrimaryCtxRelease(device->ordinal);
    if (result == CUDA_SUCCESS) continue;
    device->refused.fetch_add(1, std::memory_order_relaxed);
    (void)env_.Note(result);
    if (first == CUDA_SUCCESS) first = result;
  }
  return first;
}

CUresult Devices::Find(int device, const char* call, Device** out) noexcept {
  const CUresult result = env_.Usable(call);
  if (result != CUDA_SUCCESS) return result;
  *out = At(device);
  if (*out != nullptr) return CUDA_SUCCESS;
  return Refuse(CUDA_ERROR_INVALID_VALUE, "%s: device %d: 0 to %zu are known", call, device, all_.size() - 1);
}

CUresult Devices::SetMemoryFraction(int device, double fraction) noexcept {
  Device* target = nullptr;
  if (const CUresult result = Find(device, "SetMemoryFraction", &target); result != CUDA_SUCCESS) return result;
  if (!(fraction > 0.0) || !(fraction <= 1.0))
    return Refuse(CUDA_ERROR_INVALID_VALUE, "SetMemoryFraction: %g: more than 0, at most 1", fraction);
  target->limit.store(static_cast<std::size_t>(fraction * static_cast<double>(target->total)), std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
