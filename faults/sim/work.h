// SPDX-License-Identifier: MIT
// work.h: one piece of work, the same record whether it waits in a stream or stands in a graph.
//
//   Owns      nothing; a Work is copied. A Marker, Executable, Plan or Arguments inside is counted by whoever keeps the Work.
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

struct Arguments;
struct Executable;
struct Graph;
struct GraphMemory;
struct Plan;

enum class WorkType : std::uint8_t {
  Nothing,
  Kernel,
  Copy,
  Fill,
  HostFunction,
  Callback,
  Record,
  Wait,
  Alloc,
  Free,
  Launch,
  Child,
  Conditional,
  Write,
  Await,
  Batch
};

struct CallbackWork {
  CUstreamCallback function;
  void* argument;
  CUstream stream;
};

struct LaunchWork {
  Executable* executable;
  Plan* plan;  // what it was when it was launched
};

// A value in memory: Write stores it, Await holds the stream until what is there compares with it. Or semaphores of another interface,
// the same for each of a list in Work::arguments.
struct ValueWork {
  std::uint64_t address;
  std::uint64_t value;
  std::uint32_t compare;                            // CU_STREAM_WAIT_VALUE_GEQ, EQ, AND or NOR
  bool wide;                                        // 8 bytes
  bool given_up;                                    // nobody could ever write it
  std::uint32_t count = 0;                          // of semaphores; 0: a value in memory
  const CUexternalSemaphore* semaphores = nullptr;  // whose values CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS or ..._WAIT_PARAMS say
  const void* parameters = nullptr;
};

struct Work {
  WorkType type = WorkType::Nothing;
  bool cooperative = false;        // of a kernel
  Arguments* arguments = nullptr;  // of a kernel, the operations of a batch, the list of semaphores
  GraphMemory* memory = nullptr;   // of Alloc and Free in a graph
  std::uint64_t allocation = 0;    // of Free in a stream: Range::id, since the address may be another's when its turn comes
  union {
    CUDA_MEMCPY3D copy;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CallbackWork callback;
    Marker* marker;       // Record and Wait in a stream
    CUevent event;        // Record and Wait in a graph
    CUdeviceptr address;  // Free
    LaunchWork launch;    // Launch
    Graph* child;         // Child
    CUDA_CONDITIONAL_NODE_PARAMS conditional;
    ValueWork value;  // Write and Await
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
  };
  Work() noexcept : copy{} {}
};

inline constexpr std::size_t kStepMarkers = 2;  // where those of the steps begin

struct Operation {
  Operation* next = nullptr;
  std::uint64_t ticket = 0;
  std::uint64_t submitted = 0;  // virtual time of the call
  void* staging = nullptr;      // bytes that the work reads instead of the client's
  std::size_t staging_bytes = 0;
  Vector<Marker*> markers;  // of a launch: the launch of its executable before it, its own end, and if its plan has event steps
                            // one for each step, null for others and for dead events
  Clock clock;              // of an operation that the CPU may see to have run
  Work work;
};

}  // namespace cuaudit::sim
