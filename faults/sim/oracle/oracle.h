// SPDX-License-Identifier: MIT
// oracle.h: checks every operation when it is submitted, and reports accesses that nothing orders. The findings do not depend on the
// schedule. clock.h knows what is ordered, history.h who touched what, access.h what work touches.
//
//   Owns      nothing; lifetime.h keeps the histories.
//   Threads   the caller holds the world's lock, also while WorldOptions::on_misuse runs.
//   Errors    without on_misuse nothing is kept and nothing compared.
//   Source    the rules of faults/driver/misuse.def; CUDA C++ Programming Guide, Asynchronous Concurrent Execution.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

struct Plan;

// Observes an operation of the stream. `staged`: the call copied its source, so no later write can be in conflict with it.
void ObserveWork(World& world, Stream* stream, Operation* operation, bool staged) noexcept;

// Checks that the kernel's pointers belong to its context, or to one whose memory it may use.
void ObserveArguments(World& world, const Stream* stream, const Work& work, std::uint64_t origin) noexcept;
// Checks that no pointer argument leads into freed memory. `plan` and `step` of a launched graph: ObservePlan reports the pointees that the
// plan remembers.
void ObserveFreed(World& world, const Work& work, std::uint64_t origin, const Plan* plan = nullptr, std::size_t step = 0) noexcept;
// Compares the steps of a plan with each other, once for each plan.
void ObservePlan(World& world, Plan* plan, std::uint64_t origin) noexcept;

// Finds work that the CPU may wait for without a driver call, such as a host function that signals a condition variable, or a
// copy into pinned memory that the program polls. A device would run that work; a simulated world has no thread of its own, so it asks its
// embedder for one.
//
//   Threads   the caller holds the world's lock. The embedder's thread calls RunUnattended (world.h).

bool RunsHostFunctions(const Work& work) noexcept;
// True for host functions, callbacks, batches of memory operations and semaphore signals, for kernels with a host function, and for work
// that writes (or a kernel that could write) memory that the CPU reads: pinned, registered or managed.
bool MayBeAwaited(const World& world, const Work& work) noexcept;
// Call this after work was queued. It asks the embedder once, for the first work that may be awaited.
void AskForAttendance(World& world, const Work& work) noexcept;

}  // namespace cuaudit::sim
