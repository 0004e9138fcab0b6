// SPDX-License-Identifier: MIT
// context.h: contexts, the stack of current contexts, and what is destroyed with a context.
//
//   Owns      nothing. Ending a context ends every object whose Object::owner it is.
//   Threads   the caller holds the world's lock.
//   Errors    CurrentContext: INVALID_CONTEXT without one, CONTEXT_IS_DESTROYED for a dead one, the sticky code of a lost one.
//   Source    CUDA Driver API 13.0, Context Management.
#pragma once

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

struct Call;

bool PrepareDevices(World* world) noexcept;
CUresult CurrentContext(World& world, const Thread* thread, Context** context) noexcept;
// Gives a new or revived context its default stream and limits.
bool StartContext(World& world, Context* context) noexcept;
// The result of a call in this context after a wait. During the wait another thread may have ended the context.
CUresult StateAfterWait(const World& world, std::uint64_t handle) noexcept;
// Finishes the context's work, then destroys all that lives in it; the record stays. False: another thread ended the context meanwhile, and
// the record may be gone.
bool EndContext(Call& call, Context* context) noexcept;
// The same for a primary context that nobody retains. It survives if somebody retains it while its work is finished.
void EndUnlessHeld(Call& call, Context* primary) noexcept;

}  // namespace cuaudit::sim
