// SPDX-License-Identifier: MIT
// value_work.h: work that writes a value or waits for one: stream memory operations, batch nodes, external semaphores.
//
//   Threads   the caller holds the world's lock.
//   Units     values of 4 or 8 bytes at addresses that are multiples of their size.
//   Errors    a wait cannot run before its value is there. If nothing queued can run, other threads get the world's patience in real time
//             to write the value or queue the write. Then the wait is given up and its context lost with LAUNCH_TIMEOUT. A device would
//             hang.
//   Source    CUDA Driver API 13.0, Stream Memory Operations.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

// Converts an operation of a batch to WorkType::Write, ::Await, or ::Nothing for barriers and flushes.
CUresult ReadValueOperation(const World& world, const CUstreamBatchMemOpParams& operation, Work* work) noexcept;

// False while the value is not there yet. True if the memory was freed: nobody waits for it.
bool IsSatisfied(const World& world, const ValueWork& wait) noexcept;
CUresult RunWrite(World& world, const ValueWork& write) noexcept;
// ILLEGAL_ADDRESS if the memory was freed, LAUNCH_TIMEOUT if the wait was given up.
CUresult RunAwait(const World& world, const ValueWork& wait) noexcept;

// Called when nothing in the world can run: releases the lock for a moment, or gives up the oldest wait.
void BePatient(World& world) noexcept;

// Graph nodes that write values to memory or compare them.
//
//   Owns      nothing; the operations are copied into Arguments, which the Work references.
//   Errors    those of adding the node; LAUNCH_TIMEOUT when a waited-for value is missing at run time.
//   Source    CUDA Driver API 13.0, cuGraphAddBatchMemOpNode.
//   Deviates  a wait inside a graph does not let another stream run first. Its value must be in memory when the launch reaches it.

CUresult BatchWork(Call& call, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult RunBatch(World& world, const Work& work) noexcept;

// External semaphores, which streams and graph nodes signal and wait for.
//
//   Owns      a semaphore owns its page, which it shares with every process that has the descriptor. The list to signal or wait for lies in
//             Arguments, referenced by the Work; semaphores are found by handle when the work runs.
//   Threads   the caller holds the world's lock; the value is one atomic word that other processes change.
//   Units     the value of a timeline; a binary semaphore is 0 or 1, and a wait resets it.
//   Errors    those of the call or node. EXTERNAL_DEVICE, which loses the context, if a semaphore was destroyed before queued work used it;
//             the driver does not document that case.
//   Source    CUDA Driver API 13.0, External Resource Interoperability. include/cuaudit/semaphore.h says what can be imported.
//   Deviates  a wait inside a graph does not let another stream run first: it is LAUNCH_TIMEOUT if the value is missing.

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
