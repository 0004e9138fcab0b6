// SPDX-License-Identifier: MIT
// host_kernel.h: host functions that stand for kernels: which function a launch gets, what it is told, and how it reaches device memory.
//
//   Owns      nothing; registered kernels live as long as the process.
//   Threads   the caller holds the world's lock; the host function runs without it, in stream order.
//   Errors    ILLEGAL_ADDRESS if the function asked for bytes outside live memory. A driver call inside the function answers NOT_PERMITTED.
//   Source    include/cuaudit/kernel.h.
#pragma once

#include "faults/sim/access.h"
#include "faults/sim/arguments.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::sim {

// The newest registration of the name; the world's own come before the process's. nullptr: the kernel does nothing.
const cuaudit_kernel* FindHostKernel(const World& world, const char* name) noexcept;
// True if the host kernel declares the same parameters as the image, or declares none.
bool Agrees(const cuaudit_kernel& kernel, const Symbol& symbol) noexcept;

// Appends the memory that the kernel's host function declares to read and write. If only the host function knows the parameters, also what
// they point into.
bool ListDeclaredAccesses(World& world, const Work& work, AccessList* list) noexcept;

// Runs the kernel's host function, or counts the launch as idle. `plan` is the launched graph's plan, if the kernel is a node.
CUresult RunKernel(World& world, Thread* thread, const Work& work, Plan* plan) noexcept;

}  // namespace cuaudit::sim
