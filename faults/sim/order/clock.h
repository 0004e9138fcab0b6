// SPDX-License-Identifier: MIT
// clock.h: which operation is ordered before which, and the recordings of events. order.h has the records.
//
//   Threads   the caller holds the world's lock. All host threads share one clock: how they synchronise is invisible here, so what one
//             thread waited for counts as known to all.
//   Units     a count is the number of operations handed to a slot so far.
//   Errors    when the arena is full, an order is assumed without proof: fewer findings, never a false one.
//   Source    vector clocks after Lamport, Fidge and Mattern; epochs as in FastTrack (Flanagan, Freund 2009).
#pragma once

#include <cstdint>

#include "faults/sim/state/order.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

class World;
struct Context;
struct GreenContext;
struct Stream;

// Begins the stream's next operation. It comes after all that its stream and the legacy default stream order before it.
Stamp Tick(World& world, Stream* stream) noexcept;
// Orders the stream's later operations after `clock`.
void Join(World& world, Stream* stream, const Clock& clock) noexcept;
// Notes that the host knows the clock's operations to be done.
void Tell(World& world, const Clock& clock) noexcept;
void TellStream(World& world, const Stream* stream) noexcept;
// With `green`: only the streams of that green context.
void TellContext(World& world, const Context* context, bool blocking_only, const GreenContext* green = nullptr) noexcept;
// While one lives, Tell, TellStream and TellContext note what the host would have learned from a refused wait. The host learns nothing.
class Supposing {
 public:
  explicit Supposing(World& world) noexcept;
  ~Supposing();
  Supposing(const Supposing&) = delete;
  Supposing& operator=(const Supposing&) = delete;

 private:
  World& world_;
};
// True if the host would know the operation to be done, if no wait had been refused.
bool IsSupposed(const World& world, Stamp earlier) noexcept;
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

// Recordings of events, and the order of streams that wait for something when no operation is queued for it.
//
//   Owns      nothing; whoever keeps a Marker holds a reference.
//   Errors    nullptr when the arena is full.

Marker* MakeMarker(World& world, Stream* stream) noexcept;
// The stream has reached the recording, now.
void FinishMarker(World& world, Marker* marker) noexcept;
void DropMarker(World& world, Marker* marker) noexcept;
// True if the recording is done and the host knows it: everything later comes after it anyway.
bool IsOver(const World& world, const Marker& marker) noexcept;

// The stream waits for a recording that is already done, so no operation is queued.
void ObserveWait(World& world, Stream* stream, const Marker* marker) noexcept;
// The stream comes after what was queued in another stream so far.
void ObserveFollow(World& world, Stream* stream, const Stream* other) noexcept;
// The stream comes after what was queued in the whole context so far.
void ObserveFollow(World& world, Stream* stream, const Context* context) noexcept;
// The stream waits for something outside this world.
void ObserveStranger(World& world, Stream* stream) noexcept;

}  // namespace cuaudit::sim
