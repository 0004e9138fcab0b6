// SPDX-License-Identifier: MIT
// share.h: memory and events that another process may open: an unnamed file, and the 64-byte handle that leads to it.
//
//   ShareFile belongs to one world and is made when the world first shares something: a table of what is shared, then the bytes. An
//             allocation moves into it when its handle is first requested.
//   Import    what this world opened from another process. It is found through /proc/PID/fd, so the owner must be alive and belong to the
//             same user when it is opened. Afterwards the mapping keeps the bytes, whatever becomes of the owner.
//   Owns      file descriptor and mappings. Nothing is left when the last process that maps them is gone, however it ends.
//   Threads   the caller holds the world's lock; the table's words are atomic, because other processes change them.
//   Units     bytes.
//   Errors    false or nullptr: the system refuses, the table is full, or the name leads nowhere.
//   Source    CUDA Driver API 13.0 for what may be shared and opened: external_calls.cc and pool_calls.cc.
#pragma once

#include <cstdint>

#include "faults/sim/state/objects.h"

namespace cuaudit::sim {

class World;
struct Range;

// Moves the range's bytes into the file. The range keeps its addresses.
bool ShareRange(World& world, Range* range, ShareKind kind, std::uint32_t group = 0) noexcept;
// Takes a slot for an event or a pool. 0: the table is full.
std::uint32_t ShareSlot(World& world, ShareKind kind, std::uint32_t group = 0) noexcept;
ShareName NameShare(const World& world, std::uint32_t slot) noexcept;
// Ends the share: its name no longer works. What others have opened stays theirs.
void EndShare(World& world, std::uint32_t slot) noexcept;
void EndShare(World& world, Range* range) noexcept;

// True if a world of this process made the name.
bool IsOwnShare(const ShareName& name) noexcept;
// True while the owner still shares it.
bool IsShareAlive(const ShareName& name) noexcept;
Import* FindImport(World& world, const ShareName& name) noexcept;
Import* OpenShare(World& world, const ShareName& name) noexcept;
void CloseShare(World& world, Import* import) noexcept;
// Called when the world is destroyed.
void DropShares(World& world) noexcept;

// Makes an unnamed file of `bytes` bytes; -1: the system refuses.
int MakeShareFile(std::uint64_t bytes) noexcept;
char* MapShareFile(int file, std::uint64_t bytes, std::uint64_t offset) noexcept;
// Copies only pages that are not zero, so that the target's untouched pages stay uncommitted.
void CopyUsed(char* to, const char* from, std::uint64_t bytes) noexcept;

}  // namespace cuaudit::sim
