// SPDX-License-Identifier: MIT
#include "suites/contract/graph_furniture.h"

namespace cuaudit::contract::graph_edge_questions {
namespace {

struct Kernels {
  explicit Kernels(Asker& a) {
    a.Prepare(a.d.ModuleLoadData(&m, kPtx));
    a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
  }
  CUmodule m = nullptr;
  CUfunction f = nullptr;
};

// An edge between two nodes of a fresh graph, then taken away again.
void Edge(Asker& a, CUgraph g, CUgraphNode from, CUgraphNode to, unsigned char from_port, unsigned char to_port, unsigned char type,
          unsigned char reserved = 0) {
  CUgraphEdgeData edge{};
  edge.from_port = from_port;
  edge.to_port = to_port;
  edge.type = type;
  edge.reserved[0] = reserved;
  a(a.d.GraphAddDependencies(g, &from, &to, &edge, 1));
  (void)a.d.GraphRemoveDependencies(g, &from, &to, &edge, 1);
}

constexpr unsigned char kProgrammatic = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;

constexpr Question kQuestions[] = {
    {"graph_edge.data", "SUCCESS SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       Sketch s(a);
       const CUgraphNode n = s.Kernel(k.f);
       const CUgraphNode o = s.Kernel(k.f);
       Edge(a, s.g, n, o, 0, 0, 0);
       Edge(a, s.g, n, o, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, kProgrammatic);
       Edge(a, s.g, n, o, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, kProgrammatic);
       Edge(a, s.g, n, o, 0, 0, kProgrammatic);
       Edge(a, s.g, n, o, 0, 1, 0);
       Edge(a, s.g, n, o, 0, 0, 7);
       Edge(a, s.g, n, o, 0, 0, 0, 1);
     }},
    {"graph_edge.data_between_other_nodes", "INVALID_VALUE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       Sketch s(a);
       const CUgraphNode n = s.Kernel(k.f);
       const CUgraphNode e = s.Host();
       Edge(a, s.g, n, e, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, kProgrammatic);
       Edge(a, s.g, e, n, 1, 0, 0);
     }},
    {"graph_edge.lossy_query", "SUCCESS LOSSY_QUERY LOSSY_QUERY SUCCESS 1 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       Sketch s(a);
       const CUgraphNode n = s.Kernel(k.f);
       const CUgraphNode o = s.Kernel(k.f);
       CUgraphEdgeData edge{};
       edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
       edge.type = kProgrammatic;
       a(a.d.GraphAddDependencies(s.g, &n, &o, &edge, 1));
       CUgraphNode from = nullptr;
       CUgraphNode to = nullptr;
       std::size_t count = 1;
       a(a.d.GraphGetEdges(s.g, &from, &to, nullptr, &count));
       count = 1;
       a(a.d.GraphNodeGetDependencies(o, &from, nullptr, &count));
       count = 1;
       CUgraphEdgeData seen{};
       a(a.d.GraphGetEdges(s.g, &from, &to, &seen, &count));
       a.Value(seen.from_port);
       a.Value(seen.type);
     }},
    {"graph_edge.twice_with_other_data", "SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       Sketch s(a);
       const CUgraphNode n = s.Kernel(k.f);
       const CUgraphNode o = s.Kernel(k.f);
       CUgraphEdgeData edge{};
       edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
       edge.type = kProgrammatic;
       a(a.d.GraphAddDependencies(s.g, &n, &o, &edge, 1));
       a(a.d.GraphAddDependencies(s.g, &n, &o, nullptr, 1));
       a(a.d.GraphRemoveDependencies(s.g, &n, &o, nullptr, 1));
       a(a.d.GraphRemoveDependencies(s.g, &n, &o, &edge, 1));
     }},
    {"graph_attribute.kernel", "SUCCESS 0 SUCCESS SUCCESS 1 INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       Sketch s(a);
       const CUgraphNode n = s.Kernel(k.f);
       const CUgraphNode e = s.Empty();
       CUkernelNodeAttrValue value{};
       a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
       a.Value(value.cooperative);
       value.cooperative = 1;
       a(a.d.GraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
       value.cooperative = 0;
       a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
       a.Value(value.cooperative);
       a(a.d.GraphKernelNodeGetAttribute(e, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
       a(a.d.GraphKernelNodeGetAttribute(n, Beyond<CUkernelNodeAttrID>(60), &value));
     }},
    {"graph_attribute.copy", "SUCCESS SUCCESS 1 INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       Sketch s(a);
       const CUgraphNode n = s.Kernel(k.f);
       const CUgraphNode o = s.Kernel(k.f);
       const CUgraphNode e = s.Empty();
       CUkernelNodeAttrValue value{};
       value.cooperative = 1;
       a.Prepare(a.d.GraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
       a(a.d.GraphKernelNodeCopyAttributes(o, n));
       value.cooperative = 0;
       a(a.d.GraphKernelNodeGetAttribute(o, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
       a.Value(value.cooperative);
       a(a.d.GraphKernelNodeCopyAttributes(o, e));
     }},
    {"graph_attribute.priority", "SUCCESS 0 SUCCESS SUCCESS -2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       Sketch s(a);
       const CUgraphNode n = s.Kernel(k.f);
       CUkernelNodeAttrValue value{};
       a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
       a.Value(value.priority);
       value.priority = -2;
       a(a.d.GraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
       value.priority = 0;
       a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
       a.Value(value.priority);
     }},
    {"graph_instantiate.device_launch", "INVALID_VALUE 1 1 INVALID_VALUE 3 1 INVALID_VALUE SUCCESS 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       const Sketch nothing(a);
       Sketch host(a);
       Sketch good(a);
       CUDA_GRAPH_INSTANTIATE_PARAMS p{};
       p.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithParams(&x, nothing.g, &p));
       a.Value(p.result_out);
       a.Value(p.hErrNode_out == nullptr);
       const CUgraphNode n = host.Host();
       a(a.d.GraphInstantiateWithParams(&x, host.g, &p));
       a.Value(p.result_out);
       a.Value(p.hErrNode_out == n);
       (void)good.Kernel(k.f);
       p.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
       a(a.d.GraphInstantiateWithParams(&x, good.g, &p));
       p.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
       a(a.d.GraphInstantiateWithParams(&good.x, good.g, &p));
       a.Value(p.result_out);
     }},
    {"graph_instantiate.cycle", "INVALID_VALUE 2 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       const CUgraphNode n = s.Host();
       const CUgraphNode o = s.Host();
       a.Prepare(a.d.GraphAddDependencies(s.g, &n, &o, nullptr, 1));
       a.Prepare(a.d.GraphAddDependencies(s.g, &o, &n, nullptr, 1));
       CUDA_GRAPH_INSTANTIATE_PARAMS p{};
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithParams(&x, s.g, &p));
       a.Value(p.result_out);
       a.Value(p.hErrNode_out != nullptr);
     }},
    {"graph_instantiate.upload", "SUCCESS 0 SUCCESS INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       (void)s.Host();
       CUDA_GRAPH_INSTANTIATE_PARAMS p{};
       p.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
       a(a.d.GraphInstantiateWithParams(&s.x, s.g, &p));
       a.Value(p.result_out);
       a(a.d.GraphUpload(s.x, nullptr));
       a(a.d.GraphUpload(nullptr, nullptr));
       a(a.d.StreamSynchronize(nullptr));
     }},
    {"graph_dot.file", "SUCCESS INVALID_VALUE INVALID_VALUE OPERATING_SYSTEM", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       (void)s.Host();
       a(a.d.GraphDebugDotPrint(s.g, "/dev/null", 0));
       a(a.d.GraphDebugDotPrint(s.g, nullptr, 0));
       a(a.d.GraphDebugDotPrint(nullptr, "/dev/null", 0));
       a(a.d.GraphDebugDotPrint(s.g, "/nonexistent/graph.dot", 0));
     }},
    {"graph_batch.write", "SUCCESS SUCCESS 1 SUCCESS 6 SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUdeviceptr p = Cleared(a, 64);
       Sketch s(a);
       CUstreamBatchMemOpParams operation{};
       operation.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
       operation.writeValue.address = p;
       operation.writeValue.value = 6;
       CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
       batch.ctx = ready.context;
       batch.count = 1;
       batch.paramArray = &operation;
       CUgraphNode n = nullptr;
       a(a.d.GraphAddBatchMemOpNode(&n, s.g, nullptr, 0, &batch));
       CUDA_BATCH_MEM_OP_NODE_PARAMS seen{};
       a(a.d.GraphBatchMemOpNodeGetParams(n, &seen));
       a.Value(seen.count);
       s.Instantiate();
       a(a.d.GraphLaunch(s.x, nullptr));
       a.Prepare(a.d.StreamSynchronize(nullptr));
       ShowByte(a, p);
       batch.count = 0;
       a(a.d.GraphAddBatchMemOpNode(&n, s.g, nullptr, 0, &batch));
       batch.count = 1;
       batch.ctx = nullptr;
       a(a.d.GraphAddBatchMemOpNode(&n, s.g, nullptr, 0, &batch));
     }},
    {"graph_node.add_refused", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch s(a);
       CUgraphNode n = nullptr;
       CUgraphNodeParams parameters{};
       parameters.type = CU_GRAPH_NODE_TYPE_EMPTY;
       parameters.reserved0[1] = 1;
       a(a.d.GraphAddNode(&n, s.g, nullptr, nullptr, 0, &parameters));
       parameters = {};
       parameters.type = Beyond<CUgraphNodeType>(40);
       a(a.d.GraphAddNode(&n, s.g, nullptr, nullptr, 0, &parameters));
       parameters = {};
       parameters.type = CU_GRAPH_NODE_TYPE_EMPTY;
       parameters.reserved2 = 1;
       a(a.d.GraphAddNode(&n, s.g, nullptr, nullptr, 0, &parameters));
       a(a.d.GraphAddNode(nullptr, s.g, nullptr, nullptr, 0, &parameters));
     }},
    {"graph_node.parameters_kept", "SUCCESS 41 4", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Kernels k(a);
       CUfunction fill = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&fill, k.m, "fill"));
       Sketch s(a);
       CUdeviceptr p = 41;
       unsigned count = 4;
       void* parameters[] = {&p, &count};
       const CUgraphNode n = s.Kernel(fill, parameters);
       p = 0;
       count = 0;
       CUDA_KERNEL_NODE_PARAMS seen{};
       a(a.d.GraphKernelNodeGetParams(n, &seen));
       a.Value(*static_cast<long long*>(seen.kernelParams[0]));
       a.Value(*static_cast<unsigned*>(seen.kernelParams[1]));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::graph_edge_questions

namespace cuaudit::contract {
std::span<const Question> GraphEdgeQuestions() { return graph_edge_questions::kQuestions; }
}  // namespace cuaudit::contract
