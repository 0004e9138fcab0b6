// SPDX-License-Identifier: MIT
// value_work.h: what streams do with single values in memory: write one, or wait until one compares as asked.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller.
//   Units     values of 4 or 8 bytes at addresses that are multiples of their size.
//   Errors    a wait is no operation that can run before its value is there. When nothing that is queued can run, other threads get the
//             world's patience in real time to write the value or to queue the write; then the wait is given up and its context lost
//             with LAUNCH_TIMEOUT. A device would hang.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Stream Memory Operations.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

// What an operation of a batch comes to: WorkType::Write, ::Await, or ::Nothing for barriers and flushes.
CUresult ReadValueOperation(const World& world, const CUstreamBatchMemOpParams& operation, Work* work) noexcept;

// False while the value is not there yet; memory that is gone keeps nobody waiting.
bool IsSatisfied(const World& world, const ValueWork& wait) noexcept;
CUresult RunWrite(World& world, const ValueWork& write) noexcept;
// ILLEGAL_ADDRESS when the memory is gone, LAUNCH_TIMEOUT when the wait was given up.
CUresult RunAwait(const World& world, const ValueWork& wait) noexcept;

// Nothing in the world can run: releases the lock for a moment, or gives up the oldest wait.
void BePatient(World& world) noexcept;

}  // namespace cuaudit::sim
