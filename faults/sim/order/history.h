// SPDX-License-Identifier: MIT
// history.h: who read and wrote which bytes of one allocation, as far as a later access can still be in conflict with it.
//
//   Owns      spans: disjoint intervals, each with its last writer and, for each slot, its last reader since; and patches: boxes of many
//             rows, each touched by one operation.
//   Threads   the caller holds the world's lock.
//   Units     bytes; addresses as the caller counts them.
//   Errors    when the arena is full, an access is forgotten; when there are 256 patches, the oldest is. Both mean fewer findings, never a
//             false one.
#pragma once

#include "faults/sim/base/box.h"
#include "faults/sim/state/order.h"

namespace cuaudit::sim {

class World;
struct Stream;

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
  Trace birth;         // the stream-ordered allocation, if it was one
  Trace death;         // the stream-ordered free, if there was one
  History* next = nullptr;
  History* previous = nullptr;
};

// Callback that receives the earlier accesses that an access is in conflict with.
struct Conflict {
  void (*tell)(void* teller, std::uint64_t begin, std::uint64_t end, const Trace& earlier);
  void* teller;
};

History* MakeHistory(World& world) noexcept;
void FreeHistory(World& world, History* history) noexcept;
// Forgets what cannot be in conflict any more. Call it before any function below.
void Refresh(World& world, History* history) noexcept;
// Notes that the stream's last operation touches [begin, end), and reports the earlier accesses that it is in conflict with and not ordered
// after.
void NoteRead(World& world, History* history, const Stream* stream, std::uint64_t begin, std::uint64_t end, const Trace& trace,
              const Conflict& conflict) noexcept;
void NoteWrite(World& world, History* history, const Stream* stream, std::uint64_t begin, std::uint64_t end, const Trace& trace,
               const Conflict& conflict) noexcept;
// The same for a box.
void NotePatch(World& world, History* history, const Stream* stream, const Patch& patch, const Conflict& conflict) noexcept;
void NoteUse(World& world, History* history, const Trace& trace) noexcept;
// Reports every access and use that the stream's last operation is not ordered after; with a null stream, those that the host does not know
// to be done.
void TellUnordered(World& world, const History* history, const Stream* stream, const Conflict& conflict) noexcept;

}  // namespace cuaudit::sim
