// SPDX-License-Identifier: MIT
// freed.h: a list of freed device memory whose addresses have not been reused, so that a later use can be reported with what it hit.
//
//   Owns      the world's list of the 1024 most recently freed blocks.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    when there is no room, the block is not remembered: fewer findings, never a false one. Without on_misuse the list stays
//             empty.
#pragma once

#include "faults/sim/state/order.h"

namespace cuaudit::sim {

class World;
struct Range;

// Remembers a range that cuMemFree or a stream-ordered free releases now.
void RememberFreed(World& world, const Range* range) noexcept;
// The freed block that contained the address. nullptr when the address is in use, or when a live block begins shortly behind it: programs
// that index from 1 hold a pointer to before their first element.
const Freed* FindFreed(const World& world, std::uint64_t address) noexcept;

}  // namespace cuaudit::sim
