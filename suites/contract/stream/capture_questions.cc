// SPDX-License-Identifier: MIT
// Captures: what becomes of calls on the captured stream and beside it, mode by mode.
#include <functional>
#include <thread>

#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::capture_questions {
namespace {

void Called(CUstream, CUresult, void*) {}

// Things that exist beside the stream that is being captured, and places for things that the call makes.
struct Bystanders {
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUdeviceptr p = 0;
  void* h = nullptr;
  CUstream new_stream = nullptr;
  CUevent new_event = nullptr;
  void* new_pinned = nullptr;
  CUmodule new_module = nullptr;
  CUmemoryPool new_pool = nullptr;
};

// After a successful release there is nothing left to release.
template <typename T>
CUresult Gone(CUresult result, T* released) {
  if (result == CUDA_SUCCESS) *released = T{};
  return result;
}

// The answer to one call while a stream of this thread is captured in the global, the thread-local and the relaxed mode.
void InEachMode(Questions& ask, const char* name, const char* expected, CUresult (*call)(Driver, Bystanders&)) {
  ask.Plain(name, expected, [call](Ready& a) {
    for (const CUstreamCaptureMode mode :
         {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
      Bystanders by;
      a.Prepare(a.d.StreamCreate(&by.s, CU_STREAM_NON_BLOCKING));
      a.Prepare(a.d.EventCreate(&by.e, 0));
      a.Prepare(a.d.EventRecord(by.e, by.s));
      a.Prepare(a.d.StreamSynchronize(by.s));
      a.Prepare(a.d.MemAlloc(&by.p, 64));
      a.Prepare(a.d.MemAllocHost(&by.h, 64));
      {
        const Capturing captured(a, mode);
        a(call(a.d, by));
      }
      for (CUstream s : {by.s, by.new_stream}) {
        if (s != nullptr) (void)a.d.StreamDestroy(s);
      }
      for (CUevent e : {by.e, by.new_event}) {
        if (e != nullptr) (void)a.d.EventDestroy(e);
      }
      for (void* h : {by.h, by.new_pinned}) {
        if (h != nullptr) (void)a.d.MemFreeHost(h);
      }
      if (by.p != 0) (void)a.d.MemFree(by.p);
      if (by.new_module != nullptr) (void)a.d.ModuleUnload(by.new_module);
      if (by.new_pool != nullptr) (void)a.d.MemPoolDestroy(by.new_pool);
    }
  });
}

constexpr const char* kAlways = "SUCCESS x3";
constexpr const char* kIfRelaxed = "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED SUCCESS";
constexpr const char* kNever = "STREAM_CAPTURE_UNSUPPORTED x3";

void ListModes(Questions& ask) {
  InEachMode(ask, "capture_mode.free", kIfRelaxed, [](Driver d, Bystanders& by) { return Gone(d.MemFree(by.p), &by.p); });
  InEachMode(ask, "capture_mode.pinned_alloc", kIfRelaxed, [](Driver d, Bystanders& by) { return d.MemHostAlloc(&by.new_pinned, 64, 0); });
  InEachMode(ask, "capture_mode.pinned_free", kIfRelaxed, [](Driver d, Bystanders& by) { return Gone(d.MemFreeHost(by.h), &by.h); });
  InEachMode(ask, "capture_mode.copy", kAlways, [](Driver d, Bystanders& by) {
    int in = 1;
    return d.MemcpyHtoD(by.p, &in, sizeof(in));
  });
  InEachMode(ask, "capture_mode.set", kAlways, [](Driver d, Bystanders& by) { return d.MemsetD8(by.p, 1, 64); });
  InEachMode(ask, "capture_mode.event_query", kIfRelaxed, [](Driver d, Bystanders& by) { return d.EventQuery(by.e); });
  InEachMode(ask, "capture_mode.event_synchronize", kIfRelaxed, [](Driver d, Bystanders& by) { return d.EventSynchronize(by.e); });
  InEachMode(ask, "capture_mode.stream_query", kIfRelaxed, [](Driver d, Bystanders& by) { return d.StreamQuery(by.s); });
  InEachMode(ask, "capture_mode.stream_synchronize", kIfRelaxed, [](Driver d, Bystanders& by) { return d.StreamSynchronize(by.s); });
  InEachMode(ask, "capture_mode.context_synchronize", kNever, [](Driver d, Bystanders&) { return d.CtxSynchronize(nullptr); });
  InEachMode(ask, "capture_mode.stream_create", kAlways,
             [](Driver d, Bystanders& by) { return d.StreamCreate(&by.new_stream, CU_STREAM_NON_BLOCKING); });
  InEachMode(ask, "capture_mode.stream_destroy", kAlways, [](Driver d, Bystanders& by) { return Gone(d.StreamDestroy(by.s), &by.s); });
  InEachMode(ask, "capture_mode.event_create", kAlways, [](Driver d, Bystanders& by) { return d.EventCreate(&by.new_event, 0); });
  InEachMode(ask, "capture_mode.event_destroy", kAlways, [](Driver d, Bystanders& by) { return Gone(d.EventDestroy(by.e), &by.e); });
  InEachMode(ask, "capture_mode.module_load", kAlways, [](Driver d, Bystanders& by) { return d.ModuleLoadData(&by.new_module, kPtx); });
  InEachMode(ask, "capture_mode.async_alloc_elsewhere", kIfRelaxed, [](Driver d, Bystanders& by) {
    CUdeviceptr p = 0;
    const CUresult result = d.MemAllocAsync(&p, 64, by.s);
    if (result == CUDA_SUCCESS) (void)d.MemFreeAsync(p, by.s);
    return result;
  });
  InEachMode(ask, "capture_mode.pool_create", kIfRelaxed, [](Driver d, Bystanders& by) {
    const CUmemPoolProps properties = PoolOfDevice();
    return d.MemPoolCreate(&by.new_pool, &properties);
  });
}

// What another thread, with the same context current, is answered.
CUresult OnAnotherThread(Ready& a, const std::function<CUresult()>& call) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    result = a.d.CtxSetCurrent(a.context);
    if (result == CUDA_SUCCESS) result = call();
    (void)a.d.CtxSetCurrent(nullptr);
  }).join();
  return result;
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("capture.empty", "SUCCESS 1", [](Ready& a, Capturing& c) {
    a(a.d.StreamEndCapture(c.s, &c.g));
    a.Value(c.g != nullptr);
  });
  ask.Plain("capture.status", "SUCCESS 1 SUCCESS 0", [](Ready& a, Capturing& c) {
    c.ShowStatus();
    a.Prepare(a.d.StreamEndCapture(c.s, &c.g));
    c.ShowStatus();
  });
  ask.Plain("capture.legacy_stream", "STREAM_CAPTURE_UNSUPPORTED",
            [](Ready& a) { a(a.d.StreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL)); });
  ask.Plain("capture.twice", "ILLEGAL_STATE",
            [](Ready& a, Capturing& c) { a(a.d.StreamBeginCapture(c.s, CU_STREAM_CAPTURE_MODE_GLOBAL)); });
  ask.Plain("capture.end_without_begin", "ILLEGAL_STATE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.StreamEndCapture(s, kIgnored));
  });
  ask.Plain("capture.bad_mode", "INVALID_VALUE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.StreamBeginCapture(s, Beyond<CUstreamCaptureMode>(9)));
  });
  ask.Plain("capture.host_function", "SUCCESS SUCCESS 1 0", [](Ready& a, Capturing& c) {
    int ran = 0;
    a(a.d.LaunchHostFunc(c.s, Bump, &ran));
    a(a.d.StreamEndCapture(c.s, &c.g));
    c.ShowNodes();
    a.Value(ran);
  });
  ask.Plain("capture.alloc_is_unsafe", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED 1", [](Ready& a, Capturing& c) {
    a(a.d.MemAlloc(kIgnored, 16));
    a(a.d.StreamEndCapture(c.s, &c.g));
    a.Value(c.g == nullptr);
  });
  ask.Plain("capture.alloc_when_relaxed", "SUCCESS SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    Capturing c(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    a(a.d.MemAlloc(&p, 16));
    a(a.d.StreamEndCapture(c.s, &c.g));
    (void)a.d.MemFree(p);
  });
  ask.Plain("capture.synchronize", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", [](Ready& a, Capturing& c) {
    a(a.d.StreamSynchronize(c.s));
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Plain("capture.query", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", [](Ready& a, Capturing& c) {
    a(a.d.StreamQuery(c.s));
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Plain("capture.callback", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", [](Ready& a, Capturing& c) {
    a(a.d.StreamAddCallback(c.s, Called, nullptr, 0));
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Plain("capture.context_synchronize", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", [](Ready& a, Capturing& c) {
    a(a.d.CtxSynchronize(nullptr));
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Plain("capture.after_invalidation", "STREAM_CAPTURE_INVALIDATED", [](Ready& a, Capturing& c) {
    int ran = 0;
    (void)a.d.StreamSynchronize(c.s);
    a(a.d.LaunchHostFunc(c.s, Bump, &ran));
  });
  ask.Plain("capture.invalidated_status", "SUCCESS 2", [](Ready& a, Capturing& c) {
    (void)a.d.StreamSynchronize(c.s);
    c.ShowStatus();
  });
  ask.Plain("capture.fork_join", "SUCCESS 2 1", [](Ready& a, Capturing& c) {
    int ran = 0;
    std::size_t edges = 0;
    const CUstream t = a.StreamCreate();
    const CUevent e = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.LaunchHostFunc(c.s, Bump, &ran));
    a.Prepare(a.d.EventRecord(e, c.s));
    a.Prepare(a.d.StreamWaitEvent(t, e, 0));
    a.Prepare(a.d.LaunchHostFunc(t, Bump, &ran));
    a.Prepare(a.d.EventRecord(e, t));
    a.Prepare(a.d.StreamWaitEvent(c.s, e, 0));
    a(a.d.StreamEndCapture(c.s, &c.g));
    c.ShowNodes();
    a.Values(a.d.GraphGetEdges(c.g, nullptr, nullptr, nullptr, &edges), edges);
  });
  ask.Plain("capture.unjoined", "STREAM_CAPTURE_UNJOINED", [](Ready& a, Capturing& c) {
    int ran = 0;
    const CUstream t = a.StreamCreate();
    const CUevent e = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.EventRecord(e, c.s));
    a.Prepare(a.d.StreamWaitEvent(t, e, 0));
    a.Prepare(a.d.LaunchHostFunc(t, Bump, &ran));
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Plain("capture.only_waited", "SUCCESS 2 SUCCESS 0", [](Ready& a, Capturing& c) {
    int ran = 0;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUstream t = a.StreamCreate();
    const CUevent e = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.LaunchHostFunc(c.s, Bump, &ran));
    a.Prepare(a.d.EventRecord(e, c.s));
    a.Prepare(a.d.StreamWaitEvent(t, e, 0));
    a.Prepare(a.d.LaunchHostFunc(c.s, Bump, &ran));
    a(a.d.StreamEndCapture(c.s, &c.g));
    c.ShowNodes();
    a(a.d.StreamIsCapturing(t, &status), status);
  });
  ask.Plain("capture.legacy_asked", "STREAM_CAPTURE_IMPLICIT STREAM_CAPTURE_IMPLICIT SUCCESS 1 SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate(CU_STREAM_DEFAULT);
    CUgraph g = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.StreamIsCapturing(nullptr, &status));
    a(a.d.StreamGetCaptureInfo(nullptr, &status, kIgnored, nullptr, nullptr, nullptr, nullptr));
    a(a.d.StreamIsCapturing(s, &status), status);
    a(a.d.StreamEndCapture(s, &g));
    if (g != nullptr) (void)a.d.GraphDestroy(g);
  });
  ask.Plain("capture.unmatched", "STREAM_CAPTURE_UNMATCHED", [](Ready& a, Capturing& c) {
    const CUstream t = a.StreamCreate();
    const CUevent e = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.EventRecord(e, c.s));
    a.Prepare(a.d.StreamWaitEvent(t, e, 0));
    a(a.d.StreamEndCapture(t, kIgnored));
  });
  ask.Plain("capture.isolation", "STREAM_CAPTURE_ISOLATION", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUgraph g = nullptr;
    const CUevent e = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.StreamWaitEvent(s, e, 0));
    (void)a.d.StreamEndCapture(s, &g);
    if (g != nullptr) (void)a.d.GraphDestroy(g);
  });
  ask.Plain("capture.event_query", "CAPTURED_EVENT", [](Ready& a) {
    const CUevent e = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    Capturing c(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    a.Prepare(a.d.EventRecord(e, c.s));
    a(a.d.EventQuery(e));
  });
  ask.Plain("capture.implicit", "STREAM_CAPTURE_IMPLICIT", [](Ready& a) {
    CUgraph g = nullptr;
    int ran = 0;
    const CUstream s = a.StreamCreate(0);
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a(a.d.LaunchHostFunc(nullptr, Bump, &ran));
    (void)a.d.StreamEndCapture(s, &g);
    if (g != nullptr) (void)a.d.GraphDestroy(g);
  });
  ask.Plain("capture.exchange_mode", "SUCCESS 0 2", [](Ready& a) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    a(a.d.ThreadExchangeStreamCaptureMode(&mode), mode);
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    a.Values(a.d.ThreadExchangeStreamCaptureMode(&mode), mode);
  });
  ask.Risky("capture.destroy_stream", "SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("capture.destroyed_origin", "SUCCESS SUCCESS 0 ILLEGAL_STATE SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate(), joined = a.StreamCreate();
    const CUevent e = a.EventCreate();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.StreamWaitEvent(joined, e, 0));
    a(a.d.StreamDestroy(s));
    a(a.d.StreamIsCapturing(joined, &status), status);
    a(a.d.StreamEndCapture(joined, kIgnored));
    a(a.d.StreamSynchronize(joined));
    a(a.d.StreamDestroy(joined));
  });
  ListModes(ask);
  ask.Plain("capture.event_synchronize", "CAPTURED_EVENT", [](Ready& a) {
    const CUevent e = a.EventCreate();
    Capturing c(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    a.Prepare(a.d.EventRecord(e, c.s));
    a(a.d.EventSynchronize(e));
  });
  ask.Plain("capture.event_destroy", "SUCCESS SUCCESS", [](Ready& a) {
    CUevent e = nullptr;
    a.Prepare(a.d.EventCreate(&e, 0));
    Capturing c(a);
    a.Prepare(a.d.EventRecord(e, c.s));
    a(a.d.EventDestroy(e));
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Plain("capture.event_afterwards", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUevent e = a.EventCreate();
    Capturing c(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    a.Prepare(a.d.EventRecord(e, c.s));
    a(a.d.StreamEndCapture(c.s, &c.g));
    a(a.d.EventQuery(e));
  });
  ask.Plain("capture.wait_unrecorded", "SUCCESS", [](Ready& a, Capturing& c) {
    const CUevent e = a.EventCreate();
    a(a.d.StreamWaitEvent(c.s, e, 0));
  });
  ask.Plain("capture.merge", "STREAM_CAPTURE_MERGE", [](Ready& a) {
    const CUevent e = a.EventCreate();
    const Capturing c(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    const Capturing other(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    a.Prepare(a.d.EventRecord(e, other.s));
    a(a.d.StreamWaitEvent(c.s, e, 0));
  });
  ask.Plain("capture.async_alloc", "SUCCESS 1", [](Ready& a, Capturing& c) {
    CUdeviceptr p = 0;
    a(a.d.MemAllocAsync(&p, 64, c.s));
    a.Value(p != 0);
  });
  ask.Plain("capture.graph_launch", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED 0", [](Ready& a) {
    const CUgraph inner = a.GraphCreate();
    a.GraphAddEmptyNode(inner);
    const CUgraphExec x = a.GraphInstantiate(inner);
    Capturing c(a);
    a(a.d.GraphLaunch(x, c.s));
    a(a.d.StreamEndCapture(c.s, &c.g));
    c.ShowNodes();
  });
  ask.Fresh("capture.end_on_another_thread", "STREAM_CAPTURE_WRONG_THREAD", [](Ready& a, Capturing& c) {
    CUgraph g = nullptr;
    a(OnAnotherThread(a, [&] { return a.d.StreamEndCapture(c.s, &g); }));
  });
  ask.Fresh("capture.alloc_on_another_thread", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", [](Ready& a, Capturing& c) {
    CUdeviceptr p = 0;
    a(OnAnotherThread(a, [&] { return a.d.MemAlloc(&p, 64); }));
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Fresh("capture.work_on_another_thread", "SUCCESS", [](Ready& a, Capturing& c) {
    static int ran = 0;
    a(OnAnotherThread(a, [&] { return a.d.LaunchHostFunc(c.s, Bump, &ran); }));
  });
}

}  // namespace cuaudit::contract::capture_questions
