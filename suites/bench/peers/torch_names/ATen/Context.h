// SPDX-License-Identifier: MIT
// Stand-in, as c10/cuda/CUDACachingAllocator.h.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

namespace at {
struct Context {
  void lazyInitDevice(c10::DeviceType type);
};
Context& globalContext();
}  // namespace at
