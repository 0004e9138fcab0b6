// SPDX-License-Identifier: MIT
// attendant.h: starts a thread that runs work which a program has queued on the simulated driver but waits for only on the CPU, without
// a driver call. RunUnattended in faults/sim/world.h says when it acts.
//
// The thread is detached, blocks all signals and ends with the process. The world calls StartAttendant once, with its lock held.
#pragma once

#include <atomic>
#include <cstdint>

#include "faults/sim/world.h"

namespace cuaudit::faults {

inline constexpr long kAttendantMs = 100;

// Increments `forced`, unless it is null, each time that the thread had to run work. Returns false when the system gives no thread; the
// program then hangs where it waits for work that nobody runs.
bool StartAttendant(sim::World* world, std::atomic<std::uint32_t>* forced) noexcept;

}  // namespace cuaudit::faults
