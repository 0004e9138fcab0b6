// SPDX-License-Identifier: MIT
// inherited.h: the few calls that a forked child can make with a stream of its parent. All other calls answer NOT_INITIALIZED there.
//
//   Threads   may be called by any thread of the child. When a thread of the parent held the world's lock at the fork, the answer is
//             NOT_INITIALIZED.
//   Source    measured on an H100 and an H200 (suites/contract, questions forked.*). What was not measured (default streams, captured
//             streams, streams of lost contexts, a wait for unfinished work) is refused.
#pragma once

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

// NOT_READY when a host function or a wait for a value was queued at the fork, because nobody can finish it here. A device finishes other
// work without the child.
CUresult QueryInherited(World& world, CUstream stream) noexcept;
CUresult SynchronizeInherited(World& world, CUstream stream) noexcept;
// SUCCESS, and the function never runs: the thread of the driver that would call it is the parent's.
CUresult LaunchInherited(World& world, CUstream stream) noexcept;

}  // namespace cuaudit::sim
