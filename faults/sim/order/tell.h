// SPDX-License-Identifier: MIT
// tell.h: reports a misuse to the world's observer.
//
//   Threads   the caller holds the world's lock, also while WorldOptions::on_misuse runs.
//   Errors    without on_misuse nothing is reported.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// Id of the current call, from WorldOptions::origin; 0: there is none.
std::uint64_t Origin(const World& world) noexcept;
// Reports a misuse once for each pair of rule and other operation within one call. `at` is an address or a handle. `refused_wait`: the
// other operation would be known to be done if no wait had been refused (IsSupposed).
void TellMisuse(World& world, driver::MisuseRule rule, Kind kind, std::uint64_t at, std::uint64_t bytes, std::uint64_t origin,
                std::uint64_t other, bool refused_wait = false) noexcept;
// Begins a new call, which may report the same misuse again.
inline void BeginTelling(World& world) noexcept { world.told.Truncate(0); }

}  // namespace cuaudit::sim
