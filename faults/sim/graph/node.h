// SPDX-License-Identifier: MIT
// node.h: converts node parameters of every version to Work, checked as the driver checks them; conditional nodes and their handles.
//
//   Threads   the caller holds the world's lock.
//   Errors    those of adding or changing a node with these parameters.
//   Source    CUDA Driver API 13.0, Graph Management.
#pragma once

#include "faults/sim/graph/executable.h"

namespace cuaudit::sim {

CUresult KernelWork(Call& call, const CUDA_KERNEL_NODE_PARAMS& parameters, Work* work) noexcept;
CUresult CopyWork(Call& call, const CUDA_MEMCPY3D* parameters, Work* work) noexcept;
CUresult FillWork(Call& call, const CUDA_MEMSET_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult HostWork(const CUDA_HOST_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult EventWork(Call& call, CUevent event, WorkType type, Work* work) noexcept;
// The same from the generic structure. *type is the node's type.
CUresult WorkOf(Call& call, const CUgraphNodeParams* parameters, CUgraphNodeType* type, Work* work) noexcept;
// The live nodes behind the handles in a call that adds a node. Each must belong to the graph and occur once.
class Dependencies {
 public:
  explicit Dependencies(World& world) noexcept : world_(world) {}
  ~Dependencies() { nodes_.Clear(world_.arena); }
  Dependencies(const Dependencies&) = delete;
  Dependencies& operator=(const Dependencies&) = delete;
  CUresult Resolve(CUgraph graph, const CUgraphNode* handles, std::size_t count) noexcept;
  Graph* graph() const noexcept { return graph_; }
  Vector<Node*>& nodes() noexcept { return nodes_; }

 private:
  World& world_;
  Graph* graph_ = nullptr;
  Vector<Node*> nodes_;
};

// True if an edge between nodes of these types may carry the annotation.
bool MayAnnotate(CUgraphNodeType from, CUgraphNodeType to, const CUgraphEdgeData& edge) noexcept;
CUDA_KERNEL_NODE_PARAMS Widen(const CUDA_KERNEL_NODE_PARAMS_v1& parameters) noexcept;
// Lets device code change the parameters of a kernel node.
CUresult SetUpdatable(Node* node, CUlaunchAttributeValue* value) noexcept;
// The live node of that type behind the handle.
Node* FindNode(Call& call, CUgraphNode handle, CUgraphNodeType type) noexcept;
// Copies a part of the node's work.
template <typename T>
CUresult ReadNode(Call& call, CUgraphNode handle, CUgraphNodeType type, T Work::*part, T* out) noexcept {
  const Node* const node = FindNode(call, handle, type);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.*part;
  return CUDA_SUCCESS;
}
// Replaces the parameters of the step that was made from the node. `result` is the result of making `work`. If `work` is not used, its
// references are dropped.
CUresult SetStep(Call& call, CUgraphExec executable, CUgraphNode node, CUgraphNodeType type, CUresult result, const Work& work) noexcept;
// The step of an executable graph that was made from the node.
const Step* FindStep(const World& world, const Executable* executable, CUgraphNode node) noexcept;

// Conditional handles, and the graph nodes whose bodies run depending on a handle's value.
//
//   Owns      a graph owns its handles; a node owns its bodies and the array that returns them.
//   Errors    the driver's code.
//   Source    CUDA Driver API 13.0, cuGraphConditionalHandleCreate, CUDA_CONDITIONAL_NODE_PARAMS.
//   Deviates  only host kernels and default values set a handle. A `while` node whose body ran no host kernel ends after one iteration,
//             because nothing here could ever end it.

// Checks the parameters and makes the bodies. Sets phGraph_out on success.
CUresult ConditionalWorkOf(Call& call, const Graph* graph, CUDA_CONDITIONAL_NODE_PARAMS* parameters, Work* work) noexcept;
// True for a body of a conditional node, and for a graph inside one.
bool IsBody(const Graph* graph) noexcept;
// The first node of a kind that a conditional body may not contain; null: there is none.
const Node* NodeNoBodyHolds(const World& world, const Graph* graph) noexcept;
// Called for a host kernel of a launch. False: the plan has no such handle.
bool SetConditionalValue(Plan* plan, std::uint64_t handle, unsigned value) noexcept;

}  // namespace cuaudit::sim
