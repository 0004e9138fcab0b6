// SPDX-License-Identifier: MIT
// work.h: one piece of work. A queued operation and a graph node use the same record.
//
//   Owns      nothing; a Work is copied. Whoever keeps a Work holds the references to its Marker, Executable, Plan or Arguments.
//   Threads   the caller holds the world's lock.
//   Units     bytes, elements of `element` bytes.
//   Source    CUDA Driver API 13.0.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include <cuda.h>

#include <cstdint>

#include "faults/sim/state/objects.h"

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
  Plan* plan;  // the executable's plan at the time of the launch
};

// A value in memory: Write stores it, Await holds the stream until the stored value compares with it. If `count` is not 0: external
// semaphores, each with its parameters, listed in Work::arguments.
struct ValueWork {
  std::uint64_t address;
  std::uint64_t value;
  std::uint32_t compare;                            // CU_STREAM_WAIT_VALUE_GEQ, EQ, AND or NOR
  bool wide;                                        // 8 bytes
  bool given_up;                                    // the wait was given up
  std::uint32_t count = 0;                          // number of semaphores; 0: a value in memory
  const CUexternalSemaphore* semaphores = nullptr;  // CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS or ..._WAIT_PARAMS hold their values
  const void* parameters = nullptr;
};

struct Work {
  WorkType type = WorkType::Nothing;
  bool cooperative = false;        // of a kernel
  Arguments* arguments = nullptr;  // of a kernel; or the operations of a batch, or the list of semaphores
  GraphMemory* memory = nullptr;   // of Alloc and Free in a graph
  std::uint64_t allocation = 0;    // of Free in a stream: Range::id, since the address may be reused before the free runs
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

inline constexpr std::size_t kStepMarkers = 2;  // index of the first step's marker in Operation::markers

struct Operation {
  Operation* next = nullptr;
  std::uint64_t ticket = 0;
  std::uint64_t origin = 0;     // of the call that queued it (Origin)
  std::uint64_t submitted = 0;  // virtual time of the submitting call
  void* staging = nullptr;      // a copy that the work reads instead of the client's bytes
  std::size_t staging_bytes = 0;
  Vector<Marker*> markers;  // of a launch: the launch of its executable before it, its own end, and if its plan has event steps
                            // one for each step, null for others and for dead events
  Clock clock;              // of an operation that the CPU may see to have run
  Work work;
};

}  // namespace cuaudit::sim
