// SPDX-License-Identifier: MIT
// oracle.h: looks at every operation when it is handed over, and tells of what nothing orders. The schedule has no say in it.
//
//   Owns      the histories of allocations.
//   Threads   the world's lock is held by every caller, and while WorldOptions::on_misuse runs.
//   Errors    none. Without an on_misuse nothing is kept and nothing compared.
//   Faults    makes no driver calls.
//   Source    the rules of faults/driver/misuse.def; what is ordered: CUDA Programming Guide, Asynchronous Concurrent Execution.
//   Not here  what is ordered (clock.h), who touched what (history.h), what work touches (access.h).
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

struct Plan;

// The call under way, as its observer names it; 0: nobody does.
std::uint64_t Origin(const World& world) noexcept;

// An operation of the stream. `staged`: its source was copied by the call and is nobody's any more.
void ObserveWork(World& world, Stream* stream, Operation* operation, bool staged) noexcept;
// The stream comes after a recording that is already done, so nothing is queued for it.
void ObserveWait(World& world, Stream* stream, const Marker* marker) noexcept;
// The stream comes after what another has been given so far.
void ObserveFollow(World& world, Stream* stream, const Stream* other) noexcept;
// The stream comes after what the whole context has been given so far.
void ObserveFollow(World& world, Stream* stream, const Context* context) noexcept;
// The recording is done and the host knows it: whatever follows comes after it anyway.
bool IsOver(const World& world, const Marker& marker) noexcept;
// The stream waits for something outside this world.
void ObserveStranger(World& world, Stream* stream) noexcept;
// A stream-ordered allocation, which the stream's next operations may use.
void ObserveAllocation(World& world, Stream* stream, Range* range) noexcept;
// The host gives memory back: before the driver waits for it where it does so without having promised it, else after.
void ObserveRelease(World& world, const Range* range) noexcept;
void ForgetHistory(World& world, Range* range) noexcept;

// Tells once for each pair of rule and other operation within one call. `at` is an address or a handle.
void TellMisuse(World& world, driver::MisuseRule rule, Kind kind, std::uint64_t at, std::uint64_t bytes, std::uint64_t origin,
                std::uint64_t other) noexcept;
// A new call: what was told before may be told again.
inline void BeginTelling(World& world) noexcept { world.told.Truncate(0); }

// What a kernel is handed belongs to its context, or to one whose memory it may use.
void ObserveArguments(World& world, const Stream* stream, const Work& work, std::uint64_t origin) noexcept;
// No pointer of it leads into memory that was freed before. `plan` and `step` of a launched graph: what it remembers of its pointees is
// told of by ObservePlan.
void ObserveFreed(World& world, const Work& work, std::uint64_t origin, const Plan* plan = nullptr, std::size_t step = 0) noexcept;
// The steps of a plan among each other, once for each plan.
void ObservePlan(World& world, Plan* plan, std::uint64_t origin) noexcept;
// `count` steps from `first` on were given their parameters by the call under way.
void RememberPointees(World& world, Plan* plan, std::size_t first, std::size_t count) noexcept;

}  // namespace cuaudit::sim
