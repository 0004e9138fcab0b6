// SPDX-License-Identifier: MIT
#include "suites/contract/furniture.h"
#include "suites/contract/question.h"

namespace cuaudit::contract::no_context_questions {
namespace {

constexpr Question kQuestions[] = {
    {"none.stream_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.StreamDestroy(f.s));
     }},
    {"none.stream_synchronize", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.StreamSynchronize(f.s));
     }},
    {"none.stream_query", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.StreamQuery(f.s));
     }},
    {"none.end_capture", "SUCCESS SUCCESS 0 ILLEGAL_STATE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       CUgraph g = nullptr;
       CUstreamCaptureStatus status{};
       a.Prepare(a.d.StreamBeginCapture(f.s, CU_STREAM_CAPTURE_MODE_RELAXED));
       Leave(a);
       a(a.d.StreamEndCapture(f.s, &g));
       a.Prepare(a.d.CtxSetCurrent(ready.context));
       a(a.d.StreamIsCapturing(f.s, &status));
       a.Value(status);
       a(a.d.StreamEndCapture(f.s, &g));
     }},
    {"none.begin_capture", "SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       CUgraph g = nullptr;
       Leave(a);
       a(a.d.StreamBeginCapture(f.s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a.Prepare(a.d.CtxSetCurrent(ready.context));
       a(a.d.EventRecord(f.e, f.s));
       a(a.d.StreamEndCapture(f.s, &g));
     }},
    {"none.begin_capture_to_graph", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       Leave(a);
       a(a.d.StreamBeginCaptureToGraph(f.s, g, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
       a.Prepare(a.d.CtxSetCurrent(ready.context));
       a(a.d.StreamEndCapture(f.s, &g));
     }},
    {"none.stream_wait_event", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.StreamWaitEvent(f.s, f.e, 0));
     }},
    {"none.host_function", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.LaunchHostFunc(f.s, DoNothing, nullptr));
       (void)a.d.StreamSynchronize(f.s);
     }},
    {"none.event_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.EventDestroy(f.e));
     }},
    {"none.event_query", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.EventQuery(f.e));
     }},
    {"none.event_synchronize", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.EventSynchronize(f.e));
     }},
    {"none.event_record", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.EventRecord(f.e, f.s));
       (void)a.d.StreamSynchronize(f.s);
     }},
    {"none.memory_free", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       a(a.d.MemFree(f.p));
     }},
    {"none.memory_copy", "INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       int in = 1;
       a(a.d.MemcpyHtoD(f.p, &in, sizeof(in)));
     }},
    {"none.memory_attribute", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       unsigned type = 0;
       a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, f.p));
     }},
    {"none.async_alloc", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       Leave(a);
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, 64, f.s));
     }},
    {"none.async_free", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Furniture f(a);
       a.Prepare(a.d.MemAllocAsync(&f.p, 64, f.s));
       Leave(a);
       a(a.d.MemFreeAsync(f.p, f.s));
     }},
    {"none.pinned_free", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       void* h = nullptr;
       a.Prepare(a.d.MemAllocHost(&h, 64));
       Leave(a);
       a(a.d.MemFreeHost(h));
     }},
    {"none.unregister", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       alignas(4096) static char page[4096];
       a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
       Leave(a);
       a(a.d.MemHostUnregister(page));
     }},
    {"none.array_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUarray array = nullptr;
       CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
       a.Prepare(a.d.ArrayCreate(&array, &shape));
       Leave(a);
       a(a.d.ArrayDestroy(array));
     }},
    {"none.module_unload", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       Leave(a);
       a(a.d.ModuleUnload(m));
     }},
    {"none.library_unload", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUlibrary l = nullptr;
       a.Prepare(a.d.LibraryLoadData(&l, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
       Leave(a);
       a(a.d.LibraryUnload(l));
     }},
    {"none.graph_life", "SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Leave(a);
       CUgraph g = nullptr;
       CUgraph clone = nullptr;
       a(a.d.GraphCreate(&g, 0));
       a(a.d.GraphClone(&clone, g));
       a(a.d.GraphDestroy(g));
     }},
    {"none.graph_node", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       Leave(a);
       a(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
     }},
    {"none.graph_instantiate", "INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       Leave(a);
       a(a.d.GraphInstantiateWithFlags(&x, g, 0));
     }},
    {"none.graph_launch", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       Leave(a);
       a(a.d.GraphLaunch(x, f.s));
     }},
    {"none.exec_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       Leave(a);
       a(a.d.GraphExecDestroy(x));
     }},
    {"none.pool_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       Leave(a);
       a(a.d.MemPoolDestroy(pool));
     }},
    {"none.link_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUlinkState l = nullptr;
       a.Prepare(a.d.LinkCreate(0, nullptr, nullptr, &l));
       Leave(a);
       a(a.d.LinkDestroy(l));
     }},
    {"none.allocations", "INVALID_CONTEXT INVALID_CONTEXT INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Leave(a);
       CUdeviceptr p = 0;
       void* h = nullptr;
       std::size_t free = 0;
       a(a.d.MemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
       a(a.d.MemHostAlloc(&h, 64, 0));
       a(a.d.MemGetInfo(&free, &free));
     }},
    {"none.synchronize", "INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Leave(a);
       a(a.d.CtxSynchronize(nullptr));
     }},
    {"none.virtual_memory", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Leave(a);
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       constexpr std::size_t kBytes = std::size_t{2} << 20;
       CUdeviceptr p = 0;
       CUmemGenericAllocationHandle h = 0;
       a(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
       a(a.d.MemCreate(&h, kBytes, &properties, 0));
       a(a.d.MemMap(p, kBytes, 0, h, 0));
       a(a.d.MemUnmap(p, kBytes));
       a(a.d.MemRelease(h));
       a(a.d.MemAddressFree(p, kBytes));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::no_context_questions

namespace cuaudit::contract {
std::span<const Question> NoContextQuestions() { return no_context_questions::kQuestions; }
}  // namespace cuaudit::contract
