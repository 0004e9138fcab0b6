// SPDX-License-Identifier: MIT
// properties.h: fills a cudaDeviceProp of any version from the driver's attributes.
//
//   Errors    those of the driver.
//   Faults    calls the driver: DeviceGetName, DeviceGetUuid, DeviceTotalMem, DeviceGetAttribute.
//   Source    CUDA Runtime API 13.0 and 12.4: the fields up to totalGlobalMem have the same offsets in both.
#pragma once

#include <span>

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

struct Property {
  unsigned short offset;
  bool wide;  // the field is a size_t, else an int
  CUdevice_attribute attribute;
};

// The caller zeroes `properties`.
cudaError_t ReadProperties(DriverRef driver, CUdevice device, std::span<const Property> fields, void* properties) noexcept;

}  // namespace cuaudit::cudart
