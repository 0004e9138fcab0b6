// SPDX-License-Identifier: MIT
#include "faults/cudart/properties_12.h"

#include <string.h>

#include "faults/cudart/devices.h"

namespace cuaudit::cudart {
namespace {

#define CUDART_PROPERTY(field, attribute)                                                                                            \
  {static_cast<unsigned short>(__builtin_offsetof(DeviceProperties12, field)), sizeof(DeviceProperties12{}.field) == sizeof(size_t), \
   CU_DEVICE_ATTRIBUTE_##attribute},
#define CUDART_PROPERTY_13(field, attribute)
constexpr Property kProperties12[] = {
#include "faults/cudart/device_properties.def"
    CUDART_PROPERTY(clockRate, CLOCK_RATE) CUDART_PROPERTY(deviceOverlap, GPU_OVERLAP)
        CUDART_PROPERTY(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT) CUDART_PROPERTY(computeMode, COMPUTE_MODE)
            CUDART_PROPERTY(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH) CUDART_PROPERTY(memoryClockRate, MEMORY_CLOCK_RATE)
                CUDART_PROPERTY(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
                    CUDART_PROPERTY(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH)};
#undef CUDART_PROPERTY
#undef CUDART_PROPERTY_13
static_assert(__builtin_offsetof(DeviceProperties12, uuid) == __builtin_offsetof(cudaDeviceProp, uuid) &&
              __builtin_offsetof(DeviceProperties12, totalGlobalMem) == __builtin_offsetof(cudaDeviceProp, totalGlobalMem));

}  // namespace

cudaError_t GetDeviceProperties12(DriverRef driver, void* properties, int device) noexcept {
  if (properties == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  memset(properties, 0, sizeof(DeviceProperties12));
  return ReadProperties(driver, DeviceAt(device), kProperties12, properties);
}

cudaDeviceProp Wanted12(const void* properties) noexcept {
  const DeviceProperties12& from = *static_cast<const DeviceProperties12*>(properties);
  cudaDeviceProp wanted{};
  memcpy(wanted.name, from.name, sizeof(wanted.name));
  wanted.major = from.major;
  wanted.minor = from.minor;
  wanted.totalGlobalMem = from.totalGlobalMem;
  wanted.multiProcessorCount = from.multiProcessorCount;
  return wanted;
}

}  // namespace cuaudit::cudart
