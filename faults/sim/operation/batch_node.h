// SPDX-License-Identifier: MIT
// batch_node.h: graph nodes that write values to memory or compare them. value_work.h does the same for streams.
//
//   Owns      nothing; the operations are copied into Arguments, which the Work references.
//   Threads   the caller holds the world's lock.
//   Errors    those of adding the node; LAUNCH_TIMEOUT when a waited-for value is missing at run time.
//   Source    CUDA Driver API 13.0, cuGraphAddBatchMemOpNode.
//   Deviates  a wait inside a graph does not let another stream run first. Its value must be in memory when the launch reaches it.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

CUresult BatchWork(Call& call, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult RunBatch(World& world, const Work& work) noexcept;

}  // namespace cuaudit::sim
