// SPDX-License-Identifier: MIT
// access.h: the memory that a piece of work reads and writes, listed when the work is handed to a stream or launched with its graph.
//
//   Read, Write bytes that the work surely touches.
//   Use         memory that must stay alive until the work has run, whatever the work does with it: the pointees of a kernel's arguments.
//   Owns        nothing; the caller clears the list.
//   Threads     the caller holds the world's lock.
//   Errors      false when the world's arena is full.
#pragma once

#include "faults/sim/base/box.h"
#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

enum class AccessMode : std::uint8_t { Read, Write, Use };

struct Access {
  Access(std::uint64_t address, std::uint64_t bytes, AccessMode how) noexcept : box{address, bytes}, mode(how) {}
  Access(const Box& where, AccessMode how) noexcept : box(where), mode(how) {}
  Box box;
  AccessMode mode;
};

using AccessList = Vector<Access>;

// Appends the work's accesses. Host functions, events and child graphs have none that are known.
bool ListAccesses(World& world, const Work& work, AccessList* list) noexcept;
// The same for a kernel whose arguments are readable now: a Use of every live allocation that an 8-byte parameter points into. Structs are
// not searched, because an integer in a struct may look like an address.
bool ListKernelAccesses(World& world, const CUDA_KERNEL_NODE_PARAMS& kernel, AccessList* list) noexcept;

// Appends the memory that the kernel's host function declares to read and write. If only the host function knows the parameters, also what
// they point into.
bool ListDeclaredAccesses(World& world, const Work& work, AccessList* list) noexcept;

}  // namespace cuaudit::sim
