// SPDX-License-Identifier: MIT
// stream.h: streams, and how work is handed to them.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

// Hands work to streams: queues it, or captures it.
//
//   Owns      the queued operations, and destroyed streams until their last operation has run.
//   Threads   the caller holds the world's lock.
//   Errors    OUT_OF_MEMORY when the arena is full; those of a capture that refuses the work.
//   Source    CUDA Driver API 13.0, Stream synchronization behavior.

// Captures the work if the stream is capturing, else queues it.
CUresult Submit(Call& call, Stream* stream, CUgraphNodeType type, const Work& work) noexcept;
// Queues the work whether or not the stream is capturing. `staging` belongs to the arena and is freed after the operation has run.
CUresult Enqueue(World& world, Stream* stream, const Work& work, void* staging = nullptr, std::size_t staging_bytes = 0) noexcept;
// Queues a wait for the recording, unless it is done.
CUresult WaitOn(World& world, Stream* stream, Marker* marker) noexcept;

// The stream has no operation left.
void Delist(World& world, Stream* stream) noexcept;
// While a stream is pinned, its record outlives its handle and its work.
inline void Pin(Stream* stream) noexcept { ++stream->pins; }
void Unpin(World& world, Stream* stream) noexcept;
// Frees the record of a destroyed stream that has no work and no pins.
void Bury(World& world, Stream* stream) noexcept;
inline bool IsIdle(const Stream* stream) noexcept { return stream->head == nullptr; }

// Streams and their handles; what is recorded in, or waited for by, all streams of a context.
//
//   Owns      nothing; a stream belongs to its context.
//   Threads   the caller holds the world's lock.
//   Source    CUDA Driver API 13.0, Stream synchronization behavior.

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

// Records an event for one stream or for all streams of a context, and makes whole contexts wait.
//
//   Owns      one carrier per context: an internal stream that waits for the others and that others wait for.
//   Errors    OUT_OF_MEMORY when the arena is full; STREAM_CAPTURE_UNSUPPORTED while one of the streams is captured.
//   Source    CUDA Driver API 13.0, cuEventRecord, cuCtxRecordEvent, cuCtxWaitEvent, cuGreenCtxRecordEvent, cuGreenCtxWaitEvent.

// Requires that the stream is not captured.
CUresult RecordOn(Call& call, Stream* stream, Event* event) noexcept;

// All streams of the context; with `green`, only those of the green context.
CUresult RecordAll(Call& call, Context* context, GreenContext* green, Event* event) noexcept;
CUresult WaitAll(Call& call, Context* context, GreenContext* green, Event* event) noexcept;

// FollowContext: the stream comes after all that was queued in the context so far. PrecedeContext: all that is queued in the context from
// now on comes after the stream.
CUresult FollowContext(World& world, Stream* stream, Context* context) noexcept;
CUresult PrecedeContext(World& world, Stream* stream, Context* context) noexcept;

}  // namespace cuaudit::sim
