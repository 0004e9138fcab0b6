// SPDX-License-Identifier: MIT
// work.h: one piece of work, the same record whether it waits in a stream or stands in a graph.
//
//   Owns      nothing; a Work is copied. A Marker or Executable inside is counted by whoever queues it.
//   Threads   the world's lock is held by every caller.
//   Units     bytes, elements of `element` bytes.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include <cuda.h>

#include <cstdint>

#include "faults/sim/objects.h"

namespace cuaudit::sim {

struct Executable;
struct Graph;

enum class WorkType : std::uint8_t { Nothing, Kernel, Copy, Fill, HostFunction, Callback, Record, Wait, Alloc, Free, Launch, Child };

struct CallbackWork {
  CUstreamCallback function;
  void* argument;
  CUstream stream;
};

struct Work {
  WorkType type = WorkType::Nothing;
  union {
    CUDA_MEMCPY3D copy;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CallbackWork callback;
    Marker* marker;          // Record and Wait in a stream
    CUevent event;           // Record and Wait in a graph
    CUdeviceptr address;     // Free
    Executable* executable;  // Launch
    Graph* child;            // Child
  };
  Work() noexcept : copy{} {}
};

struct Operation {
  Operation* next = nullptr;
  std::uint64_t ticket = 0;
  Work work;
};

}  // namespace cuaudit::sim
