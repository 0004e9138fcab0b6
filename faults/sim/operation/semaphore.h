// SPDX-License-Identifier: MIT
// semaphore.h: external semaphores, which streams and graph nodes signal and wait for.
//
//   Owns      a semaphore owns its page, which it shares with every process that has the descriptor. The list to signal or wait for lies in
//             Arguments, referenced by the Work; semaphores are found by handle when the work runs.
//   Threads   the caller holds the world's lock; the value is one atomic word that other processes change.
//   Units     the value of a timeline; a binary semaphore is 0 or 1, and a wait resets it.
//   Errors    those of the call or node. EXTERNAL_DEVICE, which loses the context, if a semaphore was destroyed before queued work used it;
//             the driver does not document that case.
//   Source    CUDA Driver API 13.0, External Resource Interoperability. include/cuaudit/semaphore.h says what can be imported.
//   Deviates  a wait inside a graph does not let another stream run first: it is LAUNCH_TIMEOUT if the value is missing.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

struct SemaphorePage;

struct ExternalSemaphore : Object {
  static constexpr Tag kTag = Tag::ExternalSemaphore;
  bool timeline = false;
  SemaphorePage* page = nullptr;
};

// Make the work of WorkType::Write, which signals, or ::Await. The list is copied.
CUresult SignalWork(const Call& call, const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* parameters,
                    unsigned count, Work* work) noexcept;
CUresult AwaitWork(const Call& call, const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters,
                   unsigned count, Work* work) noexcept;

bool AreSignalled(const World& world, const ValueWork& wait) noexcept;
CUresult RunSignals(const World& world, const ValueWork& signal) noexcept;
CUresult RunAwaits(const World& world, const ValueWork& wait) noexcept;

void FreeSemaphore(World& world, ExternalSemaphore* semaphore) noexcept;
// Called when the world is destroyed.
void CloseSemaphores(World& world) noexcept;

}  // namespace cuaudit::sim
