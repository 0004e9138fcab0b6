// SPDX-License-Identifier: MIT
// copy.h: performs copies and memsets on the real bytes. Every copy is treated as three-dimensional, every memset as two-dimensional.
//
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    Check*: INVALID_VALUE for what the driver refuses at once. Run*: ILLEGAL_ADDRESS for memory that was freed meanwhile.
//   Source    CUDA Driver API 13.0, CUDA_MEMCPY3D.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

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
