// SPDX-License-Identifier: MIT
// trace.h: who is told what an allocator does, and when memory runs out.
//
//   Owns      nothing; the pointers behind `self` are the observer's and must outlive their registration.
//   Threads   called from whichever thread does it, possibly with an arena's lock held: an observer must not call the allocator.
//             The events of one address come in order; events of different addresses may overtake each other.
//   Units     bytes.
//   Faults    makes no driver calls.
//   Source    actions: PyTorch's trace entries; use_* and wait_* are ours.
//   Not here  keeping a history, clocks, symbols: an observer's business.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "allocator/pool.h"

namespace cuaudit::alloc {

enum class TraceAction : std::uint8_t {
  Alloc,
  FreeRequested,
  FreeCompleted,  // may be given out again from now on
  SegmentAlloc,
  SegmentFree,
  SegmentMap,  // expandable segments
  SegmentUnmap,
  Oom,          // address: free bytes of the device
  UseRecorded,  // RecordUse, RecordStream's recording, KeepAliveUntil. stream: the user; sequence: its number
  UseWaited,    // `stream` was made to wait for `other` up to `sequence` before it got the block
  UseElided,    // it need not: it had already, or had waited for a stream that had
};
inline constexpr std::size_t kTraceActions = 11;

struct TraceEvent {
  TraceAction action;
  int device = 0;
  CUdeviceptr address = 0;
  std::size_t size = 0;  // of the block or segment
  std::size_t requested = 0;
  std::uint64_t stream = 0;  // identities, as cuStreamGetId
  std::uint64_t other = 0;
  std::uint64_t sequence = 0;
  PoolId pool;
  void* stack = nullptr;  // what `capture` answered in this call
};

struct Tracer {
  void* self = nullptr;
  // Before anything is locked: the caller's stack, kept by the tracer. The allocator copies the pointer, never reads it. May be null.
  void* (*capture)(void* self) noexcept = nullptr;
  void (*record)(void* self, const TraceEvent& event) noexcept = nullptr;
};

// Told at most once per backend, when a use is told apart less finely than it was recorded: RecordUse that means RecordStream, or uses of a
// stream that share a stamp. No lock is held. Null: nobody.
struct Warning {
  void* self = nullptr;
  void (*warn)(void* self, const char* text) noexcept = nullptr;
};

// The account of an allocation that failed.
struct OutOfMemory {
  int device = 0;
  std::size_t requested = 0;
  std::size_t rounded = 0;  // of the segment that was asked for
  std::uint64_t stream = 0;
  PoolId pool;
  CUresult driver_result = CUDA_SUCCESS;  // SUCCESS: refused by the limit before the driver was asked
  std::size_t device_free = 0;            // cuMemGetInfo; 0 with device_total 0: it failed too
  std::size_t device_total = 0;
  std::size_t limit = 0;  // SIZE_MAX: none
  std::size_t allocated = 0;
  std::size_t reserved = 0;
  std::size_t pending = 0;       // freed, uses not over
  std::size_t largest_free = 0;  // of the blocks that this request might have used
};

struct OomObserver {
  void* self = nullptr;
  void (*on_oom)(void* self, const OutOfMemory& account) noexcept = nullptr;  // no lock is held: it may take a snapshot
};
// Asked before the driver is: true when it freed something, then the search is repeated. No lock is held: it may call Free.
struct FreeMemoryCallback {
  void* self = nullptr;
  bool (*free_memory)(void* self, int device, std::size_t bytes) noexcept = nullptr;
};

}  // namespace cuaudit::alloc
