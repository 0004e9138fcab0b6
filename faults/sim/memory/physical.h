// SPDX-License-Identifier: MIT
// physical.h: the bytes behind handles of physical memory. Handles, mappings, imports and other processes may share them.
//
//   Owns      the bytes, which are charged to their device until this world's last handle or mapping is gone. Host memory, and exported or
//             imported memory, lies in an unnamed file; the driver owns its descriptor.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    nullptr, false or -1: no memory, a full arena, or a descriptor that is no exported memory.
//   Source    CUDA Driver API 13.0, Virtual Memory Management.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

inline constexpr unsigned kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

inline constexpr std::uint64_t kGranularity = std::uint64_t{2} << 20;  // sizes and addresses are multiples of it

inline bool IsOnHost(const CUmemAllocationProp& properties) noexcept { return properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }

Backing* MakeBacking(World& world, const CUmemAllocationProp& properties, std::uint64_t size) noexcept;
// Returns the same backing if this world exported it. The caller keeps the descriptor.
Backing* ImportBacking(World& world, int file, CUmemAllocationProp* properties) noexcept;
// A new descriptor, which the caller owns; -1: refused.
int ExportBacking(World& world, Backing* backing, const CUmemAllocationProp& properties) noexcept;
void DropBacking(World& world, Backing* backing) noexcept;
// Called when the world is destroyed.
void CloseBackings(World& world) noexcept;

// Makes a handle. On null (the arena is full) the backing is dropped.
Physical* MakePhysical(World& world, Backing* backing, const CUmemAllocationProp& properties) noexcept;
// A part of a deferred array and the physical memory behind it.
struct Binding {
  Range* range;
  Physical* physical;
  std::uint32_t kind;  // CUarraySparseSubresourceType
  std::uint64_t part[8];
};

// A mapping or the last client reference ended.
void DropPhysical(World& world, Physical* physical) noexcept;

// Releases the array's bindings before the array is destroyed.
void DropBindings(World& world, Range* range) noexcept;

}  // namespace cuaudit::sim
