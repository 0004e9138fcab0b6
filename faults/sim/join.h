// SPDX-License-Identifier: MIT
// join.h: recording an event, of one stream or of everything that runs in a context; and making whole contexts wait.
//
//   Owns      per context a carrier: an internal stream that waits for others and is waited for.
//   Threads   the world's lock is held by every caller.
//   Errors    OUT_OF_MEMORY when the books are full; STREAM_CAPTURE_UNSUPPORTED while a stream concerned is captured.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuEventRecord, cuCtxRecordEvent, cuCtxWaitEvent, cuGreenCtxRecordEvent, cuGreenCtxWaitEvent.
#pragma once

#include "faults/sim/executor.h"
#include "faults/sim/green.h"

namespace cuaudit::sim {

// The stream is not captured.
CUresult RecordOn(Call& call, Stream* stream, Event* event) noexcept;
CUresult WaitOn(World& world, Stream* stream, Marker* marker) noexcept;

// Of the whole context when `green` is null.
CUresult RecordAll(Call& call, Context* context, GreenContext* green, Event* event) noexcept;
CUresult WaitAll(Call& call, Context* context, GreenContext* green, Event* event) noexcept;

// The stream comes after all that the context was given so far; all that it is given from now on comes after the stream.
CUresult FollowContext(World& world, Stream* stream, Context* context) noexcept;
CUresult PrecedeContext(World& world, Stream* stream, Context* context) noexcept;

}  // namespace cuaudit::sim
