// SPDX-License-Identifier: MIT
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::graph_edge_questions {
namespace {

struct Kernels {
  explicit Kernels(Asker& a) : m(a.ModuleLoadData()), f(a.ModuleGetFunction(m, "plain")) {}
  const CUmodule m;
  const CUfunction f;
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

}  // namespace

void List(Questions& ask) {
  ask.Plain("graph_edge.data", "SUCCESS x3 INVALID_VALUE x4", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUgraphNode n = s.Kernel(k.f), o = s.Kernel(k.f);
    Edge(a, s.g, n, o, 0, 0, 0);
    Edge(a, s.g, n, o, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, kProgrammatic);
    Edge(a, s.g, n, o, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, kProgrammatic);
    Edge(a, s.g, n, o, 0, 0, kProgrammatic);
    Edge(a, s.g, n, o, 0, 1, 0);
    Edge(a, s.g, n, o, 0, 0, 7);
    Edge(a, s.g, n, o, 0, 0, 0, 1);
  });
  ask.Plain("graph_edge.data_between_other_nodes", "INVALID_VALUE INVALID_VALUE", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUgraphNode n = s.Kernel(k.f), e = s.Host();
    Edge(a, s.g, n, e, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, kProgrammatic);
    Edge(a, s.g, e, n, 1, 0, 0);
  });
  ask.Plain("graph_edge.lossy_query", "SUCCESS LOSSY_QUERY LOSSY_QUERY SUCCESS 1 1", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUgraphNode n = s.Kernel(k.f), o = s.Kernel(k.f);
    CUgraphEdgeData edge{};
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = kProgrammatic;
    a(a.d.GraphAddDependencies(s.g, &n, &o, &edge, 1));
    CUgraphNode from = nullptr, to = nullptr;
    std::size_t count = 1;
    a(a.d.GraphGetEdges(s.g, &from, &to, nullptr, &count));
    count = 1;
    a(a.d.GraphNodeGetDependencies(o, &from, nullptr, &count));
    count = 1;
    CUgraphEdgeData seen{};
    a(a.d.GraphGetEdges(s.g, &from, &to, &seen, &count), seen.from_port, seen.type);
  });
  ask.Plain("graph_edge.twice_with_other_data", "SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUgraphNode n = s.Kernel(k.f), o = s.Kernel(k.f);
    CUgraphEdgeData edge{};
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = kProgrammatic;
    a(a.d.GraphAddDependencies(s.g, &n, &o, &edge, 1));
    a(a.d.GraphAddDependencies(s.g, &n, &o, nullptr, 1));
    a(a.d.GraphRemoveDependencies(s.g, &n, &o, nullptr, 1));
    a(a.d.GraphRemoveDependencies(s.g, &n, &o, &edge, 1));
  });
  ask.Risky("graph_attribute.kernel", "SUCCESS 0 SUCCESS SUCCESS 1 INVALID_VALUE INVALID_VALUE", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUgraphNode n = s.Kernel(k.f), e = s.Empty();
    CUkernelNodeAttrValue value{};
    a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value), value.cooperative);
    value.cooperative = 1;
    a(a.d.GraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
    value.cooperative = 0;
    a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value), value.cooperative);
    a(a.d.GraphKernelNodeGetAttribute(e, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
    a(a.d.GraphKernelNodeGetAttribute(n, Beyond<CUkernelNodeAttrID>(60), &value));
  });
  ask.Risky("graph_attribute.copy", "SUCCESS SUCCESS 1 INVALID_VALUE", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUgraphNode n = s.Kernel(k.f), o = s.Kernel(k.f), e = s.Empty();
    CUkernelNodeAttrValue value{};
    value.cooperative = 1;
    a.Prepare(a.d.GraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
    a(a.d.GraphKernelNodeCopyAttributes(o, n));
    value.cooperative = 0;
    a(a.d.GraphKernelNodeGetAttribute(o, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value), value.cooperative);
    a(a.d.GraphKernelNodeCopyAttributes(o, e));
  });
  ask.Plain("graph_attribute.priority", "SUCCESS 0 SUCCESS SUCCESS -2", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUgraphNode n = s.Kernel(k.f);
    CUkernelNodeAttrValue value{};
    a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value), value.priority);
    value.priority = -2;
    a(a.d.GraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
    value.priority = 0;
    a(a.d.GraphKernelNodeGetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value), value.priority);
  });
  ask.Risky("graph_instantiate.device_launch", "INVALID_VALUE 1 1 INVALID_VALUE 3 1 INVALID_VALUE SUCCESS 0",
            [](Ready& a, const Kernels& k, const Sketch& nothing, Sketch& host) {
              Sketch good(a);
              CUDA_GRAPH_INSTANTIATE_PARAMS p{};
              p.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
              CUgraphExec x = nullptr;
              a(a.d.GraphInstantiateWithParams(&x, nothing.g, &p), p.result_out);
              a.Value(p.hErrNode_out == nullptr);
              const CUgraphNode n = host.Host();
              a(a.d.GraphInstantiateWithParams(&x, host.g, &p), p.result_out);
              a.Value(p.hErrNode_out == n);
              (void)good.Kernel(k.f);
              p.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
              a(a.d.GraphInstantiateWithParams(&x, good.g, &p));
              p.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
              a(a.d.GraphInstantiateWithParams(&good.x, good.g, &p), p.result_out);
            });
  ask.Plain("graph_instantiate.cycle", "INVALID_VALUE 2 1", [](Ready& a, Sketch& s) {
    const CUgraphNode n = s.Host(), o = s.Host();
    a.Prepare(a.d.GraphAddDependencies(s.g, &n, &o, nullptr, 1));
    a.Prepare(a.d.GraphAddDependencies(s.g, &o, &n, nullptr, 1));
    CUDA_GRAPH_INSTANTIATE_PARAMS p{};
    a(a.d.GraphInstantiateWithParams(kIgnored, s.g, &p), p.result_out);
    a.Value(p.hErrNode_out != nullptr);
  });
  ask.Risky("graph_instantiate.upload", "SUCCESS 0 SUCCESS INVALID_VALUE SUCCESS", [](Ready& a, Sketch& s) {
    (void)s.Host();
    CUDA_GRAPH_INSTANTIATE_PARAMS p{};
    p.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    a(a.d.GraphInstantiateWithParams(&s.x, s.g, &p), p.result_out);
    a(a.d.GraphUpload(s.x, nullptr));
    a(a.d.GraphUpload(nullptr, nullptr));
    a(a.d.StreamSynchronize(nullptr));
  });
  ask.Risky("graph_dot.file", "SUCCESS INVALID_VALUE INVALID_VALUE OPERATING_SYSTEM", [](Ready& a, Sketch& s) {
    (void)s.Host();
    a(a.d.GraphDebugDotPrint(s.g, "/dev/null", 0));
    a(a.d.GraphDebugDotPrint(s.g, nullptr, 0));
    a(a.d.GraphDebugDotPrint(nullptr, "/dev/null", 0));
    a(a.d.GraphDebugDotPrint(s.g, "/nonexistent/graph.dot", 0));
  });
  ask.Risky("graph_batch.write", "SUCCESS SUCCESS 1 SUCCESS 6 SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    Sketch s(a);
    CUstreamBatchMemOpParams operation{};
    operation.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = p;
    operation.writeValue.value = 6;
    operation.writeValue.flags = 0;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
    batch.ctx = a.context;
    batch.count = 1;
    batch.paramArray = &operation;
    CUgraphNode n = nullptr;
    a(a.d.GraphAddBatchMemOpNode(&n, s.g, nullptr, 0, &batch));
    CUDA_BATCH_MEM_OP_NODE_PARAMS seen{};
    a(a.d.GraphBatchMemOpNodeGetParams(n, &seen), seen.count);
    s.Instantiate();
    a(a.d.GraphLaunch(s.x, nullptr));
    a.Prepare(a.d.StreamSynchronize(nullptr));
    a.ByteAt(p);
    batch.count = 0;
    a(a.d.GraphAddBatchMemOpNode(&n, s.g, nullptr, 0, &batch));
    batch.count = 1;
    batch.ctx = nullptr;
    a(a.d.GraphAddBatchMemOpNode(&n, s.g, nullptr, 0, &batch));
  });
  ask.Risky("graph_node.add_refused", "INVALID_VALUE x4", [](Ready& a, const Sketch& s) {
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
  });
  ask.Plain("graph_node.parameters_kept", "SUCCESS 41 4", [](Ready& a, const Kernels& k, Sketch& s) {
    const CUfunction fill = a.ModuleGetFunction(k.m, "fill");
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
  });
}

}  // namespace cuaudit::contract::graph_edge_questions
