// SPDX-License-Identifier: MIT
// torch_names.h: what peer_torch.cc calls of PyTorch's headers, so that it is compiled where there is no wheel. Never linked. CMake lets it
// answer to the names of the wheel's headers.
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

struct CUDAStream {};
CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device);

DeviceIndex device_count() noexcept;
void set_device(DeviceIndex device);

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

namespace at {
struct Context {
  void lazyInitDevice(c10::DeviceType type);
};
Context& globalContext();
}  // namespace at
