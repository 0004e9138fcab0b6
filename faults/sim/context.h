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
struct GreenContext;

bool PrepareDevices(World* world) noexcept;
CUresult CurrentContext(World& world, const Thread* thread, Context** context) noexcept;
// Fills a new or revived context with its default stream and limits.
void StartLimits(const World& world, Context* context) noexcept;
bool StartContext(World& world, Context* context) noexcept;
// What the context of this handle answers after a wait, which may have let another thread in that ended it.
CUresult StateAfterWait(const World& world, std::uint64_t handle) noexcept;
// Finishes its work, then destroys all that lives in it; the record itself stays. False: another thread ended it meanwhile, and
// the record may be gone.
bool EndContext(Call& call, Context* context) noexcept;
// The same for a primary context once nobody retains it; who retains it while its work is finished keeps it.
void EndUnlessHeld(Call& call, Context* primary) noexcept;

// Another reason for the device's primary context to live, and one less; clients' references are counted apart.
CUresult HoldPrimary(World& world, CUdevice device) noexcept;
void DropPrimary(Call& call, Context* primary) noexcept;
// The context a call names, or the current one for null. A view of a green context: its primary context, and *green.
CUresult NamedContext(Call& call, CUcontext handle, Context** context, GreenContext** green) noexcept;

}  // namespace cuaudit::sim
