// SPDX-License-Identifier: MIT
// Graph nodes of each kind: what was put in comes out again, and what is refused.
#include <cstring>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::node_questions {
namespace {

cudaPitchedPtr Row(void* pointer, std::size_t bytes) { return {pointer, bytes, bytes, 1}; }

cudaMemcpy3DParms Copy(void* to, void* from, std::size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = Row(from, bytes);
  parameters.dstPtr = Row(to, bytes);
  parameters.extent = {bytes, 1, 1};
  parameters.kind = kind;
  return parameters;
}

void RunOnce(Asker& a, cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  const cudaStream_t stream = NewStream(a);
  a(cudaGraphInstantiate(&exec, graph, 0));
  a(cudaGraphLaunch(exec, stream));
  a(cudaStreamSynchronize(stream));
  a(cudaGraphExecDestroy(exec));
}

constexpr Question kQuestions[] = {
    {"node.memcpy",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       char from[8] = "abcdefg";
       const cudaMemcpy3DParms wanted = Copy(block, from, 8, cudaMemcpyHostToDevice);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &wanted));
       cudaMemcpy3DParms seen{};
       a(cudaGraphMemcpyNodeGetParams(node, &seen));
       a.Value(seen.kind);
       a.Value(seen.srcPtr.ptr == from);
       a.Value(static_cast<long long>(seen.srcPtr.pitch));
       a.Value(static_cast<long long>(seen.srcPtr.xsize));
       a.Value(static_cast<long long>(seen.srcPtr.ysize));
       a.Value(static_cast<long long>(seen.extent.width));
       a.Value(static_cast<long long>(seen.extent.height));
       a.Value(static_cast<long long>(seen.extent.depth));
       RunOnce(a, graph);
       char to[8] = {};
       a(cudaMemcpy(to, block, 8, cudaMemcpyDefault));
       a.Text(to);
     }},
    {"node.memcpy_1d",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       char* const other = NewBlock(a);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, block, other, 16, cudaMemcpyDeviceToDevice));
       cudaMemcpy3DParms seen{};
       a(cudaGraphMemcpyNodeGetParams(node, &seen));
       a.Value(seen.kind);
       a.Value(static_cast<long long>(seen.extent.width));
       a.Value(seen.dstPtr.ptr == block);
       a(cudaGraphMemcpyNodeSetParams1D(node, other, block, 32, cudaMemcpyDefault));
       a(cudaGraphMemcpyNodeGetParams(node, &seen));
       a.Value(seen.kind);
       a.Value(static_cast<long long>(seen.extent.width));
       a(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, block, other, 0, cudaMemcpyDeviceToDevice));
       a(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, block, other, 16, Beyond<cudaMemcpyKind>(9)));
     }},
    {"node.memcpy_bad",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, nullptr));
       cudaMemcpy3DParms wanted = Copy(block, block + 64, 8, Beyond<cudaMemcpyKind>(9));
       a(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &wanted));
       wanted = Copy(nullptr, block + 64, 8, cudaMemcpyDeviceToDevice);
       a(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &wanted));
       wanted = Copy(block, block + 64, 0, cudaMemcpyDeviceToDevice);
       a(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &wanted));
       a(cudaGraphMemcpyNodeGetParams(nullptr, &wanted));
     }},
    {"node.exec_memcpy",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       char* const other = NewBlock(a);
       cudaGraphNode_t node = nullptr;
       a.Prepare(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, block, other, 16, cudaMemcpyDeviceToDevice));
       cudaGraphExec_t exec = nullptr;
       a.Prepare(cudaGraphInstantiate(&exec, graph, 0));
       a(cudaGraphExecMemcpyNodeSetParams1D(exec, node, other, block, 16, cudaMemcpyDeviceToDevice));
       cudaMemcpy3DParms wanted = Copy(block, other, 8, cudaMemcpyDeviceToDevice);
       a(cudaGraphExecMemcpyNodeSetParams(exec, node, &wanted));
       char host[16] = {};
       a(cudaGraphExecMemcpyNodeSetParams1D(exec, node, host, block, 16, cudaMemcpyDeviceToHost));
     }},
    {"node.memset",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       cudaMemsetParams wanted{};
       wanted.dst = block;
       wanted.elementSize = 1;
       wanted.value = 0x41;
       wanted.width = 8;
       wanted.height = 1;
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &wanted));
       cudaMemsetParams seen{};
       a(cudaGraphMemsetNodeGetParams(node, &seen));
       a.Value(seen.dst == block);
       a.Value(seen.elementSize);
       a.Value(seen.value);
       a.Value(static_cast<long long>(seen.width));
       a.Value(static_cast<long long>(seen.height));
       a.Value(static_cast<long long>(seen.pitch));
       RunOnce(a, graph);
       char to[8] = {};
       a(cudaMemcpy(to, block, 8, cudaMemcpyDefault));
       a.Value(to[7]);
       wanted.elementSize = 3;
       a(cudaGraphMemsetNodeSetParams(node, &wanted));
       wanted.elementSize = 4;
       a(cudaGraphMemsetNodeSetParams(node, &wanted));
       wanted.dst = nullptr;
       a(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &wanted));
       a(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, nullptr));
     }},
    {"node.host",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       int here = 0;
       cudaHostNodeParams wanted{Nothing, &here};
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddHostNode(&node, graph, nullptr, 0, &wanted));
       cudaHostNodeParams seen{};
       a(cudaGraphHostNodeGetParams(node, &seen));
       a.Value(seen.fn == Nothing && seen.userData == &here);
       wanted.fn = nullptr;
       a(cudaGraphHostNodeSetParams(node, &wanted));
       a(cudaGraphAddHostNode(&node, graph, nullptr, 0, &wanted));
       a(cudaGraphAddHostNode(&node, graph, nullptr, 0, nullptr));
       a(cudaGraphHostNodeGetParams(node, nullptr));
     }},
    {"node.events",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       const cudaEvent_t event = NewEvent(a);
       const cudaEvent_t other = NewEvent(a);
       cudaGraphNode_t record = nullptr;
       cudaGraphNode_t wait = nullptr;
       a(cudaGraphAddEventRecordNode(&record, graph, nullptr, 0, event));
       a(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, event));
       cudaEvent_t seen = nullptr;
       a(cudaGraphEventRecordNodeGetEvent(record, &seen));
       a.Value(seen == event);
       a(cudaGraphEventWaitNodeSetEvent(wait, other));
       a(cudaGraphEventWaitNodeGetEvent(wait, &seen));
       a.Value(seen == other);
       a(cudaGraphEventWaitNodeGetEvent(record, &seen));
       a(cudaGraphAddEventRecordNode(&record, graph, nullptr, 0, nullptr));
       RunOnce(a, graph);
     }},
    {"node.types",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       cudaGraphNode_t nodes[5] = {};
       const cudaHostNodeParams host{Nothing, nullptr};
       a.Prepare(cudaGraphAddEmptyNode(&nodes[0], graph, nullptr, 0));
       a.Prepare(cudaGraphAddMemcpyNode1D(&nodes[1], graph, nullptr, 0, block, block + 64, 16, cudaMemcpyDeviceToDevice));
       a.Prepare(cudaGraphAddHostNode(&nodes[2], graph, nullptr, 0, &host));
       a.Prepare(cudaGraphAddEventRecordNode(&nodes[3], graph, nullptr, 0, NewEvent(a)));
       a.Prepare(cudaGraphAddEventWaitNode(&nodes[4], graph, nullptr, 0, NewEvent(a)));
       for (const cudaGraphNode_t node : nodes) {
         cudaGraphNodeType type{};
         a(cudaGraphNodeGetType(node, &type));
         a.Value(type);
       }
       cudaHostNodeParams seen{};
       a(cudaGraphHostNodeGetParams(nodes[0], &seen));
       cudaGraphNodeType type{};
       a(cudaGraphNodeGetType(nullptr, &type));
       a(cudaGraphNodeGetType(nodes[0], nullptr));
     }},
    {"node.memory",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaMemAllocNodeParams wanted{};
       wanted.poolProps.allocType = cudaMemAllocationTypePinned;
       wanted.poolProps.location = {cudaMemLocationTypeDevice, 0};
       wanted.bytesize = 1000;
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted));
       a.Value(wanted.dptr != nullptr);
       cudaMemAllocNodeParams seen{};
       a(cudaGraphMemAllocNodeGetParams(node, &seen));
       a.Value(static_cast<long long>(seen.bytesize));
       a.Value(seen.dptr == wanted.dptr);
       a.Value(seen.poolProps.location.type);
       cudaGraphNode_t free_node = nullptr;
       a(cudaGraphAddMemFreeNode(&free_node, graph, &node, 1, wanted.dptr));
       void* pointer = nullptr;
       a(cudaGraphMemFreeNodeGetParams(free_node, &pointer));
       a.Value(pointer == wanted.dptr);
       a(cudaGraphAddMemFreeNode(&free_node, graph, &node, 1, wanted.dptr));
       a(cudaGraphAddMemFreeNode(&free_node, graph, &node, 1, nullptr));
       RunOnce(a, graph);
       a(cudaGraphDestroyNode(node));
       cudaGraph_t clone = nullptr;
       a(cudaGraphClone(&clone, graph));
     }},
    {"node.memory_not_freed",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaMemAllocNodeParams wanted{};
       wanted.poolProps.allocType = cudaMemAllocationTypePinned;
       wanted.poolProps.location = {cudaMemLocationTypeDevice, 0};
       wanted.bytesize = 1000;
       cudaGraphNode_t node = nullptr;
       a.Prepare(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted));
       const cudaGraphExec_t exec = Instantiated(a, graph);
       const cudaStream_t stream = NewStream(a);
       a(cudaGraphLaunch(exec, stream));
       a(cudaGraphLaunch(exec, stream));
       a(cudaFreeAsync(wanted.dptr, stream));
       a(cudaGraphLaunch(exec, stream));
       a(cudaStreamSynchronize(stream));
       a(cudaFree(wanted.dptr));
     }},
    {"node.generic",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       cudaGraphNode_t node = nullptr;
       cudaGraphNodeParams parameters{};
       parameters.type = cudaGraphNodeTypeEmpty;
       a(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
       parameters = {};
       parameters.type = cudaGraphNodeTypeMemset;
       parameters.memset.dst = block;
       parameters.memset.elementSize = 4;
       parameters.memset.width = 4;
       parameters.memset.height = 1;
       a(cudaGraphAddNode(&node, graph, &node, nullptr, 1, &parameters));
       parameters.memset.width = 8;
       a(cudaGraphNodeSetParams(node, &parameters));
       cudaMemsetParams seen{};
       a(cudaGraphMemsetNodeGetParams(node, &seen));
       a.Value(static_cast<long long>(seen.width));
       parameters = {};
       parameters.type = cudaGraphNodeTypeHost;
       parameters.host.fn = Nothing;
       a(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
       parameters = {};
       parameters.type = cudaGraphNodeTypeMemcpy;
       parameters.memcpy.copyParams = Copy(block, block + 64, 8, cudaMemcpyDeviceToDevice);
       a(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
       const cudaGraphExec_t exec = Instantiated(a, graph);
       a(cudaGraphExecNodeSetParams(exec, node, &parameters));
       parameters.type = Beyond<cudaGraphNodeType>(77);
       a(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
       a(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, nullptr));
     }},
    {"node.enabled",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       char* const block = NewBlock(a);
       cudaGraphNode_t copy = nullptr;
       cudaGraphNode_t empty = nullptr;
       a.Prepare(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, block, block + 64, 16, cudaMemcpyDeviceToDevice));
       a.Prepare(cudaGraphAddEmptyNode(&empty, graph, nullptr, 0));
       cudaGraphExec_t exec = nullptr;
       a.Prepare(cudaGraphInstantiate(&exec, graph, 0));
       unsigned enabled = 77;
       a(cudaGraphNodeGetEnabled(exec, copy, &enabled));
       a.Value(enabled);
       a(cudaGraphNodeSetEnabled(exec, copy, 0));
       a(cudaGraphNodeGetEnabled(exec, copy, &enabled));
       a.Value(enabled);
       a(cudaGraphNodeSetEnabled(exec, empty, 0));
       a(cudaGraphNodeSetEnabled(nullptr, copy, 0));
     }},
    {"node.kernel_bad",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaKernelNodeParams wanted{};
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &wanted));
       wanted.func = Invented();
       wanted.gridDim = dim3(1);
       wanted.blockDim = dim3(1);
       a(cudaGraphAddKernelNode(&node, graph, nullptr, 0, nullptr));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::node_questions

namespace cuaudit::cudart {
std::span<const Question> NodeQuestions() { return node_questions::kQuestions; }
}  // namespace cuaudit::cudart
