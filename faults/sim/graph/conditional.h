// SPDX-License-Identifier: MIT
// conditional.h: conditional handles, and the graph nodes whose bodies run depending on a handle's value.
//
//   Owns      a graph owns its handles; a node owns its bodies and the array that returns them.
//   Threads   the caller holds the world's lock.
//   Errors    the driver's code.
//   Source    CUDA Driver API 13.0, cuGraphConditionalHandleCreate, CUDA_CONDITIONAL_NODE_PARAMS.
//   Deviates  only host kernels and default values set a handle. A `while` node whose body ran no host kernel ends after one iteration,
//             because nothing here could ever end it.
#pragma once

#include "faults/sim/graph/plan.h"

namespace cuaudit::sim {

// Checks the parameters and makes the bodies. Sets phGraph_out on success.
CUresult ConditionalWorkOf(Call& call, const Graph* graph, CUDA_CONDITIONAL_NODE_PARAMS* parameters, Work* work) noexcept;
// True for a body of a conditional node, and for a graph inside one.
bool IsBody(const Graph* graph) noexcept;
// The first node of a kind that a conditional body may not contain; null: there is none.
const Node* NodeNoBodyHolds(const World& world, const Graph* graph) noexcept;
// Called for a host kernel of a launch. False: the plan has no such handle.
bool SetConditionalValue(Plan* plan, std::uint64_t handle, unsigned value) noexcept;

}  // namespace cuaudit::sim
