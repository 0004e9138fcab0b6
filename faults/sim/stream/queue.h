// SPDX-License-Identifier: MIT
// queue.h: hands work to streams: queues it, or captures it.
//
//   Owns      the queued operations, and destroyed streams until their last operation has run.
//   Threads   the caller holds the world's lock.
//   Errors    OUT_OF_MEMORY when the arena is full; those of a capture that refuses the work.
//   Source    CUDA Driver API 13.0, Stream synchronization behavior.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

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

}  // namespace cuaudit::sim
