// SPDX-License-Identifier: MIT
// lifetime.h: when memory may be used: after its allocation and before its free; and how a misuse is reported.
//
//   Owns      the histories of allocations.
//   Threads   the caller holds the world's lock.
//   Errors    without on_misuse nothing is kept and nothing compared.
//   Source    the rules of faults/driver/misuse.def.
#pragma once

#include "faults/sim/order/history.h"
#include "faults/sim/state/call.h"
#include "faults/sim/state/order.h"

namespace cuaudit::sim {

// What a Conflict callback needs to report.
struct Teller {
  World& world;
  const Range* range;
  driver::MisuseRule rule;
  std::uint64_t origin;
};

// The history of the range's bytes, without what cannot be in conflict any more; nullptr when the arena is full.
History* HistoryOf(World& world, Range* range) noexcept;
// A stream-ordered allocation, which the stream's later operations may use.
void ObserveAllocation(World& world, Stream* stream, Range* range) noexcept;
// The host frees memory. Call it before the driver waits for that memory if the manual does not promise the wait, else after.
void ObserveRelease(World& world, const Range* range) noexcept;
void ForgetHistory(World& world, Range* range) noexcept;
// True when the program has unmapped memory that it had registered, all of these bytes or some. Work that runs now would crash there. A
// device goes on with the pages that were there (contract question host.mapped_anew_and_copied). Reported as host memory that was given
// back too early.
bool HasGone(World& world, std::uint64_t address, std::uint64_t bytes) noexcept;

// Memory must be allocated before it is used and not yet freed.
void CheckLifetime(World& world, const Stream* stream, const Range* range, const History* history, const Trace& trace) noexcept;
// The stream frees the memory: every access must come before.
void CheckFree(World& world, const Stream* stream, CUdeviceptr address, const Trace& trace) noexcept;

// A list of freed device memory whose addresses have not been reused, so that a later use can be reported with what it hit.
//
//   Owns      the world's list of the 1024 most recently freed blocks.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    when there is no room, the block is not remembered: fewer findings, never a false one. Without on_misuse the list stays
//             empty.

class World;
struct Range;

// Remembers a range that cuMemFree or a stream-ordered free releases now.
void RememberFreed(World& world, const Range* range) noexcept;
// The freed block that contained the address. nullptr when the address is in use, or when a live block begins shortly behind it: programs
// that index from 1 hold a pointer to before their first element.
const Freed* FindFreed(const World& world, std::uint64_t address) noexcept;

// Reports a misuse to the world's observer.
//
//   Threads   the caller holds the world's lock, also while WorldOptions::on_misuse runs.
//   Errors    without on_misuse nothing is reported.

// Id of the current call, from WorldOptions::origin; 0: there is none.
std::uint64_t Origin(const World& world) noexcept;
// Reports a misuse once for each pair of rule and other operation within one call. `at` is an address or a handle. `refused_wait`: the
// other operation would be known to be done if no wait had been refused (IsSupposed).
void TellMisuse(World& world, driver::MisuseRule rule, Kind kind, std::uint64_t at, std::uint64_t bytes, std::uint64_t origin,
                std::uint64_t other, bool refused_wait = false) noexcept;
// Begins a new call, which may report the same misuse again.
inline void BeginTelling(World& world) noexcept { world.told.Truncate(0); }

}  // namespace cuaudit::sim
