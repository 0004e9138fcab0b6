// SPDX-License-Identifier: MIT
// history.h: who read and wrote which bytes of one allocation, as far as it can still be in conflict with anything.
//
//   Owns      its spans: intervals that do not overlap, each with its last writer and its readers since, one for each slot; and its
//             patches: boxes of many rows, each touched by one operation, however many rows that are.
//   Threads   the world's lock is held by every caller.
//   Units     bytes; addresses as the caller counts them.
//   Errors    when the books are full an access is forgotten, and the oldest of 256 patches for a new one: fewer findings, never a false
//             one.
//   Faults    makes no driver calls.
//   Source    ours; a treap with priorities hashed from the address, so its shape is deterministic.
#pragma once

#include "faults/sim/box.h"
#include "faults/sim/clock.h"

namespace cuaudit::sim {

struct Trace {
  Stamp stamp;
  std::uint64_t origin = 0;
};

struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Trace write;
  Vector<Trace> reads;
  Span* left = nullptr;
  Span* right = nullptr;
};

struct Patch {
  Box box;
  Trace trace;
  bool write = false;
};

struct History {
  std::uint64_t generation = 0;
  Span* root = nullptr;
  Vector<Patch> patches;
  Vector<Trace> uses;  // of the whole allocation, by kernels
  Trace birth;         // a stream-ordered allocation
  Trace death;         // a stream-ordered free
  History* next = nullptr;
  History* previous = nullptr;
};

// What an access that conflicts is told of.
struct Conflict {
  void (*tell)(void* teller, std::uint64_t begin, std::uint64_t end, const Trace& earlier);
  void* teller;
};

History* MakeHistory(World& world) noexcept;
void FreeHistory(World& world, History* history) noexcept;
// Forgets what cannot be in conflict any more; call it before anything below.
void Refresh(World& world, History* history) noexcept;
// Notes that the stream's last operation touches [begin, end), and tells of those it is not ordered after.
void NoteRead(World& world, History* history, const Stream* stream, std::uint64_t begin, std::uint64_t end, const Trace& trace,
              const Conflict& conflict) noexcept;
void NoteWrite(World& world, History* history, const Stream* stream, std::uint64_t begin, std::uint64_t end, const Trace& trace,
               const Conflict& conflict) noexcept;
// The same for a box.
void NotePatch(World& world, History* history, const Stream* stream, const Patch& patch, const Conflict& conflict) noexcept;
void NoteUse(World& world, History* history, const Trace& trace) noexcept;
// Tells of every access and use that the stream's last operation is not ordered after; stream null: that the host does not know.
void TellUnordered(World& world, const History* history, const Stream* stream, const Conflict& conflict) noexcept;

}  // namespace cuaudit::sim
