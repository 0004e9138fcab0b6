// SPDX-License-Identifier: MIT
// statistics.h: what an allocator counts.
//
//   Units     blocks, segments, bytes, calls.
//   Threads   a copy taken while other threads allocate is of no single moment. Peaks are exact with one thread; with several, a peak of
//             `allocated` and `requested` may be off by 64 MiB and what fits into a thread cache for each other thread.
//   Errors    all zero for a device that is not there, and in a forked child.
//   Source    the names and kinds are those of torch.cuda.memory_stats; from `reuse` on they are ours.
//   Faults    makes no driver calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cuaudit::alloc {

enum class PoolKind : std::uint8_t { All, Small, Large };
inline constexpr std::size_t kPoolKinds = 3;

struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  // what was ever added
  std::int64_t freed = 0;      // what was ever taken away
};
using StatArray = std::array<Stat, kPoolKinds>;  // [PoolKind]

struct Statistics {
  StatArray allocation, segment, active, inactive_split;                                           // how many
  StatArray allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;  // how much
  Stat oversize_allocations, oversize_segments;
  std::int64_t num_alloc_retries = 0;  // the driver refused, cached memory was released, and it was asked again
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;  // all pending uses were waited for, to release memory
  std::int64_t num_device_alloc = 0;      // successful cuMemAlloc or cuMemCreate
  std::int64_t num_device_free = 0;
  std::uint64_t max_split_size = 0;

  // Which step of the choice of memory served an allocation.
  std::uint64_t served_thread_cache = 0;   // ready, own stream, without a lock
  std::uint64_t served_own_ready = 0;      // ready, own stream
  std::uint64_t served_other_ready = 0;    // ready, another stream's
  std::uint64_t served_pending = 0;        // pending, with the least debt: the stream waits
  std::uint64_t served_capture_order = 0;  // pending in a capture whose graph orders the uses before
  std::uint64_t served_grown = 0;          // new memory
  std::uint64_t served_shared_pool = 0;    // borrowed from a pool created with use_on_oom

  // Uses.
  std::uint64_t uses_recorded = 0;    // RecordUse that recorded something
  std::uint64_t uses_own_stream = 0;  // RecordUse on the allocation stream: nothing to do
  std::uint64_t uses_merged = 0;      // replaced an earlier use of the same stream
  std::uint64_t uses_captured = 0;    // on a capturing stream: deferred
  std::uint64_t stamps_shared = 0;    // an older stamp was given up for a newer one: max_stamps_per_stream was reached
  std::uint64_t waits_issued = 0;     // stream waits
  std::uint64_t waits_elided = 0;     // not needed: the stream had waited for as much, itself or by waiting for one that had
  std::uint64_t uses_degraded = 0;    // RecordUse that a backend could only treat as RecordStream
  std::uint64_t polls = 0;            // event queries, and loads of stream-written words
  std::uint64_t blocks_pending = 0;   // freed, uses not over, now
  std::uint64_t bytes_pending = 0;
  std::uint64_t events_created = 0;
  std::uint64_t events_live = 0;  // pooled or in use, now

  std::uint64_t pages_moved = 0;  // with remap_budget: physical pages that serve other addresses in place of new ones
  std::uint64_t bytes_moved = 0;

  // What went wrong and was refused.
  std::uint64_t double_frees = 0;
  std::uint64_t foreign_pointers = 0;
  std::uint64_t fallbacks = 0;         // an option that the device does not support was replaced (expandable segments, stream writes)
  std::uint64_t releases_refused = 0;  // releases that failed; README.md says what is tried again
  std::uint64_t bytes_unusable = 0;  // of reserved_bytes, now: segments that nobody gets until they are given back; no snapshot shows them
  // Streams that were last seen in a capture, of which nothing has told since that it is over: a stream of it that was destroyed without
  // RetireStream never will, unless its handle is seen again. While there are any, or a route, nothing waits for the whole context, and how
  // often something stayed reserved for that:
  std::uint64_t streams_in_capture = 0;
  std::uint64_t left_for_captures = 0;
  std::uint64_t thread_caches = 0;
};

}  // namespace cuaudit::alloc
