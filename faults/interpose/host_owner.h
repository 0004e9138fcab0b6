// SPDX-License-Identifier: MIT
// host_owner.h: tells the blocks that the C library allocates for itself from those that it hands to its caller.
//
//   Owns      the code ranges of the C library, the loader, a sanitizer and this library, read once; one verdict per call stack.
//   Threads   safe.
//   Errors    a stack that was not taken is the program's.
//   Faults    makes no driver calls; allocates nothing.
//   Source    ours. tzset, locales, iconv and their like fill caches at the first use, wherever that happens to be: on a failure path such
//   a
//             block looks like a leak, and it is nobody's. strdup, asprintf, fopen and their like (kHandsOut) hand theirs to the caller.
//             stdio gives each stream its buffer at the first use and takes it back with the stream; a leaked FILE is seen by its own
//             block. What the loader allocates goes with a library or a thread.
#pragma once

#include <cstdint>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

// Once, while the library is loaded.
void FindCodeRanges() noexcept;

// `caller`: the return address of the intercepted call, null when a hook was called instead. `stack`: the id that the journal has for the
// stack of the calling thread, which is looked at here and now.
enum class BlockOwner : std::uint8_t { Unknown, Program, Library, Loader };
BlockOwner OwnerOf(const void* caller, std::uint32_t stack) noexcept;
// The same as flags of the block's record.
std::uint16_t OwnerFlags(const void* caller, std::uint32_t stack) noexcept;

}  // namespace cuaudit::faults
