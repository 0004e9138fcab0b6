// SPDX-License-Identifier: MIT
// oracle.h: checks every operation when it is submitted, and reports accesses that nothing orders. The findings do not depend on the
// schedule. clock.h knows what is ordered, history.h who touched what, access.h what work touches.
//
//   Owns      the histories of allocations.
//   Threads   the caller holds the world's lock, also while WorldOptions::on_misuse runs.
//   Errors    without on_misuse nothing is kept and nothing compared.
//   Source    the rules of faults/driver/misuse.def; CUDA C++ Programming Guide, Asynchronous Concurrent Execution.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

struct Plan;

// Id of the current call, from WorldOptions::origin; 0: there is none.
std::uint64_t Origin(const World& world) noexcept;

// Observes an operation of the stream. `staged`: the call copied its source, so no later write can be in conflict with it.
void ObserveWork(World& world, Stream* stream, Operation* operation, bool staged) noexcept;
// The stream waits for a recording that is already done, so no operation is queued.
void ObserveWait(World& world, Stream* stream, const Marker* marker) noexcept;
// The stream comes after what was queued in another stream so far.
void ObserveFollow(World& world, Stream* stream, const Stream* other) noexcept;
// The stream comes after what was queued in the whole context so far.
void ObserveFollow(World& world, Stream* stream, const Context* context) noexcept;
// True if the recording is done and the host knows it: everything later comes after it anyway.
bool IsOver(const World& world, const Marker& marker) noexcept;
// The stream waits for something outside this world.
void ObserveStranger(World& world, Stream* stream) noexcept;
// A stream-ordered allocation, which the stream's later operations may use.
void ObserveAllocation(World& world, Stream* stream, Range* range) noexcept;
// The host frees memory. Call it before the driver waits for that memory if the manual does not promise the wait, else after.
void ObserveRelease(World& world, const Range* range) noexcept;
void ForgetHistory(World& world, Range* range) noexcept;

// Reports a misuse once for each pair of rule and other operation within one call. `at` is an address or a handle.
void TellMisuse(World& world, driver::MisuseRule rule, Kind kind, std::uint64_t at, std::uint64_t bytes, std::uint64_t origin,
                std::uint64_t other) noexcept;
// Begins a new call, which may report the same misuse again.
inline void BeginTelling(World& world) noexcept { world.told.Truncate(0); }

// Checks that the kernel's pointers belong to its context, or to one whose memory it may use.
void ObserveArguments(World& world, const Stream* stream, const Work& work, std::uint64_t origin) noexcept;
// Checks that no pointer argument leads into freed memory. `plan` and `step` of a launched graph: ObservePlan reports the pointees that the
// plan remembers.
void ObserveFreed(World& world, const Work& work, std::uint64_t origin, const Plan* plan = nullptr, std::size_t step = 0) noexcept;
// Compares the steps of a plan with each other, once for each plan.
void ObservePlan(World& world, Plan* plan, std::uint64_t origin) noexcept;
// Remembers the pointees of `count` steps from `first` on, whose parameters the current call set.
void RememberPointees(World& world, Plan* plan, std::size_t first, std::size_t count) noexcept;

}  // namespace cuaudit::sim
