// SPDX-License-Identifier: MIT
// host_owner.h: tells the blocks that the C library allocates for itself from the blocks that it hands to its caller.
//
// tzset, locales, iconv and others fill caches at their first use, wherever that happens. On a failure path such a block looks like a
// leak, but the program does not own it. strdup, asprintf, fopen and others (kHandsOut) hand their blocks to the caller. stdio gives
// each stream a buffer at the first use and frees the buffer with the stream; a leaked FILE is seen by its own block. Blocks that the
// loader allocates go with a library or a thread. Keeps the code ranges of the C library, the loader, a sanitizer and this library, read
// once, and one answer per call stack. Nothing here allocates. A block without a call stack counts as the program's.
#pragma once

#include <cstdint>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

// Called once, while the library is loaded.
void FindCodeRanges() noexcept;

// `caller`: the return address of the intercepted call; null when a hook was called instead. `stack`: the journal's id of the calling
// thread's current stack, which these functions walk.
enum class BlockOwner : std::uint8_t { Unknown, Program, Library, Loader };
BlockOwner OwnerOf(const void* caller, std::uint32_t stack) noexcept;
// The owner as flags of the block's record.
std::uint16_t OwnerFlags(const void* caller, std::uint32_t stack) noexcept;

}  // namespace cuaudit::faults
