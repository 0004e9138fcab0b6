// SPDX-License-Identifier: MIT
// join.h: records an event for one stream or for all streams of a context, and makes whole contexts wait.
//
//   Owns      one carrier per context: an internal stream that waits for the others and that others wait for.
//   Threads   the caller holds the world's lock.
//   Errors    OUT_OF_MEMORY when the arena is full; STREAM_CAPTURE_UNSUPPORTED while one of the streams is captured.
//   Source    CUDA Driver API 13.0, cuEventRecord, cuCtxRecordEvent, cuCtxWaitEvent, cuGreenCtxRecordEvent, cuGreenCtxWaitEvent.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

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
