// SPDX-License-Identifier: MIT
// host_oom.h: counts what the program's own modules ask of the host, allocations and threads, and refuses the one that the plan names.
//
//   Owns      the counters are the journal's, shared by all processes of a trial; here only which module a caller lies in, per call site.
//   Threads   safe.
//   Errors    beside a sanitizer that owns the heap no allocation is counted, and so none refused.
//   Faults    makes no driver calls; allocates nothing.
//   Source    ours. The program's own: everything but the C library, the loader, libgcc, the driver with its companions, sanitizers and
//             this library. Those have promises of their own, and a program cannot mend them. operator new is the program's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {

struct Turn {
  std::uint32_t occurrence = 0;  // counted from 1; 0: not the program's own
  bool refused = false;          // and written to the journal
};

// Whether a module of the program calls, not the C library, a driver or a sanitizer. `caller`: a return address.
bool IsTheProgramsOwn(const void* caller) noexcept;

// `caller`: the return address of the allocation.
Turn TakeTurn(const void* caller, std::size_t bytes) noexcept;

// The same of pthread_create, detached threads included.
Turn TakeThreadTurn(const void* caller) noexcept;

}  // namespace cuaudit::faults
