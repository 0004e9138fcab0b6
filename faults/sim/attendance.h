// SPDX-License-Identifier: MIT
// attendance.h: work that the CPU may be waiting for without a driver call, and who runs it then.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller. Whoever attends is a thread of the embedder, which calls RunUnattended (world.h).
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours. A device works on while the program waits for a condition variable that a host function signals, or reads a word of
//             pinned memory until a copy has written it; a world is only a value and has nobody who could.
#pragma once

#include "faults/sim/work.h"
#include "faults/sim/world_state.h"

namespace cuaudit::sim {

bool RunsHostFunctions(const Work& work) noexcept;
// Host functions, and what writes memory that the CPU reads (pinned, registered or managed) or is a kernel that could.
bool MayBeAwaited(const World& world, const Work& work) noexcept;
// After such work was queued.
void AskForAttendance(World& world, const Work& work) noexcept;

}  // namespace cuaudit::sim
