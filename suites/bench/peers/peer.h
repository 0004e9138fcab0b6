// SPDX-License-Identifier: MIT
// peer.h: an allocator under comparison, as a table of functions in a shared library.
//
// Each peer is a library, so that a peer that cannot be built or loaded on a machine costs only its own rows. A peer owns its allocator
// until the process ends. allocate, free and record may be called from any thread, everything else from one thread. A token stands for a
// stream and is made once, so that a loop does not pay for looking the stream up. open and token return a text, or null on success;
// allocate returns null when it fails. Sizes are in bytes.
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
