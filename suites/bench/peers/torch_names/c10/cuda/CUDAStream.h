// SPDX-License-Identifier: MIT
// Stand-in, as its neighbour CUDACachingAllocator.h.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

namespace c10::cuda {
struct CUDAStream {};
CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device);
}  // namespace c10::cuda
