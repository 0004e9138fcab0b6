// SPDX-License-Identifier: MIT
// host_callers.h: who asks the host for something, told by the return address of the intercepted call.
//
// host_oom.cc counts the allocations and threads that the program's own modules ask for, and refuses the one that the plan names. The
// program's own modules are all but the C library, the loader, libgcc, the driver with its companions, sanitizers and this library: those
// make promises of their own, and a program cannot repair them. operator new counts as the program's. The counters are in the journal's
// header, shared by all processes of a trial; only a cache of call sites is kept here. When a sanitizer owns the heap, no allocation is
// counted, and so none is refused.
//
// host_owner.cc tells the blocks that the C library allocates for itself from the blocks that it hands to its caller. tzset, locales,
// iconv and others fill caches at their first use, wherever that happens. On a failure path such a block looks like a leak, but the program
// does not own it. strdup, asprintf, fopen and others (kHandsOut) hand their blocks to the caller. stdio gives each stream a buffer at the
// first use and frees the buffer with the stream; a leaked FILE is seen by its own block. Blocks that the loader allocates go with a
// library or a thread. Keeps the code ranges of the C library, the loader, a sanitizer and this library, read once, and one answer per call
// stack. A block without a call stack counts as the program's.
//
// Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/journal/layout.h"

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

// Called once, while the library is loaded.
void FindCodeRanges() noexcept;

// `caller`: the return address of the intercepted call; null when a hook was called instead. `stack`: the journal's id of the calling
// thread's current stack, which these functions walk.
enum class BlockOwner : std::uint8_t { Unknown, Program, Library, Loader };
BlockOwner OwnerOf(const void* caller, std::uint32_t stack) noexcept;
// The owner as flags of the block's record.
std::uint16_t OwnerFlags(const void* caller, std::uint32_t stack) noexcept;

}  // namespace cuaudit::faults
