// SPDX-License-Identifier: MIT
// physical.h: what stands behind the handles of physical memory: bytes that handles, mappings, imports and other processes may share.
//
//   Owns      the bytes, charged to their device until the last handle or mapping of this world is gone. Memory on the host, and what
//             was exported or imported, lies in a file without a name; its descriptor is the driver's.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    nullptr, false or -1: no memory, no room in the books, or a descriptor that is no exported memory.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Virtual Memory Management.
#pragma once

#include "faults/sim/call.h"

namespace cuaudit::sim {

struct Backing {
  std::uint32_t references = 1;  // handles of this world; a handle lives as long as its mappings
  std::uint64_t size = 0;
  int charged_device = -1;
  Block* block = nullptr;  // null: in the file
  char* bytes = nullptr;
  int file = -1;
  std::uint64_t inode = 0;
  History* history = nullptr;  // of the bytes, whatever address they were reached by
};

inline bool IsOnHost(const CUmemAllocationProp& properties) noexcept { return properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }

Backing* MakeBacking(World& world, const CUmemAllocationProp& properties, std::uint64_t size) noexcept;
// The same bytes again when this world exported them. The descriptor stays the caller's.
Backing* ImportBacking(World& world, int file, CUmemAllocationProp* properties) noexcept;
// A new descriptor of the caller's; -1: refused.
int ExportBacking(World& world, Backing* backing, const CUmemAllocationProp& properties) noexcept;
void DropBacking(World& world, Backing* backing) noexcept;
// The world ends.
void CloseBackings(World& world) noexcept;

// A handle; null: no room, and the backing is dropped.
Physical* MakePhysical(World& world, Backing* backing, const CUmemAllocationProp& properties) noexcept;
// A mapping ended, or the last handle did.
void DropPhysical(World& world, Physical* physical) noexcept;

}  // namespace cuaudit::sim
