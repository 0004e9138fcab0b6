// SPDX-License-Identifier: MIT
// attendant.h: the thread that runs what a whole program queued on the simulated driver and waits for on the CPU alone.
//
//   Owns      one detached thread with all signals blocked, once somebody asked for it. It ends with the process.
//   Threads   StartAttendant is called once, by the world, with its lock held.
//   Units     milliseconds of real time.
//   Errors    false when the system gives no thread; the program then hangs where it waits for what nobody runs.
//   Faults    makes no driver calls.
//   Source    ours; when it acts: RunUnattended in faults/sim/world.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "faults/sim/world.h"

namespace cuaudit::faults {

inline constexpr long kAttendantMs = 100;

// Adds to `forced`, unless it is null, each time that work had to be run.
bool StartAttendant(sim::World* world, std::atomic<std::uint32_t>* forced) noexcept;

}  // namespace cuaudit::faults
