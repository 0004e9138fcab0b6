// SPDX-License-Identifier: MIT
// executor.h: handing work to streams, waiting for it, and performing it.
//
//   Owns      the queued operations, and destroyed streams until their last operation has run.
//   Threads   the world's lock is held by every caller. Host functions run with the lock released, their stream marked busy; other
//             threads may run operations of other streams meanwhile.
//   Errors    a failing operation makes its context sticky; waiting then answers that code.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, stream synchronization behavior.
//   Not here  which operation runs next (schedule.h).
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

// The stream behind a handle: 0, 1 and 2 are the default streams. nullptr: not a live stream, *result says what to answer.
Stream* FindStream(Call& call, CUstream handle, CUresult* result) noexcept;
// What the device grants of a wish.
constexpr int ClampPriority(int priority) noexcept {
  constexpr int kGreatest = -5;
  return priority > 0 ? 0 : (priority < kGreatest ? kGreatest : priority);
}
Stream* MakeStream(World& world, Context* context, bool counted) noexcept;
// Ends the handle. Work that is still queued stays the context's and runs when somebody needs it.
void FreeStream(World& world, Stream* stream) noexcept;
// A pinned stream's record outlives its handle and its work.
inline void Pin(Stream* stream) noexcept { ++stream->pins; }
void Unpin(World& world, Stream* stream) noexcept;

// Captures the work or queues it.
CUresult Submit(Call& call, Stream* stream, CUgraphNodeType type, const Work& work) noexcept;
// Queues it whatever the stream's capture state. `staging` is the arena's and freed when the operation has run.
CUresult Enqueue(World& world, Stream* stream, const Work& work, void* staging = nullptr, std::size_t staging_bytes = 0) noexcept;

// Work that needs no queue, because nothing is left to run in the world. The host waits for it.
void PerformAtOnce(Call& call, Stream* stream, const Work& work) noexcept;

// The host waits for what is queued now.
void Drain(Call& call, Stream* stream) noexcept;
// Of one green context when `green` is one.
void DrainContext(Call& call, Context* context, const GreenContext* green = nullptr) noexcept;
void DrainMarker(Call& call, Marker* marker) noexcept;
// The host waits for the legacy stream, and with it for every blocking one.
void DrainLegacy(Call& call, Context* context) noexcept;

inline bool IsIdle(const Stream* stream) noexcept { return stream->head == nullptr; }
// A stream whose work the legacy stream waits for, if any is unfinished.
Stream* BusyBlocking(World& world, const Context* context) noexcept;

Marker* MakeMarker(World& world, Stream* stream) noexcept;
// The recording has been reached, now.
void FinishMarker(World& world, Marker* marker) noexcept;
void DropMarker(World& world, Marker* marker) noexcept;

// Runs one piece of work now, as part of the stream's operation under way.
CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept;
void CallHost(World& world, Thread* thread, Inside what, CUhostFn function, void* argument) noexcept;
// Who sees on the CPU that an operation has run.
enum class Seen : std::uint8_t { ByNobody, ByOthers, ByAll };  // ByOthers: not by the thread in whose call it ran
// Runs the stream's first operation, which nothing stands before, and takes it off the queue.
void RunHead(World& world, Thread* thread, Stream* stream, Seen seen) noexcept;

}  // namespace cuaudit::sim
