// SPDX-License-Identifier: MIT
// host_oom.h: counts the allocations and threads that the program's own modules ask for, and refuses the one that the plan names.
//
// The program's own modules are all but the C library, the loader, libgcc, the driver with its companions, sanitizers and this library:
// those make promises of their own, and a program cannot repair them. operator new counts as the program's. The counters are in the
// journal's header, shared by all processes of a trial; only a cache of call sites is kept here. Nothing here allocates. When a
// sanitizer owns the heap, no allocation is counted, and so none is refused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {

struct Turn {
  std::uint32_t occurrence = 0;  // counted from 1; 0: not a request of the program's own modules
  bool refused = false;          // true: the request must fail; the journal has a record of it
};

// True when `caller`, a return address, lies in one of the program's own modules.
bool IsTheProgramsOwn(const void* caller) noexcept;

// `caller`: the return address of the allocation.
Turn TakeTurn(const void* caller, std::size_t bytes) noexcept;

// The same for pthread_create, including detached threads.
Turn TakeThreadTurn(const void* caller) noexcept;

}  // namespace cuaudit::faults
