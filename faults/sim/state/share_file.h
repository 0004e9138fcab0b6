// SPDX-License-Identifier: MIT
// share_file.h: the records of what other processes may open, and of what was opened from them. share.h works on them.
//
//   ShareFile belongs to one world and is made when the world first shares something: a table of what is shared, then the bytes.
//   Import    what this world opened from another process.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
#pragma once

#include <cstdint>

#include "faults/sim/base/arena.h"

namespace cuaudit::sim {

struct Range;

enum class ShareKind : std::uint32_t { Memory = 1, Event, Pool, PoolMemory };

// The content of an exported handle. It fits into the 64 bytes of each such handle.
struct ShareName {
  std::uint32_t magic;
  std::int32_t process;
  std::int32_t file;
  std::uint32_t slot;
  std::uint32_t life;  // generation of the slot
  ShareKind kind;
  std::uint32_t group;  // slot of its pool
  std::uint32_t unused;
  std::uint64_t nonce;  // tells worlds apart
  std::uint64_t size;
};
static_assert(sizeof(ShareName) <= 64);

struct Import {
  ShareName name;
  char* bytes;
  char* table;
  std::uint32_t opens;
  Range* range;
};

struct ShareFile {
  int file = -1;
  char* table = nullptr;
  std::uint32_t slots = 0;
  std::uint64_t end = 0;
  std::uint64_t nonce = 0;
  Vector<Range*> ranges;
  Vector<Import*> imports;
};

}  // namespace cuaudit::sim
