// SPDX-License-Identifier: MIT
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::conditional_questions {
namespace {

CUgraphConditionalHandle HandleOf(Asker& a, const Sketch& s, CUcontext context, unsigned value) {
  CUgraphConditionalHandle handle = 0;
  a.Prepare(a.d.GraphConditionalHandleCreate(&handle, s.g, context, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
  return handle;
}

CUresult AddNode(Asker& a, const Sketch& s, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size,
                 CUcontext context, CUgraph* bodies, CUgraphNode* node = nullptr) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = size;
  parameters.conditional.ctx = context;
  CUgraphNode n = nullptr;
  const CUresult result = a.d.GraphAddNode(&n, s.g, nullptr, nullptr, 0, &parameters);
  if (node != nullptr) *node = n;
  if (result != CUDA_SUCCESS || bodies == nullptr) return result;
  for (unsigned i = 0; i < size; ++i) bodies[i] = parameters.conditional.phGraph_out[i];
  return result;
}

// Launches a conditional whose bodies write their own number, plus one.
void Run(Asker& a, CUgraphConditionalNodeType type, unsigned size, unsigned value) {
  const Ready ready(a);
  const CUdeviceptr p = Cleared(a, 64);
  Sketch s(a);
  CUgraph bodies[4] = {};
  a(AddNode(a, s, HandleOf(a, s, ready.context, value), type, size, ready.context, bodies));
  for (unsigned i = 0; i < size; ++i) (void)Sketch::FillIn(a, bodies[i], p, i + 1, 64, ready.context);
  s.Instantiate();
  a(a.d.GraphLaunch(s.x, nullptr));
  a(a.d.StreamSynchronize(nullptr));
  a.ByteAt(p);
  (void)a.d.MemFree(p);
}

}  // namespace

void List(Questions& ask) {
  ask.Risky("conditional.handle", "SUCCESS 1 INVALID_VALUE x3 INVALID_CONTEXT", [](Ready& a, const Sketch& s) {
    CUgraphConditionalHandle handle = 0;
    a(a.d.GraphConditionalHandleCreate(&handle, s.g, a.context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    a.Value(handle != 0);
    a(a.d.GraphConditionalHandleCreate(&handle, s.g, a.context, 1, 2));
    a(a.d.GraphConditionalHandleCreate(nullptr, s.g, a.context, 1, 0));
    a(a.d.GraphConditionalHandleCreate(&handle, nullptr, a.context, 1, 0));
    a(a.d.GraphConditionalHandleCreate(&handle, s.g, nullptr, 1, 0));
  });
  ask.Fresh("conditional.if_taken", "SUCCESS x3 1", [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_IF, 1, 1); });
  ask.Fresh("conditional.if_not_taken", "SUCCESS x3 0", [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_IF, 1, 0); });
  ask.Fresh("conditional.if_else", "SUCCESS x3 2", [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_IF, 2, 0); });
  ask.Fresh("conditional.switch", "SUCCESS x3 3", [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_SWITCH, 3, 2); });
  ask.Fresh("conditional.switch_beyond", "SUCCESS x3 0", [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_SWITCH, 3, 7); });
  ask.Fresh("conditional.while_never", "SUCCESS x3 0", [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_WHILE, 1, 0); });
  ask.Fresh("conditional.no_default", "SUCCESS x3 0", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    Sketch s(a);
    CUgraphConditionalHandle handle = 0;
    CUgraph body = nullptr;
    a.Prepare(a.d.GraphConditionalHandleCreate(&handle, s.g, a.context, 1, 0));
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, a.context, &body));
    (void)Sketch::FillIn(a, body, p, 1, 64, a.context);
    s.Instantiate();
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a.ByteAt(p);
  });
  ask.Risky("conditional.unused_handle", "INVALID_VALUE 5 1 INVALID_VALUE", [](Ready& a, Sketch& s) {
    (void)s.Empty();
    (void)HandleOf(a, s, a.context, 1);
    CUDA_GRAPH_INSTANTIATE_PARAMS p{};
    CUgraphExec x = nullptr;
    a(a.d.GraphInstantiateWithParams(&x, s.g, &p), p.result_out);
    a.Value(p.hErrNode_out == nullptr);
    a(a.d.GraphInstantiateWithFlags(&x, s.g, 0));
  });
  ask.Risky("conditional.node_refused", "INVALID_VALUE x6", [](Ready& a, const Sketch& s) {
    const CUgraphConditionalHandle handle = HandleOf(a, s, a.context, 1);
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 0, a.context, nullptr));
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 3, a.context, nullptr));
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_WHILE, 2, a.context, nullptr));
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_SWITCH, 0, a.context, nullptr));
    a(AddNode(a, s, handle, Beyond<CUgraphConditionalNodeType>(9), 1, a.context, nullptr));
    a(AddNode(a, s, 0, CU_GRAPH_COND_TYPE_IF, 1, a.context, nullptr));
  });
  ask.Risky("conditional.handle_twice", "SUCCESS INVALID_VALUE", [](Ready& a, const Sketch& s) {
    const CUgraphConditionalHandle handle = HandleOf(a, s, a.context, 1);
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, a.context, nullptr));
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, a.context, nullptr));
  });
  ask.Risky("conditional.handle_of_another_graph", "INVALID_VALUE", [](Ready& a, const Sketch& s, const Sketch& other) {
    a(AddNode(a, s, HandleOf(a, other, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, nullptr));
  });
  ask.Risky("conditional.other_context", "INVALID_VALUE INVALID_CONTEXT", [](Ready& a, const Sketch& s) {
    CUcontext other = a.CtxCreate();
    a.Prepare(a.d.CtxPopCurrent(&other));
    const CUgraphConditionalHandle handle = HandleOf(a, s, a.context, 1);
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, other, nullptr));
    a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, nullptr, nullptr));
  });
  ask.Risky("conditional.body_is_owned", "INVALID_VALUE SUCCESS 13 SUCCESS NOT_SUPPORTED", [](Ready& a, const Sketch& s) {
    CUgraph body = nullptr;
    CUgraphNode n = nullptr;
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, &body, &n));
    a(a.d.GraphDestroy(body));
    CUgraphNodeType type{};
    a(a.d.GraphNodeGetType(n, &type), type);
    a(a.d.GraphGetNodes(body, nullptr, kIgnored));
    a(a.d.GraphInstantiateWithFlags(kIgnored, body, 0));
  });
  ask.Risky("conditional.body_forbids_host", "SUCCESS INVALID_VALUE", [](Ready& a, const Sketch& s) {
    CUgraph body = nullptr;
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, &body));
    const CUDA_HOST_NODE_PARAMS host{Nothing, nullptr};
    a(a.d.GraphAddHostNode(kIgnored, body, nullptr, 0, &host));
    a(a.d.GraphInstantiateWithFlags(kIgnored, s.g, 0));
  });
  ask.Risky("conditional.body_forbids_alloc", "SUCCESS INVALID_VALUE", [](Ready& a, const Sketch& s) {
    CUgraph body = nullptr;
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, &body));
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(4096);
    a(a.d.GraphAddMemAllocNode(kIgnored, body, nullptr, 0, &alloc));
    a(a.d.GraphInstantiateWithFlags(kIgnored, s.g, 0));
  });
  ask.Risky("conditional.body_forbids_event", "SUCCESS INVALID_VALUE", [](Ready& a, const Sketch& s) {
    CUgraph body = nullptr;
    const CUevent e = a.EventCreate();
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, &body));
    a(a.d.GraphAddEventRecordNode(kIgnored, body, nullptr, 0, e));
    a(a.d.GraphInstantiateWithFlags(kIgnored, s.g, 0));
  });
  ask.Risky("conditional.no_clone_no_child", "NOT_SUPPORTED NOT_SUPPORTED SUCCESS", [](Ready& a, const Sketch& s, const Sketch& outer) {
    CUgraphNode n = nullptr;
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, nullptr, &n));
    a(a.d.GraphClone(kIgnored, s.g));
    a(a.d.GraphAddChildGraphNode(kIgnored, outer.g, nullptr, 0, s.g));
    a(a.d.GraphDestroyNode(n));
  });
  ask.Risky("conditional.one_executable", "SUCCESS NOT_SUPPORTED", [](Ready& a, Sketch& s) {
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 0), CU_GRAPH_COND_TYPE_IF, 1, a.context, nullptr));
    a(a.d.GraphInstantiateWithFlags(&s.x, s.g, 0));
    a(a.d.GraphInstantiateWithFlags(kIgnored, s.g, 0));
  });
  ask.Risky("conditional.captured_body", "SUCCESS SUCCESS 1 2 1", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    Sketch s(a);
    CUgraph body = nullptr;
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, &body));
    const CUstream stream = a.StreamCreate();
    a(a.d.StreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a.Prepare(a.d.MemsetD8Async(p, 1, 64, stream));
    a.Prepare(a.d.MemsetD8Async(p + 32, 1, 32, stream));
    CUgraph ended = nullptr;
    a(a.d.StreamEndCapture(stream, &ended));
    a.Value(ended == body);
    std::size_t count = 0;
    a.Values(a.d.GraphGetNodes(body, nullptr, &count), count);
    s.Instantiate();
    a.Prepare(a.d.GraphLaunch(s.x, nullptr));
    a.Prepare(a.d.StreamSynchronize(nullptr));
    a.ByteAt(p);
  });
  ask.Risky("conditional.set_refused", "NOT_SUPPORTED NOT_SUPPORTED INVALID_VALUE", [](Ready& a, Sketch& s) {
    CUgraphNode n = nullptr;
    const CUgraphConditionalHandle handle = HandleOf(a, s, a.context, 0);
    a.Prepare(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, a.context, nullptr, &n));
    s.Instantiate();
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle;
    parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = a.context;
    a(a.d.GraphNodeSetParams(n, &parameters));
    a(a.d.GraphExecNodeSetParams(s.x, n, &parameters));
    a(a.d.GraphNodeSetEnabled(s.x, n, 0));
  });
  ask.Risky("conditional.update", "SUCCESS 0 1", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    Sketch s(a);
    Sketch t(a);
    CUgraph body = nullptr;
    a.Prepare(AddNode(a, s, HandleOf(a, s, a.context, 0), CU_GRAPH_COND_TYPE_IF, 1, a.context, &body));
    (void)Sketch::FillIn(a, body, p, 1, 64, a.context);
    a.Prepare(AddNode(a, t, HandleOf(a, t, a.context, 1), CU_GRAPH_COND_TYPE_IF, 1, a.context, &body));
    (void)Sketch::FillIn(a, body, p, 1, 64, a.context);
    s.Instantiate();
    CUgraphExecUpdateResultInfo info{};
    a(a.d.GraphExecUpdate(s.x, t.g, &info), info.result);
    a.Prepare(a.d.GraphLaunch(s.x, nullptr));
    a.Prepare(a.d.StreamSynchronize(nullptr));
    a.ByteAt(p);
  });
}

}  // namespace cuaudit::contract::conditional_questions
