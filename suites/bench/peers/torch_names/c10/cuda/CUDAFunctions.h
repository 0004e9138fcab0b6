// SPDX-License-Identifier: MIT
// Stand-in, as its neighbour CUDACachingAllocator.h.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

namespace c10::cuda {
DeviceIndex device_count() noexcept;
void set_device(DeviceIndex device);
}  // namespace c10::cuda
