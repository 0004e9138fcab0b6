// SPDX-License-Identifier: MIT
// pool.h: streams as the allocator knows them, and private pools: for graph capture, and for users who want their own memory.
//
//   Owns      nothing; identities, options, and a checkpoint as plain data.
//   Threads   immutable once filled in.
//   Source    PyTorch MemPool and beginAllocateToPool; `applies` stands for its filter on streams.
//   Faults    makes no driver calls.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuaudit::alloc {

// A stream as the allocator knows it: by an identity that is never given out again, unlike a CUstream.
//
//   Owns      nothing. Valid as long as its allocator; copied freely.
//   Threads   immutable.
//   Streams   made by Allocator::Identify from a live stream. Whoever passes one to Allocate promises that the stream still lives then, and
//             that a capture of it was announced (allocator.h).
//             The legacy default stream, and each thread's per-thread one, are streams of a context like others.
//   Faults    makes no driver calls.

struct StreamRecord;

class StreamRef {
 public:
  StreamRef() = default;
  explicit StreamRef(StreamRecord* record) noexcept : record_(record) {}
  explicit operator bool() const noexcept { return record_ != nullptr; }
  bool operator==(const StreamRef&) const = default;
  StreamRecord* record() const noexcept { return record_; }
  std::uint64_t id() const noexcept;  // as cuStreamGetId; of a captured stream a number of the allocator, with the highest bit set
  CUstream handle() const noexcept;   // as it was when the stream was first seen
  int device() const noexcept;        // index in the allocator's list; -1 for a stream of no device of the allocator

 private:
  StreamRecord* record_ = nullptr;
};

struct PoolId {
  std::uint64_t first = 0;  // {0, 0} is the pool that everybody shares
  std::uint64_t second = 0;
  bool operator==(const PoolId&) const = default;
};

struct PoolOptions {
  bool use_on_oom = false;  // others may borrow from it before they hear OUT_OF_MEMORY
  bool no_split = false;
  // Where its segments come from; null: the driver. `release` is called only when all uses of the segment are over. Neither may call the
  // allocator.
  CUresult (*acquire)(void* user, int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept = nullptr;
  CUresult (*release)(void* user, int device, CUdeviceptr address, std::size_t bytes) noexcept = nullptr;
  void* user = nullptr;
  bool operator==(const PoolOptions&) const = default;
};

// Which allocations of a device go to the pool, between BeginAllocateToPool and EndAllocateToPool. Null: all of them.
// `stream.handle()` tells a captured stream; its other properties are those that Identify gives it. `applies` is called with no lock held,
// by several threads at once, until EndAllocateToPool has returned. It may call the allocator, but not end a route; what it allocates
// goes to the shared pool, no filter being asked about it.
struct Route {
  bool (*applies)(void* user, StreamRef stream) noexcept = nullptr;
  void* user = nullptr;
};

struct CheckpointBlock {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  std::size_t requested = 0;
  bool allocated = false;
};
struct CheckpointSegment {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  std::vector<CheckpointBlock> blocks;  // tile the segment
};
struct Checkpoint {
  int device = 0;
  PoolId pool;
  std::vector<CheckpointSegment> segments;
};
// What restoring a checkpoint did to pointers: those that are no longer allocated, and those that are allocated now.
struct RestoreResult {
  std::vector<CUdeviceptr> freed;
  std::vector<CUdeviceptr> allocated;
};

}  // namespace cuaudit::alloc
