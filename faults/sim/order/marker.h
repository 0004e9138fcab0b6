// SPDX-License-Identifier: MIT
// marker.h: recordings of events, and the order of streams that wait for something when no operation is queued for it.
//
//   Owns      nothing; whoever keeps a Marker holds a reference.
//   Threads   the caller holds the world's lock.
//   Errors    nullptr when the arena is full.
#pragma once

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

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
