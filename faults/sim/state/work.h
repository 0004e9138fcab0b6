// SPDX-License-Identifier: MIT
// work.h: one piece of work, and the records of what is ordered before what.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include <cuda.h>

#include <cstdint>

#include "faults/driver/kinds.h"
#include "faults/sim/base/arena.h"
#include "faults/sim/state/objects.h"

namespace cuaudit::sim {

// The records of what is ordered before what: vector clocks, one for each stream, one for each recording of an event, one for the
// host; and of the device memory that was freed lately. clock.h and lifetime.h work on them.
//
//   Slot      a stream's index in every clock. A stream takes one at its first operation and keeps it until it is destroyed.
//   Horizon   for each slot, the last operation that is ordered before. Reference-counted.
//   Rumor     what a host function has seen done. It reaches the threads that the function may have woken, but never the thread whose call
//             it ran in.
//   Threads   the caller holds the world's lock.
//   Units     a count is the number of operations handed to a slot so far.

// One operation: number `count` of its slot.
struct Stamp {
  std::uint32_t slot = 0;  // 0: none
  std::uint64_t count = 0;
};

// For each slot, the last operation that is ordered before. Immutable while more than one clock references it.
struct Horizon {
  std::uint32_t references;
  std::uint32_t size;
  std::uint64_t count[1];
};

// An operation and everything that is ordered before it.
struct Clock {
  Stamp last;
  std::uint64_t generation = 0;  // of `behind`. The host knows all of an older generation.
  Horizon* behind = nullptr;
};

struct Lane {
  Clock clock;
  std::uint64_t context = 0;  // handle of the context that owns the stream
  std::uint64_t green = 0;    // handle of the stream's green context; 0: none
  bool taken = false;
  bool blocking = false;
  bool fresh = false;        // has work that is not yet in the legacy stream's clock
  bool open = false;         // waited for something untraceable: later operations count as ordered after everything
  std::uint64_t opened = 0;  // the last operation before that wait
};

// What a host function has seen done that ran inside a call of `thread`.
struct Rumor {
  Clock clock;
  std::uint64_t thread = 0;  // Thread::serial
};

struct Order {
  Vector<Lane> slots;          // slot 0 is not used
  Vector<std::uint64_t> host;  // for each slot, the last operation that the host knows to be done
  // For each slot, the last operation that the host would know to be done if the plan had refused no wait. Its length is the highest slot
  // that a refused wait concerned; empty until one was refused.
  Vector<std::uint64_t> supposed;
  bool supposing = false;         // what the host learns now goes to `supposed`
  Vector<std::uint32_t> resting;  // slots of destroyed streams
  std::uint64_t unknown = 0;      // number of slots with operations that the host does not know to be done
  std::uint64_t generation = 1;   // grows when `unknown` falls to 0: no older operation can be in conflict any more
  Vector<Rumor> rumors;
};

// An operation and the call that queued it.
struct Trace {
  Stamp stamp;
  std::uint64_t origin = 0;
};

// Freed device memory whose addresses may not have been reused.
struct Freed {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  driver::Kind kind = driver::Kind::None;
  Trace death;
};

// One piece of work. A queued operation and a graph node use the same record.
//
//   Owns      nothing; a Work is copied. Whoever keeps a Work holds the references to its Marker, Executable, Plan or Arguments.
//   Threads   the caller holds the world's lock.
//   Units     bytes, elements of `element` bytes.
//   Source    CUDA Driver API 13.0.

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
  std::uint64_t submitted = 0;  // virtual time of the submitting call
  void* staging = nullptr;      // a copy that the work reads instead of the client's bytes
  std::size_t staging_bytes = 0;
  Vector<Marker*> markers;  // of a launch: the launch of its executable before it, its own end, and if its plan has event steps
                            // one for each step, null for others and for dead events
  Clock clock;              // of an operation that the CPU may see to have run
  Work work;
};

}  // namespace cuaudit::sim
