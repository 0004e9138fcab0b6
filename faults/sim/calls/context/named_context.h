// SPDX-License-Identifier: MIT
// named_context.h: contexts as calls about contexts and green contexts name and hold them.
//
//   Threads   the caller holds the world's lock.
//   Errors    those of the calls that name a context.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// Add and drop an internal reference to the device's primary context. Clients' references are counted separately.
CUresult HoldPrimary(World& world, CUdevice device) noexcept;
void DropPrimary(Call& call, Context* primary) noexcept;
// The context that a call names, or the current one for null. For a green context's view: its primary context, and *green is set.
CUresult NamedContext(Call& call, CUcontext handle, Context** context, GreenContext** green) noexcept;

}  // namespace cuaudit::sim
