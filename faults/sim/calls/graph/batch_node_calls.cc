// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/arguments.h"
#include "faults/sim/operation/batch_node.h"

namespace cuaudit::sim {

CUresult api::GraphAddBatchMemOpNode(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count,
                                     const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Dependencies earlier(call.world);
  CUresult result = earlier.Resolve(handle, dependencies, count);
  if (result != CUDA_SUCCESS) return result;
  Work work;
  result = BatchWork(call, parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  const Node* const node = AddNode(call.world, earlier.graph(), earlier.nodes().data(), count, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work);
  DropArguments(call.world, work);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUgraphNode>(node);
  return CUDA_SUCCESS;
}

CUresult api::GraphBatchMemOpNodeGetParams(Call& call, CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.batch;
  return CUDA_SUCCESS;
}

CUresult api::GraphBatchMemOpNodeSetParams(Call& call, CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = BatchWork(call, parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  DropArguments(call.world, node->work);
  node->work = work;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
