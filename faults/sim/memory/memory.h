// SPDX-License-Identifier: MIT
// memory.h: allocates memory of every kind (pool.h frees it), charges each device's budget, and keeps the settings of managed memory.
//
//   Owns      nothing; a range belongs to its context, or to the world where the driver says so.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    nullptr: the budget, the address space or the arena is exhausted.
//   Source    CUDA Driver API 13.0, Memory Management.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

// Allocates device memory of `kind` in `context`. It is counted, and charged to the device unless a pool pays. Requires bytes > 0.
Range* TakeDevice(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept;
// Allocates memory that the host may access: managed (charged to no device) or pinned.
Range* TakeHost(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept;
// Allocates device addresses for bytes that lie at `where`. They are charged to no device.
Range* TakeElsewhere(World& world, Context* context, std::uint64_t bytes, Kind kind, char* where) noexcept;
// Adopt adds a range to its owner's list and to the world's tree; Forget removes it.
void Adopt(World& world, Range* range, Context* owner) noexcept;
void Forget(World& world, Range* range) noexcept;

// Device memory is charged in chunks of 2 MiB. Small blocks share a chunk, and one live block keeps the whole chunk charged, so a
// device may refuse an allocation that the sum of its free bytes could hold.
//
//   Owns      nothing; the counts lie in the world's arena.
//   Errors    false when the device has no chunks left or the arena is full.
//   Source    measured on an idle H200 with cuMemGetInfo: 512 bytes take 2 MiB of free memory, 512 more and then 1 MiB take none, 3 MiB
//             take 4. Freeing two of four blocks in one chunk gives nothing back.

bool ChargeChunks(World& world, int device, const Block* block) noexcept;
void DischargeChunks(World& world, const Block* block) noexcept;

// What does not come in chunks: false when the device has fewer bytes left.
bool Charge(World& world, int device, std::uint64_t bytes) noexcept;
void Discharge(World& world, int device, std::uint64_t bytes) noexcept;

// CuMemAdvise and prefetch settings of the parts of managed memory.
//
//   Owns      a range's parts, which are freed with the range.
//   Units     bytes; parts begin and end at pages.
//   Errors    nullptr or false: the arena is full.
//   Source    CUDA Driver API 13.0, cuMemAdvise and cuMemRangeGetAttribute; numbers as an H200 answers.

// id -2 with type INVALID: no place.
struct Place {
  CUmemLocationType type = CU_MEM_LOCATION_TYPE_INVALID;
  int id = CU_DEVICE_INVALID;
  bool operator==(const Place&) const = default;
};

struct Part {
  std::uint64_t end = 0;
  bool read_mostly = false;
  Place preferred;
  Place prefetched;
  std::uint32_t accessed_by = 0;  // one bit for each device, kHostBit for the CPU
};
inline constexpr std::uint32_t kHostBit = std::uint32_t{1} << kMaxDevices;

struct Managed {
  Vector<Part> parts;  // sorted by address; each begins where the one before ends
};

// The range's parts inside [address, address + bytes), split at both ends. Empty: the arena is full.
struct Parts {
  Part* first = nullptr;
  Part* last = nullptr;  // one past the last
  Part* begin() const noexcept { return first; }
  Part* end() const noexcept { return last; }
};
Parts CutParts(World& world, Range* range, std::uint64_t address, std::uint64_t bytes) noexcept;
// The settings that all parts of the interval have in common, for cuMemRangeGetAttribute.
Part Common(const World& world, const Range* range, std::uint64_t address, std::uint64_t bytes) noexcept;
void DropParts(World& world, Range* range) noexcept;

// Performs copies and memsets on the real bytes. Every copy is treated as three-dimensional, every memset as two-dimensional.
//
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    Check*: INVALID_VALUE for what the driver refuses at once. Run*: ILLEGAL_ADDRESS for memory that was freed meanwhile.
//   Source    CUDA Driver API 13.0, CUDA_MEMCPY3D.

CUDA_MEMCPY3D LinearCopy(CUmemorytype to, std::uint64_t target, CUmemorytype from, std::uint64_t source, std::size_t bytes) noexcept;
// `planned`: the copy is a graph node, whose memory may belong to a graph and not be allocated yet.
CUresult CheckCopy(World& world, const CUDA_MEMCPY3D& copy, bool planned = false) noexcept;
CUresult CheckFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill, bool planned = false) noexcept;
// True if a side is pageable host memory, unknown to the driver. Such a copy cannot be deferred.
bool TouchesPageable(const World& world, const CUDA_MEMCPY3D& copy) noexcept;
CUresult RunCopy(World& world, const CUDA_MEMCPY3D& copy) noexcept;
CUresult RunFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill) noexcept;
// True if the whole interval lies in memory that the device may use.
bool IsUsable(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept;

}  // namespace cuaudit::sim
