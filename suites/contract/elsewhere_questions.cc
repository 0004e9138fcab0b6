// SPDX-License-Identifier: MIT
#include "suites/contract/furniture.h"
#include "suites/contract/question.h"

namespace cuaudit::contract::elsewhere_questions {
namespace {

constexpr Question kQuestions[] = {
    {"elsewhere.stream_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.StreamDestroy(f.s));
     }},
    {"elsewhere.stream_synchronize", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.StreamSynchronize(f.s));
     }},
    {"elsewhere.stream_query", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.StreamQuery(f.s));
     }},
    {"elsewhere.stream_wait_event", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.StreamWaitEvent(f.s, f.e, 0));
     }},
    {"elsewhere.host_function", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.LaunchHostFunc(f.s, DoNothing, nullptr));
       (void)a.d.StreamSynchronize(f.s);
     }},
    {"elsewhere.event_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.EventDestroy(f.e));
     }},
    {"elsewhere.event_query", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.EventQuery(f.e));
     }},
    {"elsewhere.event_synchronize", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.EventSynchronize(f.e));
     }},
    {"elsewhere.event_record", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.EventRecord(f.e, f.s));
       (void)a.d.StreamSynchronize(f.s);
     }},
    {"elsewhere.memory_free", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       a(a.d.MemFree(f.p));
     }},
    {"elsewhere.memory_copy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       int in = 1;
       a(a.d.MemcpyHtoD(f.p, &in, sizeof(in)));
     }},
    {"elsewhere.memory_attribute", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       unsigned type = 0;
       a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, f.p));
     }},
    {"elsewhere.async_alloc", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       MoveElsewhere(a);
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, 64, f.s));
     }},
    {"elsewhere.async_free", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Furniture f(a);
       a.Prepare(a.d.MemAllocAsync(&f.p, 64, f.s));
       MoveElsewhere(a);
       a(a.d.MemFreeAsync(f.p, f.s));
     }},
    {"elsewhere.pinned_free", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       void* h = nullptr;
       a.Prepare(a.d.MemAllocHost(&h, 64));
       MoveElsewhere(a);
       a(a.d.MemFreeHost(h));
     }},
    {"elsewhere.unregister", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       alignas(4096) static char page[4096];
       a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
       MoveElsewhere(a);
       a(a.d.MemHostUnregister(page));
     }},
    {"elsewhere.array_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUarray array = nullptr;
       CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
       a.Prepare(a.d.ArrayCreate(&array, &shape));
       MoveElsewhere(a);
       a(a.d.ArrayDestroy(array));
     }},
    {"elsewhere.module_unload", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       MoveElsewhere(a);
       a(a.d.ModuleUnload(m));
     }},
    {"elsewhere.library_unload", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUlibrary l = nullptr;
       a.Prepare(a.d.LibraryLoadData(&l, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
       MoveElsewhere(a);
       a(a.d.LibraryUnload(l));
     }},
    {"elsewhere.graph_launch", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       MoveElsewhere(a);
       a(a.d.GraphLaunch(x, f.s));
     }},
    {"elsewhere.exec_destroy", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       MoveElsewhere(a);
       a(a.d.GraphExecDestroy(x));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::elsewhere_questions

namespace cuaudit::contract {
std::span<const Question> ElsewhereQuestions() { return elsewhere_questions::kQuestions; }
}  // namespace cuaudit::contract
