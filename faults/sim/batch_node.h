// SPDX-License-Identifier: MIT
// batch_node.h: nodes that write values to memory or compare them, as streams do (value_work.h).
//
//   Owns      nothing; the operations are copied into Arguments, which the Work counts.
//   Threads   the world's lock is held by every caller.
//   Errors    the code that adding the node answers. LAUNCH_TIMEOUT when a wait's value is not there yet.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuGraphAddBatchMemOpNode.
//   Deviates  a wait inside a graph lets no other stream go first: its value must be there when the launch reaches it.
#pragma once

#include "faults/sim/plan.h"

namespace cuaudit::sim {

CUresult BatchWork(Call& call, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult RunBatch(World& world, const Work& work) noexcept;
CUresult CaptureBatch(Call& call, Stream* stream, unsigned count, const CUstreamBatchMemOpParams* operations) noexcept;

}  // namespace cuaudit::sim
