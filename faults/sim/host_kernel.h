// SPDX-License-Identifier: MIT
// host_kernel.h: host functions that stand for kernels: which one a launch gets, what it is told, and how it reaches device memory.
//
//   Owns      nothing; registered kernels live as long as the process.
//   Threads   the world's lock is held by every caller; the function itself runs without it, in stream order.
//   Errors    ILLEGAL_ADDRESS when the function asked for bytes that no live memory holds.
//   Faults    makes no driver calls; a driver call inside the function answers NOT_PERMITTED.
//   Source    include/cuaudit/kernel.h.
#pragma once

#include "faults/sim/access.h"
#include "faults/sim/arguments.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::sim {

// The newest registration of the name, the world's own before those of the process. nullptr: the kernel does nothing.
const cuaudit_kernel* FindHostKernel(const World& world, const char* name) noexcept;
// Whether it wants the parameters that the image declares; one that declares none takes what there is.
bool Agrees(const cuaudit_kernel& kernel, const Symbol& symbol) noexcept;

// The memory that its host kernel says it reads and writes, and what the arguments point into where only the host kernel knows them.
bool ListDeclaredAccesses(World& world, const Work& work, AccessList* list) noexcept;

// Runs what stands for the kernel, or counts that nothing does. `plan` is the launch's whose node it is, if it is one's.
CUresult RunKernel(World& world, Thread* thread, const Work& work, Plan* plan) noexcept;

}  // namespace cuaudit::sim
