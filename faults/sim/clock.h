// SPDX-License-Identifier: MIT
// clock.h: what is ordered before what: a vector clock for each stream, for each recording of an event, and one for the host.
//
//   Owns      the slots, one for each stream that has work the host does not know to be done; horizons and rumors, counted.
//   Threads   the world's lock is held by every caller. All host threads are one clock: how they synchronise among each other is
//             invisible here, so what one of them waited for counts as known to all. A host function is none of them: what it has
//             seen done is a rumor, which reaches the threads that it may have woken and never the one whose call it ran in.
//   Units     a count is the number of operations handed to a slot so far.
//   Errors    when the books are full an order is assumed that is not proven: fewer findings, never a false one.
//   Faults    makes no driver calls.
//   Source    ours; vector clocks after Lamport, Fidge and Mattern, epochs as in FastTrack (Flanagan, Freund 2009).
#pragma once

#include <cstdint>

#include "faults/sim/arena.h"

namespace cuaudit::sim {

class World;
struct Context;
struct GreenContext;
struct Stream;

// One operation: the count-th of its slot.
struct Stamp {
  std::uint32_t slot = 0;  // 0: none
  std::uint64_t count = 0;
};

// Per slot the last operation that is ordered before. Never changed while more than one clock looks at it.
struct Horizon {
  std::uint32_t references;
  std::uint32_t size;
  std::uint64_t count[1];
};

// An operation and all that is ordered before it.
struct Clock {
  Stamp last;
  std::uint64_t generation = 0;  // of `behind`: an older one is known to the host as a whole
  Horizon* behind = nullptr;
};

struct Lane {
  Clock clock;
  std::uint64_t context = 0;  // handle of the stream's owner
  std::uint64_t green = 0;    // handle of its green context
  bool taken = false;
  bool blocking = false;
  bool fresh = false;        // has work that the legacy stream's clock does not include
  bool open = false;         // waited for something that cannot be traced: what follows is ordered after anything
  std::uint64_t opened = 0;  // the last operation before that
};

// What a host function has seen done that ran inside a thread's call.
struct Rumor {
  Clock clock;
  std::uint64_t thread = 0;  // serial of that thread
};

struct Order {
  Vector<Lane> slots;             // slot 0 is nobody's
  Vector<std::uint64_t> host;     // per slot: the last operation that the host knows to be done
  Vector<std::uint32_t> resting;  // slots of destroyed streams
  std::uint64_t unknown = 0;      // slots with operations that the host does not know to be done
  std::uint64_t generation = 1;   // grows when `unknown` falls to 0: nothing older can be in conflict any more
  Vector<Rumor> rumors;
};

// The stream's next operation, after all that its stream and the legacy default stream order before it.
Stamp Tick(World& world, Stream* stream) noexcept;
// The stream's following operations come after `clock`.
void Join(World& world, Stream* stream, const Clock& clock) noexcept;
// The host knows that the clock's operations are done.
void Tell(World& world, const Clock& clock) noexcept;
void TellStream(World& world, const Stream* stream) noexcept;
// `green` when it is one: of its streams alone.
void TellContext(World& world, const Context* context, bool blocking_only, const GreenContext* green = nullptr) noexcept;
// A host function has run inside a call of the thread. Takes the clock over.
void Spread(World& world, Clock* clock, std::uint64_t thread) noexcept;
// The thread makes a call: it knows what host functions may have told it that ran inside the calls of others.
void Listen(World& world, std::uint64_t thread) noexcept;
// What the stream's last operation waited for cannot be traced: nothing of it is compared until the host has waited for it.
void LoseTrack(World& world, const Stream* stream) noexcept;

Clock ClockOf(World& world, const Stream* stream) noexcept;  // shared; to be dropped
void DropClock(World& world, Clock* clock) noexcept;
// Whether `earlier` is ordered before what follows in the stream; stream null: before what the host does next.
bool IsBehind(const World& world, const Stream* stream, Stamp earlier) noexcept;
bool IsKnown(const World& world, Stamp earlier) noexcept;
// Whether the stream's last operation can be in conflict with any: it has a slot, and its place is traced.
bool IsTraced(const World& world, const Stream* stream) noexcept;
void FreeSlot(World& world, Stream* stream) noexcept;

}  // namespace cuaudit::sim
