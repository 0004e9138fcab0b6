// SPDX-License-Identifier: MIT
// node.h: node parameters of every version as Work, checked as the driver checks them.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller.
//   Errors    the code that adding or changing a node with these parameters answers.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Graph Management.
#pragma once

#include "faults/sim/graph.h"

namespace cuaudit::sim {

CUresult KernelWork(Call& call, const CUDA_KERNEL_NODE_PARAMS& parameters, Work* work) noexcept;
CUresult CopyWork(Call& call, const CUDA_MEMCPY3D* parameters, Work* work) noexcept;
CUresult FillWork(Call& call, const CUDA_MEMSET_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult HostWork(const CUDA_HOST_NODE_PARAMS* parameters, Work* work) noexcept;
CUresult EventWork(Call& call, CUevent event, WorkType type, Work* work) noexcept;
// The generic form; *type says which node it is.
CUresult WorkOf(Call& call, const CUgraphNodeParams* parameters, CUgraphNodeType* type, Work* work) noexcept;
CUDA_KERNEL_NODE_PARAMS Widen(const CUDA_KERNEL_NODE_PARAMS_v1& parameters) noexcept;
// A live node of that type.
Node* FindNode(Call& call, CUgraphNode handle, CUgraphNodeType type) noexcept;
// The step of an executable graph that came from the node, if it has that type.
Step* FindStep(Call& call, CUgraphExec executable, CUgraphNode node) noexcept;
void WaitForLaunches(Call& call, Executable* executable) noexcept;

}  // namespace cuaudit::sim
