// SPDX-License-Identifier: MIT
// attendance.h: finds work that the CPU may wait for without a driver call, such as a host function that signals a condition variable, or a
// copy into pinned memory that the program polls. A device would run that work; a simulated world has no thread of its own, so it asks its
// embedder for one.
//
//   Threads   the caller holds the world's lock. The embedder's thread calls RunUnattended (world.h).
#pragma once

#include "faults/sim/state/work.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

bool RunsHostFunctions(const Work& work) noexcept;
// True for host functions, callbacks, batches of memory operations and semaphore signals, for kernels with a host function, and for work
// that writes (or a kernel that could write) memory that the CPU reads: pinned, registered or managed.
bool MayBeAwaited(const World& world, const Work& work) noexcept;
// Call this after work was queued. It asks the embedder once, for the first work that may be awaited.
void AskForAttendance(World& world, const Work& work) noexcept;

}  // namespace cuaudit::sim
