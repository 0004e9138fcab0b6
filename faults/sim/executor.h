// SPDX-License-Identifier: MIT
// executor.h: streams as queues; work runs only when somebody waits for it.
//
//   Owns      the queued operations.
//   Threads   the world's lock is held by every caller; one thread at a time runs operations, others wait for their turn.
//             Host functions run with the lock released.
//   Errors    a failing operation makes its context sticky; waiting then answers that code.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, stream synchronization behavior.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

// The stream behind a handle: 0, 1 and 2 are the default streams. nullptr: not a live stream, *result says what to answer.
Stream* FindStream(Call& call, CUstream handle, CUresult* result) noexcept;
Stream* MakeStream(World& world, Context* context, bool counted) noexcept;
void FreeStream(World& world, Stream* stream) noexcept;  // idle

// Captures the work or queues it.
CUresult Submit(Call& call, Stream* stream, CUgraphNodeType type, const Work& work) noexcept;
// Queues it whatever the stream's capture state.
CUresult Enqueue(World& world, Stream* stream, const Work& work) noexcept;

void Drain(Call& call, Stream* stream) noexcept;
void DrainContext(Call& call, Context* context) noexcept;
void DrainMarker(Call& call, Marker* marker) noexcept;
// Runs one operation of the stream if nobody else is running any.
void RunNext(Call& call, Stream* stream) noexcept;
inline bool IsIdle(const Stream* stream) noexcept { return stream->head == nullptr && !stream->busy; }

Marker* MakeMarker(World& world, Stream* stream) noexcept;
void DropMarker(World& world, Marker* marker) noexcept;

// Runs one piece of work now. The caller has its turn.
CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept;

}  // namespace cuaudit::sim
