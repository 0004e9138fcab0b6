// SPDX-License-Identifier: MIT
// share.h: memory and events that another process may reach: a file without a name, and the 64 bytes that lead there.
//
//   ShareFile    a world's, made when it shares something for the first time: a table of what is shared, then the bytes. An allocation
//   moves
//                into it when its handle is first asked for.
//   Import       what this world has opened of another process: found through /proc/PID/fd, so the owner must live, and must be the same
//                user's, when it is opened; afterwards the mapping holds the bytes whatever becomes of the owner.
//   Owns         file descriptor and mappings; nothing of it is left when the last process that maps it is gone, however it ends.
//   Threads      the world's lock is held by every caller; the table's words are atomic, other processes change them.
//   Units        bytes.
//   Errors       false or nullptr: the system refuses, the table is full, or the name leads nowhere.
//   Faults       makes no driver calls.
//   Source       ours; what may be shared and opened is CUDA Driver API 13.0, see ipc_calls.cc and pool_share_calls.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/sim/arena.h"

namespace cuaudit::sim {

class World;
struct Range;

enum class ShareKind : std::uint32_t { Memory = 1, Event, Pool, PoolMemory };

// What an exported handle says. It fits the 64 bytes of every such handle.
struct ShareName {
  std::uint32_t magic;
  std::int32_t process;
  std::int32_t file;
  std::uint32_t slot;
  std::uint32_t life;  // of the slot
  ShareKind kind;
  std::uint32_t group;  // the slot of its pool
  std::uint32_t unused;
  std::uint64_t nonce;  // of the world
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

// Moves the range's bytes to the file. The range keeps its addresses.
bool ShareRange(World& world, Range* range, ShareKind kind, std::uint32_t group = 0) noexcept;
// Another owner than a range: an event, a pool. 0: the table is full.
std::uint32_t ShareSlot(World& world, ShareKind kind, std::uint32_t group = 0) noexcept;
ShareName NameShare(const World& world, std::uint32_t slot) noexcept;
// The name leads nowhere from now on. What others have opened stays theirs.
void EndShare(World& world, std::uint32_t slot) noexcept;
void EndShare(World& world, Range* range) noexcept;

// True when a world of this process gave the name.
bool IsOwnShare(const ShareName& name) noexcept;
// True while its owner shares it.
bool IsShareAlive(const ShareName& name) noexcept;
Import* FindImport(World& world, const ShareName& name) noexcept;
Import* OpenShare(World& world, const ShareName& name) noexcept;
void CloseShare(World& world, Import* import) noexcept;
// The world ends.
void DropShares(World& world) noexcept;

// A file without a name of `bytes` bytes; -1: refused.
int MakeShareFile(std::uint64_t bytes) noexcept;
char* MapShareFile(int file, std::uint64_t bytes, std::uint64_t offset) noexcept;
// Copies what is not zero, so that the target's untouched pages stay so.
void CopyUsed(char* to, const char* from, std::uint64_t bytes) noexcept;

}  // namespace cuaudit::sim
