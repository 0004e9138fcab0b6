// SPDX-License-Identifier: MIT
// stream.h: streams and their handles.
//
//   Owns      nothing; a stream belongs to its context.
//   Threads   the caller holds the world's lock.
//   Source    CUDA Driver API 13.0, Stream synchronization behavior.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// The stream behind a handle; 0, 1 and 2 are the default streams. nullptr: not a live stream, and *result is the call's result.
Stream* FindStream(Call& call, CUstream handle, CUresult* result) noexcept;
// The priority that the device grants for the requested one.
constexpr int ClampPriority(int priority) noexcept {
  constexpr int kGreatest = -5;
  return priority > 0 ? 0 : (priority < kGreatest ? kGreatest : priority);
}
Stream* MakeStream(World& world, Context* context, bool counted) noexcept;
// Ends the handle. Queued work stays with the context and runs when somebody waits for it.
void FreeStream(World& world, Stream* stream) noexcept;

// A stream with unfinished work that the legacy stream waits for; nullptr: there is none.
Stream* BusyBlocking(World& world, const Context* context) noexcept;

// The green context whose view is current; nullptr: none.
GreenContext* CurrentGreen(const World& world, Thread* thread) noexcept;
// True for a stream of `green`; with a null `green`, for every stream of `context` and of its green contexts.
bool IsStreamOf(const Stream* stream, const Context* context, const GreenContext* green) noexcept;

}  // namespace cuaudit::sim
