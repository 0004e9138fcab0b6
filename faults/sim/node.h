// SPDX-License-Identifier: MIT
// node.h: node parameters of every version as Work, checked as the driver checks them.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller.
//   Errors    the code that adding or changing a node with these parameters answers.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Graph Management.
#pragma once

#include "faults/sim/plan.h"

namespace cuaudit::sim {

CUresult KernelWork(Call& call, const CUDA_KERNEL_NODE_PARAMS& parameters, Work* work) noexcept;
CUresult CopyWork(Call& call, const CUDA_MEMCPY3D* parameters, Work* work) noexcept;
CUresult FillWork(Call& call, const CUDA_MEMSET_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult HostWork(const CUDA_HOST_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult EventWork(Call& call, CUevent event, WorkType type, Work* work) noexcept;
// The generic form; *type says which node it is.
CUresult WorkOf(Call& call, const CUgraphNodeParams* parameters, CUgraphNodeType* type, Work* work) noexcept;
// The live nodes behind the handles of a call that adds a node; each belongs to the graph and stands there once.
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

// Whether an edge between such nodes may carry that annotation.
bool MayAnnotate(CUgraphNodeType from, CUgraphNodeType to, const CUgraphEdgeData& edge) noexcept;
CUDA_KERNEL_NODE_PARAMS Widen(const CUDA_KERNEL_NODE_PARAMS_v1& parameters) noexcept;
// Lets device code change a kernel node's parameters.
CUresult SetUpdatable(Node* node, CUlaunchAttributeValue* value) noexcept;
// A live node of that type.
Node* FindNode(Call& call, CUgraphNode handle, CUgraphNodeType type) noexcept;
// Replaces the parameters of the step that came from the node; `result` is what making them answered. Lets go of what work holds if
// it is not taken.
CUresult SetStep(Call& call, CUgraphExec executable, CUgraphNode node, CUgraphNodeType type, CUresult result, const Work& work) noexcept;
// The step of an executable graph that came from the node.
const Step* FindStep(const World& world, const Executable* executable, CUgraphNode node) noexcept;

}  // namespace cuaudit::sim
