// SPDX-License-Identifier: MIT
#include "faults/cudart/devices.h"

namespace cuaudit::cudart {
namespace {

struct Device {
  CUdevice device;
  std::atomic<CUcontext> primary;  // null: not retained
  std::atomic<unsigned> generation;
};

constinit Device devices[kMaxDevices]{};
constinit std::atomic<int> device_count{0};

unsigned GenerationOf(const Device& device) noexcept { return device.generation.load(std::memory_order_acquire) + 1; }

}  // namespace

cudaError_t FindDevices(DriverRef driver) noexcept {
  int count = 0;
  if (const CUresult result = driver.DeviceGetCount(&count)) return FromDriver(result);
  if (count <= 0) return cudaErrorNoDevice;
  if (count > kMaxDevices) count = kMaxDevices;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (const CUresult result = driver.DeviceGet(&device, i)) return FromDriver(result);
    devices[i].device = device;
  }
  device_count.store(count, std::memory_order_release);
  return cudaSuccess;
}

int DeviceCount() noexcept { return device_count.load(std::memory_order_acquire); }

CUdevice DeviceAt(int ordinal) noexcept { return devices[ordinal].device; }

int OrdinalOf(CUdevice device) noexcept {
  for (int i = 0; i < DeviceCount(); ++i) {
    if (devices[i].device == device) return i;
  }
  return -1;
}

cudaError_t RetainDevice(DriverRef driver, int ordinal, CUcontext* context) noexcept {
  Device* const device = &devices[ordinal];
  *context = device->primary.load(std::memory_order_acquire);
  if (*context != nullptr) return cudaSuccess;
  if (const CUresult result = driver.DevicePrimaryCtxRetain(context, device->device)) return FromDriver(result);
  CUcontext none = nullptr;
  if (!device->primary.compare_exchange_strong(none, *context, std::memory_order_acq_rel)) {
    (void)driver.DevicePrimaryCtxRelease(device->device);  // another thread retained it first; one reference serves both
  }
  return cudaSuccess;
}

bool EverReset(int ordinal) noexcept { return devices[ordinal].generation.load(std::memory_order_acquire) != 0; }

bool Bound(const Thread& thread) noexcept { return thread.generation == GenerationOf(devices[thread.device]); }

cudaError_t BindDevice(DriverRef driver, int ordinal) noexcept {
  Device& device = devices[ordinal];
  const unsigned generation = GenerationOf(device);
  CUcontext context = nullptr;
  if (const cudaError_t error = RetainDevice(driver, ordinal, &context)) return error;
  if (const CUresult result = driver.CtxSetCurrent(context)) return FromDriver(result);
  This().device = ordinal;
  This().generation = generation;
  return cudaSuccess;
}

cudaError_t BindContext(DriverRef driver) noexcept {
  Thread& thread = This();
  if (Bound(thread)) return cudaSuccess;
  // The thread has never bound a context, or the device was reset since. Only then may a context of the driver API be current.
  if (thread.generation == 0) {
    CUcontext current = nullptr;
    if (const CUresult result = driver.CtxGetCurrent(&current)) return FromDriver(result);
    CUdevice device = 0;
    if (current != nullptr && Older<driver::CallId::CtxGetDevice>(driver, &device) == CUDA_SUCCESS) {
      const int ordinal = OrdinalOf(device);
      if (ordinal >= 0) {
        thread.device = ordinal;
        thread.generation = GenerationOf(devices[ordinal]);
        return cudaSuccess;
      }
    }
  }
  return BindDevice(driver, thread.device);
}

cudaError_t ResetDevice(DriverRef driver) noexcept {
  Thread& thread = This();
  Device& device = devices[thread.device];
  const CUcontext retained = device.primary.exchange(nullptr, std::memory_order_acq_rel);
  device.generation.fetch_add(1, std::memory_order_acq_rel);
  CUresult result = driver.DevicePrimaryCtxReset(device.device);
  if (retained != nullptr) {
    const CUresult released = driver.DevicePrimaryCtxRelease(device.device);
    if (result == CUDA_SUCCESS) result = released;
  }
  return FromDriver(result);
}

void ReleaseDevices(DriverRef driver) noexcept {
  for (int i = 0; i < DeviceCount(); ++i) {
    if (devices[i].primary.exchange(nullptr, std::memory_order_acq_rel) == nullptr) continue;
    devices[i].generation.fetch_add(1, std::memory_order_acq_rel);
    (void)driver.DevicePrimaryCtxRelease(devices[i].device);
  }
}

}  // namespace cuaudit::cudart
