// SPDX-License-Identifier: MIT
// context.h: contexts, the stack of current ones, and what dies with a context.
//
//   Owns      nothing itself; ending a context ends everything whose Object::owner it is.
//   Threads   the world's lock is held by every caller.
//   Errors    CurrentContext: INVALID_CONTEXT without one, CONTEXT_IS_DESTROYED for a dead one, the sticky code of a lost one.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Context Management.
#pragma once

#include "faults/sim/world_state.h"

namespace cuaudit::sim {

struct Call;

bool PrepareDevices(World* world) noexcept;
CUresult CurrentContext(World& world, const Thread* thread, Context** context) noexcept;
// Fills a new or revived context with its default stream and limits.
bool StartContext(World& world, Context* context) noexcept;
// Finishes its work, then destroys all that lives in it; the record itself stays.
void EndContext(Call& call, Context* context) noexcept;

}  // namespace cuaudit::sim
