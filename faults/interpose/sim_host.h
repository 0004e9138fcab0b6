// SPDX-License-Identifier: MIT
// sim_host.h: what the simulated driver gets from this process: a thread for unattended work, and the registered host kernels.
//
// The thread is detached, blocks all signals and ends with the process. The world calls StartAttendant once, with its lock held.
#pragma once

#include <atomic>
#include <cstdint>

#include "faults/sim/world.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::faults {

inline constexpr long kAttendantMs = 100;

// Increments `forced`, unless it is null, each time that the thread had to run work. Returns false when the system gives no thread; the
// program then hangs where it waits for work that nobody runs.
bool StartAttendant(sim::World* world, std::atomic<std::uint32_t>* forced) noexcept;

// The host kernels that are registered in this process (include/cuaudit/kernel.h). The simulated driver runs them in
// place of kernels.
//
// The program owns the kernels; this library owns the head of the list. Any thread may register. Kernels are only added, never removed.
// A malformed cuaudit_kernel is not accepted.

// Head of the list, which has the newest kernel first.
const std::atomic<cuaudit_kernel*>& HostKernels() noexcept;

}  // namespace cuaudit::faults
