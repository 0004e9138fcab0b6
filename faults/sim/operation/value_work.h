// SPDX-License-Identifier: MIT
// value_work.h: stream memory operations: a stream writes a value to memory, or waits until a value there compares as asked.
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

}  // namespace cuaudit::sim
