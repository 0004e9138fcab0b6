// SPDX-License-Identifier: MIT
// Stand-in for the wheel's header of this name: only what peer_torch.cc calls, so that it is compiled where there is no wheel. Never
// linked.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace c10 {

using DeviceIndex = std::int8_t;
enum class DeviceType : std::int8_t { CUDA = 1 };
struct Device {
  Device(DeviceType type, DeviceIndex index);
};
using DeleterFnPtr = void (*)(void*);
struct DataPtr {
  DataPtr(void* data, void* context, DeleterFnPtr deleter, Device device);
  void* release_context();
};

namespace CachingDeviceAllocator {
struct Stat {
  std::int64_t current, peak;
};
struct DeviceStats {
  std::array<Stat, 3> allocated_bytes, reserved_bytes;
};
}  // namespace CachingDeviceAllocator

namespace cuda {

struct CUDAStream;

namespace CUDACachingAllocator {
struct CUDAAllocator {
  DeleterFnPtr raw_deleter() const;
  void init(int device_count);
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream);
  void raw_delete(void* pointer);
};
CUDAAllocator* get();
void emptyCache();
void recordStream(const DataPtr& pointer, CUDAStream stream);
CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device);
void resetPeakStats(DeviceIndex device);
}  // namespace CUDACachingAllocator

}  // namespace cuda
}  // namespace c10
