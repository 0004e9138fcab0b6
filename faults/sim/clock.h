// SPDX-License-Identifier: MIT
// clock.h: vector clocks that tell which operation is ordered before which: one for each stream, one for each recording of an event, one
// for the host.
//
//   Slot      a stream's index in every clock. A stream takes one at its first operation and keeps it until it is destroyed.
//   Horizon   for each slot, the last operation that is ordered before. Reference-counted.
//   Rumor     what a host function has seen done. It reaches the threads that the function may have woken, but never the thread whose call
//             it ran in.
//   Threads   the caller holds the world's lock. All host threads share one clock: how they synchronise is invisible here, so what one
//             thread waited for counts as known to all.
//   Units     a count is the number of operations handed to a slot so far.
//   Errors    when the arena is full, an order is assumed without proof: fewer findings, never a false one.
//   Source    vector clocks after Lamport, Fidge and Mattern; epochs as in FastTrack (Flanagan, Freund 2009).
#pragma once

#include <cstdint>

#include "faults/sim/arena.h"

namespace cuaudit::sim {

class World;
struct Context;
struct GreenContext;
struct Stream;

// One operation: number `count` of its slot.
struct Stamp {
  std::uint32_t slot = 0;  // 0: none
  std::uint64_t count = 0;
};

// For each slot, the last operation that is ordered before. Immutable while more than one clock references it.
struct Horizon {
  std::uint32_t references;
  std::uint32_t size;
  std::uint64_t count[1];
};

// An operation and everything that is ordered before it.
struct Clock {
  Stamp last;
  std::uint64_t generation = 0;  // of `behind`. The host knows all of an older generation.
  Horizon* behind = nullptr;
};

struct Lane {
  Clock clock;
  std::uint64_t context = 0;  // handle of the context that owns the stream
  std::uint64_t green = 0;    // handle of the stream's green context; 0: none
  bool taken = false;
  bool blocking = false;
  bool fresh = false;        // has work that is not yet in the legacy stream's clock
  bool open = false;         // waited for something untraceable: later operations count as ordered after everything
  std::uint64_t opened = 0;  // the last operation before that wait
};

// What a host function has seen done that ran inside a call of `thread`.
struct Rumor {
  Clock clock;
  std::uint64_t thread = 0;  // Thread::serial
};

struct Order {
  Vector<Lane> slots;             // slot 0 is not used
  Vector<std::uint64_t> host;     // for each slot, the last operation that the host knows to be done
  Vector<std::uint32_t> resting;  // slots of destroyed streams
  std::uint64_t unknown = 0;      // number of slots with operations that the host does not know to be done
  std::uint64_t generation = 1;   // grows when `unknown` falls to 0: no older operation can be in conflict any more
  Vector<Rumor> rumors;
};

// Begins the stream's next operation. It comes after all that its stream and the legacy default stream order before it.
Stamp Tick(World& world, Stream* stream) noexcept;
// Orders the stream's later operations after `clock`.
void Join(World& world, Stream* stream, const Clock& clock) noexcept;
// Notes that the host knows the clock's operations to be done.
void Tell(World& world, const Clock& clock) noexcept;
void TellStream(World& world, const Stream* stream) noexcept;
// With `green`: only the streams of that green context.
void TellContext(World& world, const Context* context, bool blocking_only, const GreenContext* green = nullptr) noexcept;
// A host function has run inside a call of `thread`. Takes ownership of `clock`.
void Spread(World& world, Clock* clock, std::uint64_t thread) noexcept;
// `thread` makes a call: from now on it knows what host functions saw that ran inside other threads' calls.
void Listen(World& world, std::uint64_t thread) noexcept;
// The stream's last operation waited for something untraceable. The stream is not compared until the host has waited for it.
void LoseTrack(World& world, const Stream* stream) noexcept;

Clock ClockOf(World& world, const Stream* stream) noexcept;  // a reference; the caller calls DropClock
void DropClock(World& world, Clock* clock) noexcept;
// True if `earlier` is ordered before the stream's next work; with a null stream, before the host's next action.
bool IsBehind(const World& world, const Stream* stream, Stamp earlier) noexcept;
bool IsKnown(const World& world, Stamp earlier) noexcept;
// True if the stream's last operation can be in conflict at all: it has a slot and is not open.
bool IsTraced(const World& world, const Stream* stream) noexcept;
void FreeSlot(World& world, Stream* stream) noexcept;

}  // namespace cuaudit::sim
