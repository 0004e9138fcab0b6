// SPDX-License-Identifier: MIT
// snapshot.h: an allocator's memory at one moment, as plain values, and its form for pytorch.org/memory_viz.
//
//   Owns      its values: nothing points into the allocator that filled it in.
//   Threads   values; no shared state.
//   Units     bytes; times in microseconds.
//   Errors    WriteSnapshot: false when the host has no memory, `out` then holds nothing. WriteSnapshotFile: what went wrong, as text; the file
//             is there whole or not at all. CheckSnapshot: the first rule of the viewer that is broken.
//   Faults    makes no driver calls.
//   Source    fields and actions of PyTorch's torch.cuda.memory._snapshot; ours beside them, which its viewer passes over: a block's
//             `pending_uses`, the actions use_recorded, use_waited and use_elided, `backend`, `trace_overflowed`.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "allocator/trace/history.h"

namespace cuaudit::alloc {

struct SnapshotUse {
  std::uint64_t stream = 0;  // id, not handle: handles come back for other streams
  std::uint64_t sequence = 0;
  bool is_ready = false;  // the device was seen past it
};

enum class BlockState : std::uint8_t {
  ActiveAllocated,
  ActivePendingFree,  // freed, but out of reach until its uses are done
  Inactive,
};

struct SnapshotBlock {
  std::size_t size_bytes = 0;
  std::size_t requested_bytes = 0;  // 0 when inactive
  BlockState state = BlockState::Inactive;
  StackId stack = kNoStack;  // where it was allocated
  std::vector<SnapshotUse> pending_uses;
};

struct SnapshotSegment {
  int device = 0;
  CUdeviceptr address = 0;
  std::uint64_t stream = 0;
  bool is_large = false;
  bool is_expandable = false;
  std::uint64_t pool_id[2] = {};  // {0, 0}: the common pool
  StackId stack = kNoStack;
  std::vector<SnapshotBlock> blocks;  // they tile the segment, in the order of their addresses
};

struct Snapshot {
  std::string backend = "native";
  std::vector<SnapshotSegment> segments;
  std::vector<TraceEntry> trace;  // the oldest first
  std::uint64_t trace_overflowed = 0;
  std::uint64_t trace_max_entries = 0;
  int device_count = 1;
  // As PyTorch's allocator_settings; a value that reads as a number or as True or False is written as one.
  std::vector<std::pair<std::string, std::string>> settings;
};

// `stacks` as the history that gave `trace` has them; null: frames are empty.
[[nodiscard]] bool WriteSnapshot(const Snapshot& snapshot, const CallStacks* stacks, std::string* out) noexcept;
[[nodiscard]] std::string WriteSnapshotFile(const Snapshot& snapshot, const CallStacks* stacks, const std::string& path);

// Empty, or which rule is broken and where: blocks that leave or overlap their segment, a free_requested that never ends.
[[nodiscard]] std::string CheckSnapshot(const Snapshot& snapshot);

}  // namespace cuaudit::alloc
