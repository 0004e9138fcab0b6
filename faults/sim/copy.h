// SPDX-License-Identifier: MIT
// copy.h: moving real bytes: every copy is a three-dimensional one, every memset a two-dimensional one.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    Check*: INVALID_VALUE for what the driver refuses at once. Run*: ILLEGAL_ADDRESS for memory that is gone by then.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, CUDA_MEMCPY3D.
#pragma once

#include "faults/sim/call.h"

namespace cuaudit::sim {

CUDA_MEMCPY3D LinearCopy(CUmemorytype to, std::uint64_t target, CUmemorytype from, std::uint64_t source, std::size_t bytes) noexcept;
// `planned`: for a node of a graph, whose memory may be a graph's that no launch has allocated yet.
CUresult CheckCopy(World& world, const CUDA_MEMCPY3D& copy, bool planned = false) noexcept;
CUresult CheckFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill, bool planned = false) noexcept;
// True when a side is host memory that the driver does not know: such a copy cannot be deferred.
bool TouchesPageable(const World& world, const CUDA_MEMCPY3D& copy) noexcept;
CUresult RunCopy(World& world, const CUDA_MEMCPY3D& copy) noexcept;
CUresult RunFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill) noexcept;
// The whole interval lies in memory the device may use.
bool IsUsable(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept;

}  // namespace cuaudit::sim
