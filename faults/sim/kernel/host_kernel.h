// SPDX-License-Identifier: MIT
// host_kernel.h: host functions that stand for kernels: which function a launch gets. perform.h runs it.
//
//   Owns      nothing; registered kernels live as long as the process.
//   Threads   the caller holds the world's lock.
//   Source    include/cuaudit/kernel.h.
#pragma once

#include "faults/sim/image/image.h"
#include "faults/sim/state/world_state.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::sim {

// The newest registration of the name; the world's own come before the process's. nullptr: the kernel does nothing.
const cuaudit_kernel* FindHostKernel(const World& world, const char* name) noexcept;
// True if the host kernel declares the same parameters as the image, or declares none.
bool Agrees(const cuaudit_kernel& kernel, const Symbol& symbol) noexcept;

}  // namespace cuaudit::sim
