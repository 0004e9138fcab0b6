// SPDX-License-Identifier: MIT
// peer.h: an allocator under comparison, as a table of functions in a shared library of its own.
//
//   Owns      nothing; a peer owns its allocator until the process ends.
//   Threads   allocate, free and record from any thread; the rest from one.
//   Streams   a token stands for a stream towards the peer: made once, so that looking a stream up costs nobody anything in a loop.
//   Units     bytes.
//   Errors    open and token answer a text, null when all is well; allocate answers null.
//   Why       a library each: what does not build or load on a machine costs its own rows, no others.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

struct PeerUsage {
  std::size_t allocated = 0;       // now
  std::size_t allocated_peak = 0;  // since reset_peaks, as the peer counts it
  std::size_t reserved = 0;
  std::size_t reserved_peak = 0;
};

struct PeerCounters {
  std::uint64_t events_live = 0;
  std::uint64_t blocks_pending = 0;
  std::uint64_t segments = 0;
};

struct Peer {
  const char* name;
  const char* (*version)();
  const char* (*open)(int device, const char* settings);
  const char* (*token)(CUstream stream, void** out);
  void* (*allocate)(std::size_t bytes, void* token);
  void (*free)(void* pointer, void* token);
  // The stream behind the token has used the block: RecordUse or recordStream. Null: the peer has no such thing.
  void (*record)(void* pointer, void* token);
  bool (*usage)(PeerUsage* out);        // null: it does not count
  bool (*counters)(PeerCounters* out);  // null: it does not count
  void (*reset_peaks)();
  void (*empty)();
};

// What each library exports.
extern "C" __attribute__((visibility("default"))) const Peer* cuaudit_peer();
