// SPDX-License-Identifier: MIT
// options.h: how an allocator rounds, splits, reuses and gives back, as plain data.
//
//   Units     bytes; fractions of a device's memory from 0 to 1.
//   Errors    Check answers nullptr, or what is wrong in one line ("max_split_size: 20971520 or more, or 0 for no limit").
//   Faults    makes no driver calls.
//   Source    sizes and their meaning: PyTorch c10/cuda/CUDAAllocatorConfig.h and CUDACachingAllocator.cpp, 2025; policies are ours.
//   Not here  the text form (its writer and parser stand beside their table of keys).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cuaudit::alloc {

inline constexpr std::size_t kMinBlock = 512;                         // every size is a multiple
inline constexpr std::size_t kSmallLimit = std::size_t{1} << 20;      // requests up to here come from the small pool
inline constexpr std::size_t kSmallSegment = std::size_t{2} << 20;    // what is asked of the driver for them
inline constexpr std::size_t kMinLargeAlloc = std::size_t{10} << 20;  // requests from here on get a segment of their own
inline constexpr std::size_t kRoundLarge = std::size_t{2} << 20;      // rounded up to a multiple of this
inline constexpr std::size_t kTooLarge = std::size_t{1} << 60;        // refused up front
inline constexpr std::size_t kDivisionSteps = 16;                     // one for each power of two from 1 MiB to 64 GiB

// What happens to a freed block that other streams still use.
enum class Reuse : std::uint8_t {
  Poll,  // it returns when its uses are seen to be over; nobody waits
  Wait,  // it returns at once; the stream that gets it waits on the device for the uses it has not yet waited for
};

// Whether a stream may be given what another stream's blocks left.
enum class CrossStream : std::uint8_t {
  Never,  // as PyTorch: a segment serves one stream for its life, unless that stream was retired
  Ready,  // when all work on it is known to be over
  Wait,   // also when it is not: the requesting stream waits (only with Reuse::Wait)
};

// How it is learnt that a recorded use is over.
enum class Completion : std::uint8_t {
  Events,        // a pooled event per use, queried when somebody needs to know
  StreamWrites,  // the stream writes its sequence number into mapped host memory; a load tells. With Reuse::Poll only. Falls back to
                 // Events, counted, for a device without 64-bit stream memory operations
};

struct Options {
  // Rounding, splitting.
  std::array<std::uint32_t, kDivisionSteps> roundup_power2_divisions{};  // 0 or 1: multiples of 512; else a power of two up to 64
  std::size_t large_segment_size = std::size_t{20} << 20;                // for requests between 1 and 10 MiB; a multiple of 2 MiB
  std::size_t max_split_size = 0;                              // larger blocks are never split; 0: no limit; else > large_segment_size
  std::size_t max_non_split_rounding = std::size_t{20} << 20;  // how much larger than its request an unsplit oversize block may be

  // Limits.
  double memory_fraction = 1.0;               // of the device, (0, 1]
  double garbage_collection_threshold = 0.0;  // of the limit, [0, 1); 0: off. Needs memory_fraction < 1 or a limit by SetMemoryFraction

  // Growing.
  bool expandable_segments = false;  // over cuMemAddressReserve / cuMemMap; falls back, counted, where a device has none
  std::size_t page_size = 0;         // what such a segment grows by for requests over 1 MiB; a multiple of 2 MiB; 0: large_segment_size
  // How much of the time may go into moving free pages to where memory is wanted, [0, 1]; 0: none is moved; 1: whenever it spares new
  // memory. Needs expandable_segments. A page moves when all work on it is known to be over (allocator/README.md, "Pages that move").
  double remap_budget = 0.0;
  bool capture_reuse_by_topology = true;  // a block freed in a capture is reused in it when the graph orders its uses before

  // Reuse.
  Reuse reuse = Reuse::Poll;
  CrossStream cross_stream = CrossStream::Never;
  Completion completion = Completion::Events;
  bool deterministic =
      false;  // never looks at GPU progress: addresses and reserved memory follow from the host's calls alone; needs Reuse::Wait
  std::uint32_t max_stamps_per_stream = 64;  // recorded uses of one stream whose end is told apart, 4 to 1024; older ones share one
  bool trust_stream_handles = false;  // handle -> identity is remembered: spares cuStreamGetId on each Allocate(CUstream), and asks the
                                      // caller to RetireStream before destroying a stream

  // How often a thread asks whether the stream is being captured, while its cache serves it: every so many allocations, 1 to 1048576. 1:
  // each time, so that a capture that the allocator was not told of is always refused, never given what other work may still use.
  std::uint32_t capture_check_interval = 61;

  // How often a thread asks whether a stream's handle still means the same stream, in calls that name streams by handle: every so many
  // calls, and whenever it finds nothing free. 1: each time. Safe as long as the driver gives no handle to a new stream before the
  // destroyed one's work is over, which an H200's does not keep to (docs/ALLOCATOR.md, "Streams named by handle").
  std::uint32_t handle_check_interval = 1;

  // The cache of each thread and stream: blocks of exactly the size that is asked for, reached without a lock.
  bool thread_cache = true;
  std::size_t thread_cache_bytes = std::size_t{64} << 20;  // for one thread and stream; larger blocks are never kept there
};

// nullptr, or what is wrong and what was expected.
const char* Check(const Options& options) noexcept;

}  // namespace cuaudit::alloc
