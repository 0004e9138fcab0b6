// SPDX-License-Identifier: MIT
// conditional.h: conditional handles, and the nodes whose bodies run as a handle's value says.
//
//   Owns      a graph its handles, a node its bodies and the array that shows them.
//   Threads   the world's lock is held by every caller.
//   Errors    the code that the driver answers.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuGraphConditionalHandleCreate, CUDA_CONDITIONAL_NODE_PARAMS.
//   Deviates  only host kernels and defaults give values: a `while` whose body ran no host kernel is left after one turn, since nothing
//             here could ever end it.
#pragma once

#include "faults/sim/plan.h"

namespace cuaudit::sim {

struct Conditional : Object {
  static constexpr Tag kTag = Tag::Conditional;
  Graph* graph = nullptr;
  Context* context = nullptr;
  unsigned value = 0;  // at the beginning of a launch, if flags say so
  unsigned flags = 0;
  Node* node = nullptr;
};

// Checks the parameters and makes the bodies; phGraph_out is set on success.
CUresult ConditionalWorkOf(Call& call, const Graph* graph, CUDA_CONDITIONAL_NODE_PARAMS* parameters, Work* work) noexcept;
void FreeBodies(World& world, const CUDA_CONDITIONAL_NODE_PARAMS& work) noexcept;
// A body of a conditional node, or a graph inside one.
bool IsBody(const Graph* graph) noexcept;
// A node inside a conditional's bodies that may not stand there; null: there is none.
const Node* NodeNoBodyHolds(const World& world, const Graph* graph) noexcept;
// What a host kernel of a launch of the plan sets; false: the plan knows no such handle.
bool SetConditionalValue(Plan* plan, std::uint64_t handle, unsigned value) noexcept;

}  // namespace cuaudit::sim
