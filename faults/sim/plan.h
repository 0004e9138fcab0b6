// SPDX-License-Identifier: MIT
// plan.h: what an executable graph runs: its nodes as steps in an order that respects the edges, with parameters of their own.
//
//   Owns      a plan its steps and their kernel arguments. Counted: the executable graph holds one reference and every launch under way
//             another, so a change writes into a copy and launches keep what they were launched with.
//   Threads   the world's lock is held by every caller.
//   Errors    nullptr or false when the books are full; INVALID_VALUE for a cycle.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuGraphInstantiate, cuGraphExecUpdate.
#pragma once

#include "faults/sim/graph.h"

namespace cuaudit::sim {

// The steps of a child graph follow the step of their node. So do the bodies of a conditional node, each behind a step that heads it.
struct Step {
  std::uint64_t node = 0;  // handle in the graph it was made from
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool enabled = true;
  bool exit = false;             // nothing depends on it
  std::uint32_t inner = 0;       // steps that follow and belong to it
  std::uint32_t order = 0;       // of its node among those of its graph
  std::uint32_t first_edge = 0;  // in Plan::edges: the steps it depends on, in the order of the edges
  std::uint32_t edges = 0;
  std::uint64_t origin = 0;  // of the call that added the node
  Work work;
};

// A conditional handle's value during a launch.
struct Slot {
  std::uint64_t handle;
  unsigned initial;
  unsigned flags;
  unsigned value;
};

// Memory that a step was given, as it was then.
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
  bool compared = false;  // its steps with each other
};

CUresult MakePlan(World& world, Graph* graph, Plan** plan) noexcept;
void DropPlan(World& world, Plan* plan) noexcept;
// The executable's plan, free to be changed: a copy if a launch under way shares it.
Plan* OwnPlan(World& world, Executable* executable) noexcept;
// Replaces a step's work; its kernel arguments are copied.
bool SetStepWork(World& world, Step* step, const Work& work) noexcept;

// Whether an executable step with the parameters `before` takes those of `after`, which are of the same type.
CUgraphExecUpdateResult CompareWork(const World& world, const Work& before, const Work& after) noexcept;
// Whether `after` may replace `before`, step by step. pairs[i] is then the step of `after` that stands for step i.
CUgraphExecUpdateResult ComparePlans(World& world, const Plan& before, const Plan& after, Vector<std::uint32_t>* pairs,
                                     CUgraphExecUpdateResultInfo* info) noexcept;

inline constexpr std::uint32_t kUnpaired = ~std::uint32_t{0};
// The same for the child graph of one step; `after` is a plan of that graph alone.
CUgraphExecUpdateResult ComparePart(World& world, const Plan& before, std::uint32_t child, const Plan& after, Vector<std::uint32_t>* pairs,
                                    CUgraphExecUpdateResultInfo* info) noexcept;

// Runs a launch's steps on the stream now. The caller has its turn.
CUresult RunPlan(World& world, Thread* thread, Stream* stream, Plan* plan) noexcept;

}  // namespace cuaudit::sim
