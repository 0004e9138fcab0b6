// SPDX-License-Identifier: MIT
// executor.h: hands work to streams, waits for it, and performs it. schedule.h decides which operation runs next.
//
//   Owns      the queued operations, and destroyed streams until their last operation has run.
//   Threads   the caller holds the world's lock. Host functions run with the lock released and their stream marked busy; other threads may
//             run operations of other streams meanwhile.
//   Errors    an operation that fails makes its context sticky; waiting then returns that code.
//   Source    CUDA Driver API 13.0, Stream synchronization behavior.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

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
// While a stream is pinned, its record outlives its handle and its work.
inline void Pin(Stream* stream) noexcept { ++stream->pins; }
void Unpin(World& world, Stream* stream) noexcept;

// Captures the work if the stream is capturing, else queues it.
CUresult Submit(Call& call, Stream* stream, CUgraphNodeType type, const Work& work) noexcept;
// Queues the work whether or not the stream is capturing. `staging` belongs to the arena and is freed after the operation has run.
CUresult Enqueue(World& world, Stream* stream, const Work& work, void* staging = nullptr, std::size_t staging_bytes = 0) noexcept;

// Performs work at once, without the queue. Requires that nothing is queued in the world. Counts as a wait of the host.
void PerformAtOnce(Call& call, Stream* stream, const Work& work) noexcept;

// Waits for what is queued now.
void Drain(Call& call, Stream* stream) noexcept;
// With `green`: only that green context's streams.
void DrainContext(Call& call, Context* context, const GreenContext* green = nullptr) noexcept;
void DrainMarker(Call& call, Marker* marker) noexcept;
// Waits for the legacy stream, and so for every blocking one.
void DrainLegacy(Call& call, Context* context) noexcept;

inline bool IsIdle(const Stream* stream) noexcept { return stream->head == nullptr; }
// A stream with unfinished work that the legacy stream waits for; nullptr: there is none.
Stream* BusyBlocking(World& world, const Context* context) noexcept;

Marker* MakeMarker(World& world, Stream* stream) noexcept;
// The stream has reached the recording, now.
void FinishMarker(World& world, Marker* marker) noexcept;
void DropMarker(World& world, Marker* marker) noexcept;

// Runs one piece of work now, as part of the stream's current operation.
CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept;
void CallHost(World& world, Thread* thread, Inside what, CUhostFn function, void* argument) noexcept;
// Which host threads may notice, without a driver call, that an operation has run.
enum class Seen : std::uint8_t { ByNobody, ByOthers, ByAll };  // ByOthers: all but the thread in whose call it ran
// Runs the stream's first operation, which must be runnable, and removes it from the queue.
void RunHead(World& world, Thread* thread, Stream* stream, Seen seen) noexcept;

}  // namespace cuaudit::sim
