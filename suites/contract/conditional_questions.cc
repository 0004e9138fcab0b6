// SPDX-License-Identifier: MIT
#include "suites/contract/graph_furniture.h"

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
  ShowByte(a, p);
  (void)a.d.MemFree(p);
}

constexpr Question kQuestions[] = {
    {"conditional.handle", "SUCCESS 1 INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       CUgraphConditionalHandle handle = 0;
       a(a.d.GraphConditionalHandleCreate(&handle, s.g, ready.context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
       a.Value(handle != 0);
       a(a.d.GraphConditionalHandleCreate(&handle, s.g, ready.context, 1, 2));
       a(a.d.GraphConditionalHandleCreate(nullptr, s.g, ready.context, 1, 0));
       a(a.d.GraphConditionalHandleCreate(&handle, nullptr, ready.context, 1, 0));
       a(a.d.GraphConditionalHandleCreate(&handle, s.g, nullptr, 1, 0));
     }},
    {"conditional.if_taken", "SUCCESS SUCCESS SUCCESS 1", Manner::Fresh, [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_IF, 1, 1); }},
    {"conditional.if_not_taken", "SUCCESS SUCCESS SUCCESS 0", Manner::Fresh, [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_IF, 1, 0); }},
    {"conditional.if_else", "SUCCESS SUCCESS SUCCESS 2", Manner::Fresh, [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_IF, 2, 0); }},
    {"conditional.switch", "SUCCESS SUCCESS SUCCESS 3", Manner::Fresh, [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_SWITCH, 3, 2); }},
    {"conditional.switch_beyond", "SUCCESS SUCCESS SUCCESS 0", Manner::Fresh, [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_SWITCH, 3, 7); }},
    {"conditional.while_never", "SUCCESS SUCCESS SUCCESS 0", Manner::Fresh, [](Asker& a) { Run(a, CU_GRAPH_COND_TYPE_WHILE, 1, 0); }},
    {"conditional.no_default", "SUCCESS SUCCESS SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const CUdeviceptr p = Cleared(a, 64);
       Sketch s(a);
       CUgraphConditionalHandle handle = 0;
       CUgraph body = nullptr;
       a.Prepare(a.d.GraphConditionalHandleCreate(&handle, s.g, ready.context, 1, 0));
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body));
       (void)Sketch::FillIn(a, body, p, 1, 64, ready.context);
       s.Instantiate();
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       ShowByte(a, p);
     }},
    {"conditional.unused_handle", "INVALID_VALUE 5 1 INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       (void)s.Empty();
       (void)HandleOf(a, s, ready.context, 1);
       CUDA_GRAPH_INSTANTIATE_PARAMS p{};
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithParams(&x, s.g, &p));
       a.Value(p.result_out);
       a.Value(p.hErrNode_out == nullptr);
       a(a.d.GraphInstantiateWithFlags(&x, s.g, 0));
     }},
    {"conditional.node_refused", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       const CUgraphConditionalHandle handle = HandleOf(a, s, ready.context, 1);
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 0, ready.context, nullptr));
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 3, ready.context, nullptr));
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_WHILE, 2, ready.context, nullptr));
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_SWITCH, 0, ready.context, nullptr));
       a(AddNode(a, s, handle, Beyond<CUgraphConditionalNodeType>(9), 1, ready.context, nullptr));
       a(AddNode(a, s, 0, CU_GRAPH_COND_TYPE_IF, 1, ready.context, nullptr));
     }},
    {"conditional.handle_twice", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       const CUgraphConditionalHandle handle = HandleOf(a, s, ready.context, 1);
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, ready.context, nullptr));
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, ready.context, nullptr));
     }},
    {"conditional.handle_of_another_graph", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       const Sketch other(a);
       a(AddNode(a, s, HandleOf(a, other, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, nullptr));
     }},
    {"conditional.other_context", "INVALID_VALUE INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       CUcontext other = nullptr;
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.CtxPopCurrent(&other));
       const CUgraphConditionalHandle handle = HandleOf(a, s, ready.context, 1);
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, other, nullptr));
       a(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, nullptr, nullptr));
     }},
    {"conditional.body_is_owned", "INVALID_VALUE SUCCESS 13 SUCCESS NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       CUgraph body = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body, &n));
       a(a.d.GraphDestroy(body));
       CUgraphNodeType type{};
       a(a.d.GraphNodeGetType(n, &type));
       a.Value(type);
       std::size_t count = 0;
       a(a.d.GraphGetNodes(body, nullptr, &count));
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithFlags(&x, body, 0));
     }},
    {"conditional.body_forbids_host", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       CUgraph body = nullptr;
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body));
       CUgraphNode n = nullptr;
       const CUDA_HOST_NODE_PARAMS host{Nothing, nullptr};
       a(a.d.GraphAddHostNode(&n, body, nullptr, 0, &host));
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithFlags(&x, s.g, 0));
     }},
    {"conditional.body_forbids_alloc", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       CUgraph body = nullptr;
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body));
       CUgraphNode n = nullptr;
       CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(4096);
       a(a.d.GraphAddMemAllocNode(&n, body, nullptr, 0, &alloc));
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithFlags(&x, s.g, 0));
     }},
    {"conditional.body_forbids_event", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       CUgraph body = nullptr;
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body));
       CUgraphNode n = nullptr;
       a(a.d.GraphAddEventRecordNode(&n, body, nullptr, 0, e));
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithFlags(&x, s.g, 0));
     }},
    {"conditional.no_clone_no_child", "NOT_SUPPORTED NOT_SUPPORTED SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       const Sketch outer(a);
       CUgraphNode n = nullptr;
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, nullptr, &n));
       CUgraph clone = nullptr;
       CUgraphNode child = nullptr;
       a(a.d.GraphClone(&clone, s.g));
       a(a.d.GraphAddChildGraphNode(&child, outer.g, nullptr, 0, s.g));
       a(a.d.GraphDestroyNode(n));
     }},
    {"conditional.one_executable", "SUCCESS NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 0), CU_GRAPH_COND_TYPE_IF, 1, ready.context, nullptr));
       CUgraphExec second = nullptr;
       a(a.d.GraphInstantiateWithFlags(&s.x, s.g, 0));
       a(a.d.GraphInstantiateWithFlags(&second, s.g, 0));
     }},
    {"conditional.captured_body", "SUCCESS SUCCESS 1 2 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUdeviceptr p = Cleared(a, 64);
       Sketch s(a);
       CUgraph body = nullptr;
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body));
       CUstream stream = nullptr;
       a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a.Prepare(a.d.MemsetD8Async(p, 1, 64, stream));
       a.Prepare(a.d.MemsetD8Async(p + 32, 1, 32, stream));
       CUgraph ended = nullptr;
       a(a.d.StreamEndCapture(stream, &ended));
       a.Value(ended == body);
       std::size_t count = 0;
       a.Prepare(a.d.GraphGetNodes(body, nullptr, &count));
       a.Value(static_cast<long long>(count));
       s.Instantiate();
       a.Prepare(a.d.GraphLaunch(s.x, nullptr));
       a.Prepare(a.d.StreamSynchronize(nullptr));
       ShowByte(a, p);
     }},
    {"conditional.set_refused", "NOT_SUPPORTED NOT_SUPPORTED INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUgraphNode n = nullptr;
       const CUgraphConditionalHandle handle = HandleOf(a, s, ready.context, 0);
       a.Prepare(AddNode(a, s, handle, CU_GRAPH_COND_TYPE_IF, 1, ready.context, nullptr, &n));
       s.Instantiate();
       CUgraphNodeParams parameters{};
       parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
       parameters.conditional.handle = handle;
       parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
       parameters.conditional.size = 1;
       parameters.conditional.ctx = ready.context;
       a(a.d.GraphNodeSetParams(n, &parameters));
       a(a.d.GraphExecNodeSetParams(s.x, n, &parameters));
       a(a.d.GraphNodeSetEnabled(s.x, n, 0));
     }},
    {"conditional.update", "SUCCESS 0 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUdeviceptr p = Cleared(a, 64);
       Sketch s(a);
       Sketch t(a);
       CUgraph body = nullptr;
       a.Prepare(AddNode(a, s, HandleOf(a, s, ready.context, 0), CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body));
       (void)Sketch::FillIn(a, body, p, 1, 64, ready.context);
       a.Prepare(AddNode(a, t, HandleOf(a, t, ready.context, 1), CU_GRAPH_COND_TYPE_IF, 1, ready.context, &body));
       (void)Sketch::FillIn(a, body, p, 1, 64, ready.context);
       s.Instantiate();
       CUgraphExecUpdateResultInfo info{};
       a(a.d.GraphExecUpdate(s.x, t.g, &info));
       a.Value(info.result);
       a.Prepare(a.d.GraphLaunch(s.x, nullptr));
       a.Prepare(a.d.StreamSynchronize(nullptr));
       ShowByte(a, p);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::conditional_questions

namespace cuaudit::contract {
std::span<const Question> ConditionalQuestions() { return conditional_questions::kQuestions; }
}  // namespace cuaudit::contract
