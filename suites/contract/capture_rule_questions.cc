// SPDX-License-Identifier: MIT
#include <thread>

#include "suites/contract/question.h"

namespace cuaudit::contract::capture_rule_questions {
namespace {

void Bump(void* argument) { ++*static_cast<int*>(argument); }

// Things that exist beside the stream that is being captured.
struct Bystanders {
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUdeviceptr p = 0;
  void* h = nullptr;
};

// The answer to one call while a stream of this thread is captured in the global, the thread-local and the relaxed mode.
void InEachMode(Asker& a, CUresult (*call)(driver::DriverRef, Bystanders&)) {
  const Ready ready(a);
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    CUstream captured = nullptr;
    CUgraph g = nullptr;
    Bystanders by;
    a.Prepare(a.d.StreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.StreamCreate(&by.s, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.EventCreate(&by.e, 0));
    a.Prepare(a.d.EventRecord(by.e, by.s));
    a.Prepare(a.d.StreamSynchronize(by.s));
    a.Prepare(a.d.MemAlloc(&by.p, 64));
    a.Prepare(a.d.MemAllocHost(&by.h, 64));
    a.Prepare(a.d.StreamBeginCapture(captured, mode));
    a(call(a.d, by));
    (void)a.d.StreamEndCapture(captured, &g);
    if (g != nullptr) (void)a.d.GraphDestroy(g);
    (void)a.d.StreamDestroy(captured);
    if (by.s != nullptr) (void)a.d.StreamDestroy(by.s);
    if (by.e != nullptr) (void)a.d.EventDestroy(by.e);
    if (by.p != 0) (void)a.d.MemFree(by.p);
    if (by.h != nullptr) (void)a.d.MemFreeHost(by.h);
  }
}

// What another thread, with the same context current, is answered.
CUresult OnAnotherThread(Asker& a, CUcontext context, CUresult (*call)(driver::DriverRef, CUstream), CUstream s) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    result = a.d.CtxSetCurrent(context);
    if (result == CUDA_SUCCESS) result = call(a.d, s);
    (void)a.d.CtxSetCurrent(nullptr);
  }).join();
  return result;
}

constexpr Question kQuestions[] = {
    {"capture_mode.free", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         const CUresult result = d.MemFree(by.p);
         if (result == CUDA_SUCCESS) by.p = 0;
         return result;
       });
     }},
    {"capture_mode.pinned_alloc", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         void* h = nullptr;
         (void)by;
         const CUresult result = d.MemHostAlloc(&h, 64, 0);
         if (h != nullptr) (void)d.MemFreeHost(h);
         return result;
       });
     }},
    {"capture_mode.pinned_free", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         const CUresult result = d.MemFreeHost(by.h);
         if (result == CUDA_SUCCESS) by.h = nullptr;
         return result;
       });
     }},
    {"capture_mode.copy", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         int in = 1;
         return d.MemcpyHtoD(by.p, &in, sizeof(in));
       });
     }},
    {"capture_mode.set", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) { InEachMode(a, [](driver::DriverRef d, Bystanders& by) { return d.MemsetD8(by.p, 1, 64); }); }},
    {"capture_mode.event_query", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) { InEachMode(a, [](driver::DriverRef d, Bystanders& by) { return d.EventQuery(by.e); }); }},
    {"capture_mode.event_synchronize", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) { InEachMode(a, [](driver::DriverRef d, Bystanders& by) { return d.EventSynchronize(by.e); }); }},
    {"capture_mode.stream_query", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) { InEachMode(a, [](driver::DriverRef d, Bystanders& by) { return d.StreamQuery(by.s); }); }},
    {"capture_mode.stream_synchronize", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) { InEachMode(a, [](driver::DriverRef d, Bystanders& by) { return d.StreamSynchronize(by.s); }); }},
    {"capture_mode.context_synchronize", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         (void)by;
         return d.CtxSynchronize(nullptr);
       });
     }},
    {"capture_mode.stream_create", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         CUstream t = nullptr;
         (void)by;
         const CUresult result = d.StreamCreate(&t, CU_STREAM_NON_BLOCKING);
         if (t != nullptr) (void)d.StreamDestroy(t);
         return result;
       });
     }},
    {"capture_mode.stream_destroy", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         const CUresult result = d.StreamDestroy(by.s);
         if (result == CUDA_SUCCESS) by.s = nullptr;
         return result;
       });
     }},
    {"capture_mode.event_create", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         CUevent f = nullptr;
         (void)by;
         const CUresult result = d.EventCreate(&f, 0);
         if (f != nullptr) (void)d.EventDestroy(f);
         return result;
       });
     }},
    {"capture_mode.event_destroy", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         const CUresult result = d.EventDestroy(by.e);
         if (result == CUDA_SUCCESS) by.e = nullptr;
         return result;
       });
     }},
    {"capture_mode.module_load", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         CUmodule m = nullptr;
         (void)by;
         const CUresult result = d.ModuleLoadData(&m, kPtx);
         if (m != nullptr) (void)d.ModuleUnload(m);
         return result;
       });
     }},
    {"capture_mode.async_alloc_elsewhere", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         CUdeviceptr p = 0;
         const CUresult result = d.MemAllocAsync(&p, 64, by.s);
         if (result == CUDA_SUCCESS) (void)d.MemFreeAsync(p, by.s);
         return result;
       });
     }},
    {"capture_mode.pool_create", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) {
       InEachMode(a, [](driver::DriverRef d, Bystanders& by) {
         CUmemPoolProps properties{};
         properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
         properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
         CUmemoryPool pool = nullptr;
         (void)by;
         const CUresult result = d.MemPoolCreate(&pool, &properties);
         if (pool != nullptr) (void)d.MemPoolDestroy(pool);
         return result;
       });
     }},
    {"capture.event_synchronize", "CAPTURED_EVENT", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a.Prepare(a.d.EventRecord(e, s));
       a(a.d.EventSynchronize(e));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.event_destroy", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a.Prepare(a.d.EventRecord(e, s));
       a(a.d.EventDestroy(e));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.event_afterwards", "SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a.Prepare(a.d.EventRecord(e, s));
       a(a.d.StreamEndCapture(s, &g));
       a(a.d.EventQuery(e));
       (void)a.d.EventDestroy(e);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.wait_unrecorded", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamWaitEvent(s, e, 0));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.merge", "STREAM_CAPTURE_MERGE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       CUstream t = nullptr;
       CUgraph h = nullptr;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a.Prepare(a.d.StreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_RELAXED));
       a.Prepare(a.d.EventRecord(e, t));
       a(a.d.StreamWaitEvent(s, e, 0));
       (void)a.d.StreamEndCapture(t, &h);
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(t);
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.async_alloc", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, 64, s));
       a.Value(p != 0);
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.graph_launch", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph inner = nullptr;
       CUgraphNode n = nullptr;
       CUgraphExec x = nullptr;
       std::size_t count = 0;
       a.Prepare(a.d.GraphCreate(&inner, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, inner, nullptr, 0));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, inner, 0));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.GraphLaunch(x, s));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) a.Prepare(a.d.GraphGetNodes(g, nullptr, &count));
       a.Value(static_cast<long long>(count));
       (void)a.d.GraphExecDestroy(x);
       (void)a.d.GraphDestroy(inner);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.end_on_another_thread", "STREAM_CAPTURE_WRONG_THREAD", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(OnAnotherThread(
           a, ready.context,
           [](driver::DriverRef d, CUstream stream) {
             CUgraph graph = nullptr;
             return d.StreamEndCapture(stream, &graph);
           },
           s));
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.alloc_on_another_thread", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(OnAnotherThread(
           a, ready.context,
           [](driver::DriverRef d, CUstream) {
             CUdeviceptr p = 0;
             const CUresult result = d.MemAlloc(&p, 64);
             if (result == CUDA_SUCCESS) (void)d.MemFree(p);
             return result;
           },
           s));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.work_on_another_thread", "SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(OnAnotherThread(
           a, ready.context,
           [](driver::DriverRef d, CUstream stream) {
             static int ran = 0;
             return d.LaunchHostFunc(stream, Bump, &ran);
           },
           s));
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::capture_rule_questions

namespace cuaudit::contract {
std::span<const Question> CaptureRuleQuestions() { return capture_rule_questions::kQuestions; }
}  // namespace cuaudit::contract
