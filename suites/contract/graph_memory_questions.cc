// SPDX-License-Identifier: MIT
#include "suites/contract/graph_furniture.h"

namespace cuaudit::contract::graph_memory_questions {
namespace {

std::uint64_t Used(Asker& a, CUgraphMem_attribute attribute) {
  std::uint64_t value = 0;
  a.Prepare(a.d.DeviceGetGraphMemAttribute(0, attribute, &value));
  return value;
}

constexpr Question kQuestions[] = {
    {"graph_memory.fixed_address", "1 SUCCESS 1 4096 SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       const CUgraphNode n = s.Alloc(4096, &p);
       const CUgraphNode f = s.Free(n, p);
       a.Value(p != 0);
       CUDA_MEM_ALLOC_NODE_PARAMS seen{};
       a(a.d.GraphMemAllocNodeGetParams(n, &seen));
       a.Value(seen.dptr == p);
       a.Value(static_cast<long long>(seen.bytesize));
       CUdeviceptr freed = 0;
       a(a.d.GraphMemFreeNodeGetParams(f, &freed));
       a.Value(freed == p);
     }},
    {"graph_memory.free_node_refused", "INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS INVALID_VALUE", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       const CUgraphNode n = s.Alloc(4096, &p);
       CUgraphNode f = nullptr;
       const CUdeviceptr other = Cleared(a, 4096);
       a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, 0));
       a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, other));
       a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, p + 16));
       a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, p));
       a(a.d.GraphAddMemFreeNode(&f, s.g, &n, 1, p));
     }},
    {"graph_memory.free_node_unordered", "SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       (void)s.Alloc(4096, &p);
       CUgraphNode f = nullptr;
       a(a.d.GraphAddMemFreeNode(&f, s.g, nullptr, 0, p));
     }},
    {"graph_memory.alloc_refused", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE NOT_SUPPORTED OUT_OF_MEMORY", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
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
     }},
    {"graph_memory.no_clone_no_child", "NOT_SUPPORTED NOT_SUPPORTED", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       const Sketch outer(a);
       CUdeviceptr p = 0;
       (void)s.Alloc(4096, &p);
       CUgraph clone = nullptr;
       CUgraphNode n = nullptr;
       a(a.d.GraphClone(&clone, s.g));
       a(a.d.GraphAddChildGraphNode(&n, outer.g, nullptr, 0, s.g));
     }},
    {"graph_memory.moved_child", "SUCCESS SUCCESS 1 INVALID_VALUE SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       Sketch outer(a);
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
     }},
    {"graph_memory.no_deletions", "NOT_SUPPORTED NOT_SUPPORTED NOT_SUPPORTED SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       const CUgraphNode n = s.Alloc(4096, &p);
       const CUgraphNode f = s.Free(n, p);
       const CUgraphNode e = s.Empty();
       a(a.d.GraphDestroyNode(n));
       a(a.d.GraphDestroyNode(e));
       a(a.d.GraphRemoveDependencies(s.g, &n, &f, nullptr, 1));
       a(a.d.GraphAddDependencies(s.g, &f, &e, nullptr, 1));
     }},
    {"graph_memory.one_executable", "SUCCESS NOT_SUPPORTED SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       const CUgraphNode n = s.Alloc(4096, &p);
       (void)s.Free(n, p);
       CUgraphExec second = nullptr;
       a(a.d.GraphInstantiateWithFlags(&s.x, s.g, 0));
       a(a.d.GraphInstantiateWithFlags(&second, s.g, 0));
       a(a.d.GraphExecDestroy(s.x));
       a(a.d.GraphInstantiateWithFlags(&s.x, s.g, 0));
     }},
    {"graph_memory.launch_twice", "SUCCESS INVALID_VALUE SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       (void)s.Alloc(4096, &p);
       s.Instantiate();
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.MemFree(p));
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.MemFreeAsync(p, nullptr));
       a(a.d.StreamSynchronize(nullptr));
     }},
    {"graph_memory.auto_free", "SUCCESS SUCCESS SUCCESS SUCCESS INVALID_VALUE", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       (void)s.Alloc(4096, &p);
       s.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       a(a.d.MemFree(p));
       a(a.d.MemFree(p));
     }},
    {"graph_memory.free_before_launch", "INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       (void)s.Alloc(4096, &p);
       a(a.d.MemFree(p));
       a(a.d.MemFreeAsync(p, nullptr));
     }},
    {"graph_memory.free_what_the_graph_frees", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       const CUgraphNode n = s.Alloc(4096, &p);
       (void)s.Free(n, p);
       s.Instantiate();
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       a(a.d.MemFree(p));
       a(a.d.MemFreeAsync(p, nullptr));
     }},
    {"graph_memory.freed_by_another_graph", "SUCCESS INVALID_VALUE SUCCESS SUCCESS SUCCESS SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       Sketch other(a);
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
     }},
    {"graph_memory.outlives_executable", "SUCCESS SUCCESS SUCCESS SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
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
     }},
    {"graph_memory.pointer_before_and_after", "INVALID_VALUE SUCCESS 2 SUCCESS 4096", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       (void)s.Alloc(4096, &p);
       unsigned type = 0;
       a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
       s.Instantiate();
       a.Prepare(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
       a.Value(type);
       CUdeviceptr base = 0;
       std::size_t size = 0;
       a(a.d.MemGetAddressRange(&base, &size, p));
       a.Value(static_cast<long long>(size));
       (void)a.d.MemFree(p);
     }},
    {"graph_memory.used_inside", "SUCCESS SUCCESS 7", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       const CUdeviceptr out = Cleared(a, 4096);
       CUdeviceptr p = 0;
       const CUgraphNode alloc = s.Alloc(4096, &p);
       const CUDA_MEMSET_NODE_PARAMS fill = Sketch::FillOf(p, 7, 4096);
       const CUDA_MEMCPY3D copy = Sketch::CopyOf(out, p, 4096);
       CUgraphNode n = nullptr;
       CUgraphNode m = nullptr;
       a.Prepare(a.d.GraphAddMemsetNode(&n, s.g, &alloc, 1, &fill, ready.context));
       a.Prepare(a.d.GraphAddMemcpyNode(&m, s.g, &n, 1, &copy, ready.context));
       (void)s.Free(m, p);
       s.Instantiate();
       a(a.d.GraphLaunch(s.x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       ShowByte(a, out);
       (void)a.d.MemFree(out);
     }},
    {"graph_memory.attributes", "0 0 1 1 1 1 1 0 0", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
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
     }},
    {"graph_memory.attribute_rules", "SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_DEVICE INVALID_DEVICE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       std::uint64_t value = 0;
       a(a.d.DeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
       a(a.d.DeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
       value = 5;
       a(a.d.DeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
       a(a.d.DeviceGetGraphMemAttribute(0, Beyond<CUgraphMem_attribute>(9), &value));
       a(a.d.DeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
       a(a.d.DeviceGraphMemTrim(99));
     }},
    {"graph_memory.captured", "SUCCESS SUCCESS SUCCESS 2 10 11 SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUstream stream = nullptr;
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.MemAllocAsync(&p, 4096, stream));
       a(a.d.MemFreeAsync(p, stream));
       a(a.d.StreamEndCapture(stream, &g));
       CUgraphNode nodes[4] = {};
       std::size_t count = 4;
       a.Prepare(a.d.GraphGetNodes(g, nodes, &count));
       a.Value(static_cast<long long>(count));
       for (std::size_t i = 0; i < 2; ++i) {
         CUgraphNodeType type{};
         a.Prepare(a.d.GraphNodeGetType(nodes[i], &type));
         a.Value(type);
       }
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphLaunch(x, stream));
       a(a.d.StreamSynchronize(stream));
       (void)a.d.GraphExecDestroy(x);
       (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(stream);
     }},
    {"graph_memory.captured_free_of_others", "INVALID_VALUE INVALID_VALUE SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream stream = nullptr;
       CUgraph g = nullptr;
       CUdeviceptr p = 0;
       CUdeviceptr q = 0;
       a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocAsync(&p, 4096, stream));
       a.Prepare(a.d.MemAlloc(&q, 4096));
       a.Prepare(a.d.StreamSynchronize(stream));
       a.Prepare(a.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
       a(a.d.MemFreeAsync(p, stream));
       a(a.d.MemFreeAsync(q, stream));
       CUstreamCaptureStatus status{};
       a(a.d.StreamIsCapturing(stream, &status));
       a.Value(status);
       (void)a.d.StreamEndCapture(stream, &g);
     }},
    {"graph_memory.captured_from_pool", "SUCCESS SUCCESS 10 SUCCESS 1 0", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUstream stream = nullptr;
       CUgraph g = nullptr;
       CUdeviceptr p = 0;
       CUmemoryPool pool = nullptr;
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
       a(a.d.MemAllocFromPoolAsync(&p, 4096, pool, stream));
       a(a.d.StreamEndCapture(stream, &g));
       CUgraphNode n = nullptr;
       std::size_t count = 1;
       CUgraphNodeType type{};
       a.Prepare(a.d.GraphGetNodes(g, &n, &count));
       a.Prepare(a.d.GraphNodeGetType(n, &type));
       a.Value(type);
       CUDA_MEM_ALLOC_NODE_PARAMS seen{};
       a(a.d.GraphMemAllocNodeGetParams(n, &seen));
       a.Value(seen.poolProps.location.type);
       a.Value(static_cast<long long>(seen.accessDescCount));
       (void)a.d.GraphDestroy(g);
       (void)a.d.MemPoolDestroy(pool);
       (void)a.d.StreamDestroy(stream);
     }},
    {"graph_memory.update", "SUCCESS 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch s(a);
       CUdeviceptr p = 0;
       const CUgraphNode n = s.Alloc(4096, &p);
       (void)s.Free(n, p);
       s.Instantiate();
       CUgraphExecUpdateResultInfo info{};
       a(a.d.GraphExecUpdate(s.x, s.g, &info));
       a.Value(info.result);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::graph_memory_questions

namespace cuaudit::contract {
std::span<const Question> GraphMemoryQuestions() { return graph_memory_questions::kQuestions; }
}  // namespace cuaudit::contract
