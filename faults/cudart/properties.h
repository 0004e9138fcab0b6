// SPDX-License-Identifier: MIT
// properties.h: a cudaDeviceProp of any version from the driver's attributes.
//
//   Owns      nothing.
//   Threads   safe.
//   Errors    as the driver answers.
//   Faults    makes driver calls: DeviceGetName, DeviceGetUuid, DeviceTotalMem, DeviceGetAttribute.
//   Source    CUDA Runtime API 13.0 and 12.4: the fields up to totalGlobalMem stand at the same places in both.
#pragma once

#include <span>

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

struct Property {
  unsigned short offset;
  bool wide;  // size_t, else int
  CUdevice_attribute attribute;
};

// `properties` is zeroed by the caller.
cudaError_t ReadProperties(DriverRef driver, CUdevice device, std::span<const Property> fields, void* properties) noexcept;

}  // namespace cuaudit::cudart
