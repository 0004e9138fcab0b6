// SPDX-License-Identifier: MIT
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::graph_memory_questions {
namespace {

std::uint64_t Used(Asker& a, CUgraphMem_attribute attribute) {
  std::uint64_t value = 0;
  a.Prepare(a.d.DeviceGetGraphMemAttribute(0, attribute, &value));
  return value;
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("graph_memory.fixed_address", "1 SUCCESS 1 4096 SUCCESS 1", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    const CUgraphNode n = s.Alloc(4096, &p), f = s.Free(n, p);
    a.Value(p != 0);
    CUDA_MEM_ALLOC_NODE_PARAMS seen{};
    a(a.d.GraphMemAllocNodeGetParams(n, &seen));
    a.Value(seen.dptr == p);
    a.Value(static_cast<long long>(seen.bytesize));
    CUdeviceptr freed = 0;
    a(a.d.GraphMemFreeNodeGetParams(f, &freed));
    a.Value(freed == p);
  });
  ask.Fresh("graph_memory.free_node_refused", "INVALID_VALUE x3 SUCCESS INVALID_VALUE", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    const CUgraphNode n = s.Alloc(4096, &p);
    CUgraphNode f = nullptr;
    const CUdeviceptr other = Cleared(a, 4096);
    a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, 0));
    a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, other));
    a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, p + 16));
    a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, p));
    a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, p));
  });
  ask.Fresh("graph_memory.free_node_unordered", "SUCCESS", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    (void)s.Alloc(4096, &p);
    a(a.d.GraphAddMemFreeNode(kIgnored, s.g, nullptr, 0, p));
  });
  ask.Risky("graph_memory.alloc_refused", "INVALID_VALUE x4 NOT_SUPPORTED OUT_OF_MEMORY", [](Ready& a, Sketch& s) {
    CUgraphNode n = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(0);
    a(a.d.GraphAddMemAllocNode(&n, s.g, nullptr, 0, &alloc));
    a(a.d.GraphAddMemAllocNode(&n, s.g, nullptr, 0, nullptr));
    alloc = Sketch::AllocOf(4096);
    alloc.poolProps.location.id = 99;
    a(a.d.GraphAddMemAllocNode(&n, s.g, nullptr, 0, &alloc));
    alloc = Sketch::AllocOf(4096);
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    a(a.d.GraphAddMemAllocNode(&n, s.g, nullptr, 0, &alloc));
    alloc = Sketch::AllocOf(4096);
    alloc.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    a(a.d.GraphAddMemAllocNode(&n, s.g, nullptr, 0, &alloc));
    alloc = Sketch::AllocOf(std::size_t{1} << 50);
    a(a.d.GraphAddMemAllocNode(&n, s.g, nullptr, 0, &alloc));
  });
  ask.Fresh("graph_memory.no_clone_no_child", "NOT_SUPPORTED NOT_SUPPORTED", [](Ready& a, Sketch& s, const Sketch& outer) {
    CUdeviceptr p = 0;
    (void)s.Alloc(4096, &p);
    a(a.d.GraphClone(kIgnored, s.g));
    a(a.d.GraphAddChildGraphNode(kIgnored, outer.g, nullptr, 0, s.g));
  });
  ask.Risky("graph_memory.moved_child", "SUCCESS SUCCESS 1 INVALID_VALUE SUCCESS SUCCESS", [](Ready& a, Sketch& s, Sketch& outer) {
    CUdeviceptr p = 0;
    const CUgraphNode alloc = s.Alloc(4096, &p);
    (void)s.Free(alloc, p);
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
    parameters.graph.graph = s.g;
    parameters.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CUgraphNode n = nullptr;
    a(a.d.GraphAddNode(&n, outer.g, nullptr, nullptr, 0, &parameters));
    CUgraph inner = nullptr;
    a(a.d.GraphChildGraphNodeGetGraph(n, &inner));
    a.Value(inner == s.g);
    a(a.d.GraphDestroy(s.g));
    s.g = nullptr;
    outer.Instantiate();
    a(a.d.GraphLaunch(outer.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
  });
  ask.Fresh("graph_memory.no_deletions", "NOT_SUPPORTED x3 SUCCESS", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    const CUgraphNode n = s.Alloc(4096, &p), f = s.Free(n, p), e = s.Empty();
    a(a.d.GraphDestroyNode(n));
    a(a.d.GraphDestroyNode(e));
    a(a.d.GraphRemoveDependencies(s.g, &n, &f, nullptr, 1));
    a(a.d.GraphAddDependencies(s.g, &f, &e, nullptr, 1));
  });
  ask.Fresh("graph_memory.one_executable", "SUCCESS NOT_SUPPORTED SUCCESS SUCCESS", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    const CUgraphNode n = s.Alloc(4096, &p);
    (void)s.Free(n, p);
    a(a.d.GraphInstantiateWithFlags(&s.x, s.g, 0));
    a(a.d.GraphInstantiateWithFlags(kIgnored, s.g, 0));
    a(a.d.GraphExecDestroy(s.x));
    a(a.d.GraphInstantiateWithFlags(&s.x, s.g, 0));
  });
  ask.Fresh("graph_memory.launch_twice", "SUCCESS INVALID_VALUE SUCCESS x4", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    (void)s.Alloc(4096, &p);
    s.Instantiate();
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.MemFree(p));
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.MemFreeAsync(p, nullptr));
    a(a.d.StreamSynchronize(nullptr));
  });
  ask.Fresh("graph_memory.auto_free", "SUCCESS x4 INVALID_VALUE", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    (void)s.Alloc(4096, &p);
    s.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a(a.d.MemFree(p));
    a(a.d.MemFree(p));
  });
  ask.Risky("graph_memory.free_before_launch", "INVALID_VALUE INVALID_VALUE", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    (void)s.Alloc(4096, &p);
    a(a.d.MemFree(p));
    a(a.d.MemFreeAsync(p, nullptr));
  });
  ask.Risky("graph_memory.free_what_the_graph_frees", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    const CUgraphNode n = s.Alloc(4096, &p);
    (void)s.Free(n, p);
    s.Instantiate();
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a(a.d.MemFree(p));
    a(a.d.MemFreeAsync(p, nullptr));
  });
  ask.Risky("graph_memory.freed_by_another_graph", "SUCCESS INVALID_VALUE SUCCESS x4 INVALID_VALUE",
            [](Ready& a, Sketch& s, Sketch& other) {
              CUdeviceptr p = 0;
              const CUgraphNode n = s.Alloc(4096, &p);
              CUgraphNode f = nullptr;
              a(a.d.GraphAddMemFreeNode(&f, other.g, nullptr, 0, p));
              a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, p));
              s.Instantiate();
              other.Instantiate();
              a(a.d.GraphLaunch(s.x, nullptr));
              a(a.d.GraphLaunch(other.x, nullptr));
              a(a.d.GraphLaunch(s.x, nullptr));
              a(a.d.MemFree(p));
              a(a.d.GraphLaunch(other.x, nullptr));
            });
  ask.Risky("graph_memory.outlives_executable", "SUCCESS x4 INVALID_VALUE", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    (void)s.Alloc(4096, &p);
    s.Instantiate();
    a.Prepare(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.GraphExecDestroy(s.x));
    s.x = nullptr;
    a(a.d.GraphDestroy(s.g));
    s.g = nullptr;
    a(a.d.MemsetD8(p, 1, 4096));
    a(a.d.MemFree(p));
    a(a.d.MemFree(p));
  });
  ask.Fresh("graph_memory.pointer_before_and_after", "INVALID_VALUE SUCCESS 2 SUCCESS 4096", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    (void)s.Alloc(4096, &p);
    unsigned type = 0;
    a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    s.Instantiate();
    a.Prepare(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), type);
    std::size_t size = 0;
    a(a.d.MemGetAddressRange(kIgnored, &size, p), size);
  });
  ask.Fresh("graph_memory.used_inside", "SUCCESS SUCCESS 7", [](Ready& a, Sketch& s) {
    const CUdeviceptr out = Cleared(a, 4096);
    CUdeviceptr p = 0;
    const CUgraphNode alloc = s.Alloc(4096, &p);
    const CUDA_MEMSET_NODE_PARAMS fill = Sketch::FillOf(p, 7, 4096);
    const CUDA_MEMCPY3D copy = Sketch::CopyOf(out, p, 4096);
    CUgraphNode n = nullptr, m = nullptr;
    a.Prepare(a.d.GraphAddMemsetNode(&n, s.g, &alloc, 1, &fill, a.context));
    a.Prepare(a.d.GraphAddMemcpyNode(&m, s.g, &n, 1, &copy, a.context));
    (void)s.Free(m, p);
    s.Instantiate();
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a.ByteAt(out);
  });
  ask.Fresh("graph_memory.attributes", "0 0 1 1 1 1 1 0 0", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    (void)s.Alloc(1 << 20, &p);
    s.Instantiate();
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) != 0);
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) != 0);
    a.Prepare(a.d.GraphLaunch(s.x, nullptr));
    a.Prepare(a.d.StreamSynchronize(nullptr));
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 1 << 20);
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= Used(a, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT));
    a.Prepare(a.d.DeviceGraphMemTrim(0));
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) != 0);
    a.Prepare(a.d.MemFree(p));
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) != 0);
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) != 0);
    a.Prepare(a.d.DeviceGraphMemTrim(0));
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) != 0);
    a.Value(Used(a, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 0);
  });
  ask.Risky("graph_memory.attribute_rules", "SUCCESS INVALID_VALUE x3 INVALID_DEVICE INVALID_DEVICE", [](Ready& a) {
    std::uint64_t value = 0;
    a(a.d.DeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    a(a.d.DeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
    value = 5;
    a(a.d.DeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    a(a.d.DeviceGetGraphMemAttribute(0, Beyond<CUgraphMem_attribute>(9), &value));
    a(a.d.DeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    a(a.d.DeviceGraphMemTrim(99));
  });
  ask.Fresh("graph_memory.captured", "SUCCESS x3 2 10 11 SUCCESS SUCCESS", [](Ready& a) {
    CUgraph g = nullptr;
    CUdeviceptr p = 0;
    const CUstream stream = a.StreamCreate();
    a.Prepare(a.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.MemAllocAsync(&p, 4096, stream));
    a(a.d.MemFreeAsync(p, stream));
    a(a.d.StreamEndCapture(stream, &g));
    CUgraphNode nodes[4] = {};
    std::size_t count = 4;
    a.Values(a.d.GraphGetNodes(g, nodes, &count), count);
    for (std::size_t i = 0; i < 2; ++i) {
      CUgraphNodeType type{};
      a.Values(a.d.GraphNodeGetType(nodes[i], &type), type);
    }
    const CUgraphExec x = a.GraphInstantiate(g);
    a(a.d.GraphLaunch(x, stream));
    a(a.d.StreamSynchronize(stream));
  });
  ask.Risky("graph_memory.captured_free_of_others", "INVALID_VALUE INVALID_VALUE SUCCESS 1", [](Ready& a) {
    CUgraph g = nullptr;
    const CUstream stream = a.StreamCreate();
    const CUdeviceptr p = a.MemAllocAsync(4096, stream), q = a.MemAlloc(4096);
    a.Prepare(a.d.StreamSynchronize(stream));
    a.Prepare(a.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    a(a.d.MemFreeAsync(p, stream));
    a(a.d.MemFreeAsync(q, stream));
    CUstreamCaptureStatus status{};
    a(a.d.StreamIsCapturing(stream, &status), status);
    (void)a.d.StreamEndCapture(stream, &g);
  });
  ask.Fresh("graph_memory.captured_from_pool", "SUCCESS SUCCESS 10 SUCCESS 1 0", [](Ready& a) {
    CUgraph g = nullptr;
    const CUmemoryPool pool = a.MemPoolCreate();
    const CUstream stream = a.StreamCreate();
    a.Prepare(a.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    a(a.d.MemAllocFromPoolAsync(kIgnored, 4096, pool, stream));
    a(a.d.StreamEndCapture(stream, &g));
    CUgraphNode n = nullptr;
    std::size_t count = 1;
    CUgraphNodeType type{};
    a.Prepare(a.d.GraphGetNodes(g, &n, &count));
    a.Values(a.d.GraphNodeGetType(n, &type), type);
    CUDA_MEM_ALLOC_NODE_PARAMS seen{};
    a(a.d.GraphMemAllocNodeGetParams(n, &seen), seen.poolProps.location.type, seen.accessDescCount);
  });
  ask.Risky("graph_memory.update", "SUCCESS 0", [](Ready& a, Sketch& s) {
    CUdeviceptr p = 0;
    const CUgraphNode n = s.Alloc(4096, &p);
    (void)s.Free(n, p);
    s.Instantiate();
    CUgraphExecUpdateResultInfo info{};
    a(a.d.GraphExecUpdate(s.x, s.g, &info), info.result);
  });
}

}  // namespace cuaudit::contract::graph_memory_questions
