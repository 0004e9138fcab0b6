// SPDX-License-Identifier: MIT
// snapshot.h: every segment and block of an allocator, as plain data.
//
//   Owns      its vectors.
//   Threads   taken arena by arena: while other threads allocate it is of no single moment, but each segment's blocks tile it.
//   Units     bytes.
//   Faults    makes no driver calls.
//   Not here  how it is written (PyTorch's pickle, text).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/pool.h"

namespace cuaudit::alloc {

enum class BlockState : std::uint8_t {
  ActiveAllocated,    // a user holds it
  ActivePendingFree,  // freed; not given out before its uses are over
  Inactive,           // free; with pending uses under Reuse::Wait
  Unmapped,           // address space of an expandable segment without memory behind it (only in Snapshot::unmapped)
};

struct PendingUse {
  std::uint64_t stream = 0;    // identity, as cuStreamGetId
  CUstream handle = nullptr;   // as first seen
  std::uint64_t sequence = 0;  // the stream's own count of recordings
  bool captured = false;       // of a capture that is not over; `sequence` is the capture's id
};

struct SnapshotBlock {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  std::size_t requested = 0;
  BlockState state = BlockState::Inactive;
  bool in_thread_cache = false;
  std::uint64_t stream = 0;      // that it was last allocated for
  std::uint64_t generation = 0;  // how often its record has been given out
  void* stack = nullptr;         // of its allocation, as Tracer::capture answered; null without a tracer
  std::vector<PendingUse> uses;
};

struct SnapshotSegment {
  int device = 0;
  CUdeviceptr address = 0;
  std::size_t total_size = 0;
  std::size_t allocated_size = 0;
  std::size_t active_size = 0;
  std::size_t requested_size = 0;
  std::uint64_t stream = 0;
  CUstream stream_handle = nullptr;
  bool large = false;
  bool expandable = false;  // then one of these per contiguous mapped run
  PoolId pool;
  void* stack = nullptr;
  std::vector<SnapshotBlock> blocks;  // by address; they tile the segment
};

struct Snapshot {
  std::vector<SnapshotSegment> segments;  // by device, then address
};

}  // namespace cuaudit::alloc
