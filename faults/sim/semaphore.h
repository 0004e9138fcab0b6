// SPDX-License-Identifier: MIT
// semaphore.h: semaphores of another interface: imported, signalled and waited for by streams and by nodes of graphs.
//
//   Owns      a semaphore its page, shared with everybody who has the descriptor. The list of what to signal or to wait for lies in
//             Arguments, which the Work counts; semaphores are found by handle when it runs.
//   Threads   the world's lock is held by every caller; the value is one atomic word, others change it.
//   Units     the value of a timeline; a binary semaphore is 0 or 1, and a wait sets it back.
//   Errors    the code that the call or the node answers. EXTERNAL_DEVICE, which loses the context, when a semaphore was destroyed under
//             what still had to use it; the genuine driver says nothing of that case.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, External Resource Interoperability. What can be imported is ours: include/cuaudit/semaphore.h.
//   Deviates  a wait inside a graph lets no other stream go first: it is LAUNCH_TIMEOUT when the value is not there.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

struct SemaphorePage;

struct ExternalSemaphore : Object {
  static constexpr Tag kTag = Tag::ExternalSemaphore;
  bool timeline = false;
  SemaphorePage* page = nullptr;
};

// The work of WorkType::Write, which signals, or ::Await; its list is a copy of what is given.
CUresult SignalWork(const Call& call, const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* parameters,
                    unsigned count, Work* work) noexcept;
CUresult AwaitWork(const Call& call, const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters,
                   unsigned count, Work* work) noexcept;

bool AreSignalled(const World& world, const ValueWork& wait) noexcept;
CUresult RunSignals(const World& world, const ValueWork& signal) noexcept;
CUresult RunAwaits(const World& world, const ValueWork& wait) noexcept;

void FreeSemaphore(World& world, ExternalSemaphore* semaphore) noexcept;
// The world ends.
void CloseSemaphores(World& world) noexcept;

}  // namespace cuaudit::sim
