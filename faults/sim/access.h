// SPDX-License-Identifier: MIT
// access.h: what a piece of work reads and writes, declared when it is handed to a stream or launched with its graph.
//
//   Owns      nothing; the list is a vector of the caller, cleared by the caller.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    false when the books are full.
//   Faults    makes no driver calls.
//   Source    ours. Read and Write are bytes that the work surely touches. Use is memory that must stay alive until the work has
//             run, whatever it does with it: what a kernel's pointer arguments point into.
#pragma once

#include "faults/sim/box.h"
#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

enum class AccessMode : std::uint8_t { Read, Write, Use };

struct Access {
  Access(std::uint64_t address, std::uint64_t bytes, AccessMode how) noexcept : box{address, bytes}, mode(how) {}
  Access(const Box& where, AccessMode how) noexcept : box(where), mode(how) {}
  Box box;
  AccessMode mode;
};

using AccessList = Vector<Access>;

// Appends what the work touches; host functions, events and child graphs touch nothing that is known.
bool ListAccesses(World& world, const Work& work, AccessList* list) noexcept;
// The same for a kernel whose arguments are readable now: a Use of every live allocation that a parameter of 8 bytes points into. A
// struct is not looked into: an integer in it may look like an address.
bool ListKernelAccesses(World& world, const CUDA_KERNEL_NODE_PARAMS& kernel, AccessList* list) noexcept;

}  // namespace cuaudit::sim
