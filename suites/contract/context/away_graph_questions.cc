// SPDX-License-Identifier: MIT
// What calls about graphs, their nodes and their executables answer when no context is current, and when another one than the graph's is.

#include "suites/contract/context/away.h"
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::away_graph_questions {
namespace {

// A graph of the primary context with a node of each kind, its executable and its clone. Then the context is no longer current.
struct Drawn : Ready {
  Drawn(const Asker& asker, bool elsewhere) : Ready(asker) {
    s = StreamCreate();
    e = EventCreate();
    p = MemAlloc(4096);
    const CUfunction f = ModuleGetFunction("plain");
    Prepare(d.UserObjectCreate(&u, nullptr, Nothing, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    inner = GraphCreate();
    GraphAddEmptyNode(inner);
    kernel = Sketch::KernelOf(f);
    fill = Sketch::FillOf(p, 1, 64);
    copy = Sketch::CopyOf(p + 64, p, 64);
    operation.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = p;
    operation.writeValue.value = 0;  // `{}` sets the first member of the union alone
    operation.writeValue.flags = 0;
    batch = {context, 1, &operation, 0};
    parameters.type = CU_GRAPH_NODE_TYPE_HOST;
    parameters.host.fn = Nothing;
    g = GraphCreate();
    empty = GraphAddEmptyNode(g);
    second = GraphAddEmptyNode(g, empty);
    Prepare(d.GraphAddKernelNode(&kernel_node, g, nullptr, 0, &kernel));
    Prepare(d.GraphAddMemsetNode(&fill_node, g, nullptr, 0, &fill, context));
    Prepare(d.GraphAddMemcpyNode(&copy_node, g, nullptr, 0, &copy, context));
    Prepare(d.GraphAddHostNode(&host_node, g, nullptr, 0, &host));
    Prepare(d.GraphAddChildGraphNode(&child_node, g, nullptr, 0, inner));
    Prepare(d.GraphAddEventRecordNode(&record_node, g, nullptr, 0, e));
    Prepare(d.GraphAddEventWaitNode(&wait_node, g, nullptr, 0, e));
    Prepare(d.GraphAddBatchMemOpNode(&batch_node, g, nullptr, 0, &batch));
    Prepare(d.GraphRetainUserObject(g, u, 1, 0));
    x = GraphInstantiate(g);
    Prepare(d.GraphClone(&clone, g));
    allocating = GraphCreate();
    CUDA_MEM_ALLOC_NODE_PARAMS made = alloc;
    Prepare(d.GraphAddMemAllocNode(&alloc_node, allocating, nullptr, 0, &made));
    other = GraphCreate();
    CUDA_MEM_ALLOC_NODE_PARAMS freed = alloc;
    Prepare(d.GraphAddMemAllocNode(&freed_node, other, nullptr, 0, &freed));
    q = freed.dptr;
    Prepare(d.GraphAddMemFreeNode(&free_node, allocating, &alloc_node, 1, made.dptr));
    elsewhere ? CtxCreate() : CtxPopCurrent();
  }
  // Makes the context of the objects current again.
  void Return() { Prepare(d.CtxSetCurrent(context)); }

  CUstream s;
  CUevent e;
  CUdeviceptr p, q = 0;
  CUuserObject u = nullptr;
  CUgraph g, inner, clone = nullptr, allocating, other;
  CUgraphExec x;
  CUgraphNode empty, second, kernel_node = nullptr, fill_node = nullptr, copy_node = nullptr, host_node = nullptr, child_node = nullptr,
                             record_node = nullptr, wait_node = nullptr, batch_node = nullptr, alloc_node = nullptr, freed_node = nullptr,
                             free_node = nullptr;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUDA_MEMCPY3D copy{};
  CUDA_HOST_NODE_PARAMS host{Nothing, nullptr};
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(4096);
  CUstreamBatchMemOpParams operation{};
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
  CUgraphNodeParams parameters{};
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  CUkernelNodeAttrValue value{};
};

constexpr CUkernelNodeAttrID kPriority = CU_KERNEL_NODE_ATTRIBUTE_PRIORITY;

constexpr AwayRow<Drawn> kNodes[] = {
    {"graph_add_empty", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddEmptyNode(kIgnored, a.g, nullptr, 0); }},
    {"graph_add_kernel", "crash", "SUCCESS", [](Drawn& a) { return a.d.GraphAddKernelNode(kIgnored, a.g, nullptr, 0, &a.kernel); }},
    {"graph_add_fill", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphAddMemsetNode(kIgnored, a.g, nullptr, 0, &a.fill, a.context); }},
    {"graph_add_fill_of_none", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphAddMemsetNode(kIgnored, a.g, nullptr, 0, &a.fill, nullptr); }},
    {"graph_add_copy", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphAddMemcpyNode(kIgnored, a.g, nullptr, 0, &a.copy, a.context); }},
    {"graph_add_copy_of_none", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphAddMemcpyNode(kIgnored, a.g, nullptr, 0, &a.copy, nullptr); }},
    {"graph_add_host", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddHostNode(kIgnored, a.g, nullptr, 0, &a.host); }},
    {"graph_add_child", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddChildGraphNode(kIgnored, a.g, nullptr, 0, a.inner); }},
    {"graph_add_record", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddEventRecordNode(kIgnored, a.g, nullptr, 0, a.e); }},
    {"graph_add_wait", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddEventWaitNode(kIgnored, a.g, nullptr, 0, a.e); }},
    {"graph_add_batch", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddBatchMemOpNode(kIgnored, a.g, nullptr, 0, &a.batch); }},
    {"graph_add_alloc", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddMemAllocNode(kIgnored, a.other, nullptr, 0, &a.alloc); }},
    {"graph_add_free", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddMemFreeNode(kIgnored, a.other, &a.freed_node, 1, a.q); }},
    {"graph_add_node", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddNode(kIgnored, a.g, nullptr, nullptr, 0, &a.parameters); }},
    {"graph_add_kernel_by_type", "crash", "SUCCESS",
     [](Drawn& a) {
       a.parameters = {};
       a.parameters.type = CU_GRAPH_NODE_TYPE_KERNEL;
       a.parameters.kernel.func = a.kernel.func;
       a.parameters.kernel.gridDimX = a.parameters.kernel.gridDimY = a.parameters.kernel.gridDimZ = 1;
       a.parameters.kernel.blockDimX = a.parameters.kernel.blockDimY = a.parameters.kernel.blockDimZ = 1;
       return a.d.GraphAddNode(kIgnored, a.g, nullptr, nullptr, 0, &a.parameters);
     }},
    {"graph_conditional", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphConditionalHandleCreate(kIgnored, a.g, a.context, 0, 0); }},
    {"graph_conditional_of_none", "INVALID_CONTEXT", "INVALID_CONTEXT",
     [](Drawn& a) { return a.d.GraphConditionalHandleCreate(kIgnored, a.g, nullptr, 0, 0); }},
    {"node_type", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphNodeGetType(a.kernel_node, kIgnored); }},
    {"node_destroy", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphDestroyNode(a.empty); }},
    {"node_destroy_kernel", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphDestroyNode(a.kernel_node); }},
    {"node_in_clone", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphNodeFindInClone(kIgnored, a.empty, a.clone); }},
    {"node_dependencies", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphNodeGetDependencies(a.second, nullptr, nullptr, kIgnored); }},
    {"node_dependents", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphNodeGetDependentNodes(a.empty, nullptr, nullptr, kIgnored); }},
    {"node_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphNodeSetParams(a.host_node, &a.parameters); }},
    {"kernel_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphKernelNodeGetParams(a.kernel_node, kIgnored); }},
    {"kernel_set", "crash", "SUCCESS", [](Drawn& a) { return a.d.GraphKernelNodeSetParams(a.kernel_node, &a.kernel); }},
    {"kernel_attribute_get", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphKernelNodeGetAttribute(a.kernel_node, kPriority, &a.value); }},
    {"kernel_attribute_set", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphKernelNodeSetAttribute(a.kernel_node, kPriority, &a.value); }},
    {"kernel_attributes_copy", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphKernelNodeCopyAttributes(a.kernel_node, a.kernel_node); }},
    {"fill_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphMemsetNodeGetParams(a.fill_node, kIgnored); }},
    {"fill_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphMemsetNodeSetParams(a.fill_node, &a.fill); }},
    {"copy_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphMemcpyNodeGetParams(a.copy_node, kIgnored); }},
    {"copy_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphMemcpyNodeSetParams(a.copy_node, &a.copy); }},
    {"host_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphHostNodeGetParams(a.host_node, kIgnored); }},
    {"host_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphHostNodeSetParams(a.host_node, &a.host); }},
    {"child_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphChildGraphNodeGetGraph(a.child_node, kIgnored); }},
    {"record_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphEventRecordNodeGetEvent(a.record_node, kIgnored); }},
    {"record_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphEventRecordNodeSetEvent(a.record_node, a.e); }},
    {"wait_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphEventWaitNodeGetEvent(a.wait_node, kIgnored); }},
    {"wait_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphEventWaitNodeSetEvent(a.wait_node, a.e); }},
    {"batch_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphBatchMemOpNodeGetParams(a.batch_node, kIgnored); }},
    {"batch_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphBatchMemOpNodeSetParams(a.batch_node, &a.batch); }},
    {"alloc_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphMemAllocNodeGetParams(a.alloc_node, kIgnored); }},
    {"free_get", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphMemFreeNodeGetParams(a.free_node, kIgnored); }},
};

constexpr AwayRow<Drawn> kGraphs[] = {
    {"graph_clone", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphClone(kIgnored, a.g); }},
    {"graph_destroy", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphDestroy(a.g); }},
    {"graph_nodes", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphGetNodes(a.g, nullptr, kIgnored); }},
    {"graph_roots", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphGetRootNodes(a.g, nullptr, kIgnored); }},
    {"graph_edges", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphGetEdges(a.g, nullptr, nullptr, nullptr, kIgnored); }},
    {"graph_edge_add", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphAddDependencies(a.g, &a.empty, &a.kernel_node, nullptr, 1); }},
    {"graph_edge_remove", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphRemoveDependencies(a.g, &a.empty, &a.second, nullptr, 1); }},
    {"graph_print", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphDebugDotPrint(a.g, "/dev/null", 0); }},
    {"graph_instantiate_with_flags", "INVALID_CONTEXT", "SUCCESS",
     [](Drawn& a) { return a.d.GraphInstantiateWithFlags(kIgnored, a.g, 0); }},
    {"graph_instantiate_with_parameters", "INVALID_CONTEXT", "SUCCESS",
     [](Drawn& a) { return a.d.GraphInstantiateWithParams(kIgnored, a.g, &a.how); }},
    {"graph_instantiate_and_upload", "SUCCESS", "SUCCESS",
     [](Drawn& a) {
       a.how.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
       a.how.hUploadStream = a.s;
       return a.d.GraphInstantiateWithParams(kIgnored, a.g, &a.how);
     }},
    {"graph_retain_object", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphRetainUserObject(a.g, a.u, 1, 0); }},
    {"graph_release_object", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphReleaseUserObject(a.g, a.u, 1); }},
    {"object_retain", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.UserObjectRetain(a.u, 1); }},
    {"object_release", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.UserObjectRelease(a.u, 1); }},
    {"exec_update", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecUpdate(a.x, a.g, kIgnored); }},
    {"exec_flags", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecGetFlags(a.x, kIgnored); }},
    {"exec_set", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecNodeSetParams(a.x, a.host_node, &a.parameters); }},
    {"exec_set_kernel", "crash", "SUCCESS", [](Drawn& a) { return a.d.GraphExecKernelNodeSetParams(a.x, a.kernel_node, &a.kernel); }},
    {"exec_set_fill", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphExecMemsetNodeSetParams(a.x, a.fill_node, &a.fill, a.context); }},
    {"exec_set_copy", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.GraphExecMemcpyNodeSetParams(a.x, a.copy_node, &a.copy, a.context); }},
    {"exec_set_host", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecHostNodeSetParams(a.x, a.host_node, &a.host); }},
    {"exec_set_child", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecChildGraphNodeSetParams(a.x, a.child_node, a.inner); }},
    {"exec_set_record", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecEventRecordNodeSetEvent(a.x, a.record_node, a.e); }},
    {"exec_set_wait", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecEventWaitNodeSetEvent(a.x, a.wait_node, a.e); }},
    {"exec_set_batch", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphExecBatchMemOpNodeSetParams(a.x, a.batch_node, &a.batch); }},
    {"exec_enabled", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphNodeGetEnabled(a.x, a.kernel_node, kIgnored); }},
    {"exec_enable", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.GraphNodeSetEnabled(a.x, a.kernel_node, 0); }},
    {"exec_launch_default_stream", "INVALID_CONTEXT", "SUCCESS", [](Drawn& a) { return a.d.GraphLaunch(a.x, nullptr); }},
    {"capture_begin", "SUCCESS", "SUCCESS", [](Drawn& a) { return a.d.StreamBeginCapture(a.s, CU_STREAM_CAPTURE_MODE_RELAXED); }},
    {"capture_begin_to_graph", "SUCCESS", "SUCCESS",
     [](Drawn& a) { return a.d.StreamBeginCaptureToGraph(a.s, a.g, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED); }},
    {"capture_end", "SUCCESS", "SUCCESS",
     [](Drawn& a) {
       a.Prepare(a.d.StreamBeginCapture(a.s, CU_STREAM_CAPTURE_MODE_RELAXED));
       return a.d.StreamEndCapture(a.s, kIgnored);
     }},
    {"capture_info", "SUCCESS", "SUCCESS",
     [](Drawn& a) {
       a.Prepare(a.d.StreamBeginCapture(a.s, CU_STREAM_CAPTURE_MODE_RELAXED));
       const CUresult result = a.d.StreamGetCaptureInfo(a.s, kIgnored, nullptr, nullptr, nullptr, nullptr, nullptr);
       a.Prepare(a.d.StreamEndCapture(a.s, kIgnored));
       return result;
     }},
    {"capture_dependencies", "SUCCESS", "SUCCESS",
     [](Drawn& a) {
       a.Prepare(a.d.StreamBeginCapture(a.s, CU_STREAM_CAPTURE_MODE_RELAXED));
       const CUresult result = a.d.StreamUpdateCaptureDependencies(a.s, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
       a.Prepare(a.d.StreamEndCapture(a.s, kIgnored));
       return result;
     }},
};

}  // namespace

void List(Questions& ask) {
  AskAway(ask, kNodes);
  AskAway(ask, kGraphs);
}

}  // namespace cuaudit::contract::away_graph_questions
