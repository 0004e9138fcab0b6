// SPDX-License-Identifier: MIT
// executable.h: what an executable graph runs: its nodes as steps with parameters of their own, in an order that respects the edges.
//
//   Owns      a plan owns its steps and their kernel arguments. The executable graph and every launch in flight hold a reference; a change
//             goes into a copy, so launches keep the parameters that they started with.
//   Threads   the caller holds the world's lock.
//   Errors    nullptr or false when the arena is full; INVALID_VALUE for a cycle.
//   Source    CUDA Driver API 13.0, cuGraphInstantiate, cuGraphExecUpdate.
#pragma once

#include "faults/sim/graph/graph.h"

namespace cuaudit::sim {

// The steps of a child graph follow the step of their node. So do the bodies of a conditional node, each after a head step of its own.
struct Step {
  std::uint64_t node = 0;  // handle of the node in the source graph
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool enabled = true;
  bool exit = false;             // no step depends on it
  std::uint32_t inner = 0;       // number of following steps that belong to it
  std::uint32_t order = 0;       // position of its node in its graph
  std::uint32_t first_edge = 0;  // index in Plan::edges of the steps it depends on, in the order of the edges
  std::uint32_t edges = 0;
  std::uint64_t origin = 0;  // id of the call that added the node (WorldOptions::origin)
  Work work;
};

// The value of a conditional handle during a launch.
struct Slot {
  std::uint64_t handle;
  unsigned initial;
  unsigned flags;
  unsigned value;
};

// Memory that a step's parameters point into, as it was when they were set.
struct Pointee {
  std::uint32_t step;
  driver::Kind kind;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t id;
};

struct Plan {
  std::uint32_t references = 1;
  Vector<Slot> slots;
  Vector<Step> steps;
  Vector<std::uint32_t> edges;
  Vector<Pointee> pointees;
  bool compared = false;  // its steps were compared with each other
};

CUresult MakePlan(World& world, Graph* graph, Plan** plan) noexcept;
void DropPlan(World& world, Plan* plan) noexcept;
// The executable's plan, ready to be changed: a copy if a launch in flight shares it.
Plan* OwnPlan(World& world, Executable* executable) noexcept;
// Replaces a step's work and copies its kernel arguments.
bool SetStepWork(World& world, Step* step, const Work& work) noexcept;

// Tells whether an executable step may change its parameters from `before` to `after`, which are of the same type.
CUgraphExecUpdateResult CompareWork(const World& world, const Work& before, const Work& after) noexcept;
// Tells whether `after` may replace `before`, step by step. pairs[i] is the step of `after` that stands for step i.
CUgraphExecUpdateResult ComparePlans(World& world, const Plan& before, const Plan& after, Vector<std::uint32_t>* pairs,
                                     CUgraphExecUpdateResultInfo* info) noexcept;

inline constexpr std::uint32_t kUnpaired = ~std::uint32_t{0};
// The same for the child graph of one step; `after` is a plan of that graph alone.
CUgraphExecUpdateResult ComparePart(World& world, const Plan& before, std::uint32_t child, const Plan& after, Vector<std::uint32_t>* pairs,
                                    CUgraphExecUpdateResultInfo* info) noexcept;

// Remembers the pointees of `count` steps from `first` on, whose parameters the current call set.
void RememberPointees(World& world, Plan* plan, std::size_t first, std::size_t count) noexcept;
void FreeExecutable(World& world, Executable* executable) noexcept;

}  // namespace cuaudit::sim
