// SPDX-License-Identifier: MIT
// Streams and events of green contexts, and what is left of them once the green context is gone.
#include "suites/contract/context/away.h"
#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::green_stream_questions {
namespace {

// From here on null and CU_STREAM_LEGACY mean a stream of the green context's own.
void MakeCurrent(Asker& a, CUgreenCtx green) {
  CUcontext view = nullptr;
  a.Prepare(a.d.CtxFromGreenCtx(&view, green));
  a.Prepare(a.d.CtxPushCurrent(view));
}

void CaptureStandard(Asker& a, CUstream origin) {
  if (a(a.d.StreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED)) != CUDA_SUCCESS) return;
  for (const CUstream s : {CUstream{}, CU_STREAM_LEGACY}) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    a(a.d.StreamIsCapturing(s, &status), status);
  }
  for (const CUstream s : {CUstream{}, CU_STREAM_LEGACY}) {
    CUdeviceptr p = 0;
    a(a.d.MemAllocAsync(&p, 65536, s));
  }
  CUgraph graph = nullptr;
  std::size_t nodes = 0;
  a(a.d.StreamEndCapture(origin, &graph));
  a(a.d.GraphGetNodes(graph, nullptr, &nodes), nodes);
}

}  // namespace

void List(Questions& ask) {
  ask.Risky("green_stream.create", "SUCCESS SUCCESS 1 INVALID_VALUE x3 SUCCESS -5 SUCCESS", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUstream s = nullptr, t = nullptr;
    unsigned flags = 0;
    a(a.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
    a(a.d.StreamGetFlags(s, &flags), flags);
    a(a.d.GreenCtxStreamCreate(&t, green, 0, 0));
    a(a.d.GreenCtxStreamCreate(&t, green, 0x40, 0));
    a(a.d.GreenCtxStreamCreate(nullptr, green, CU_STREAM_NON_BLOCKING, 0));
    int priority = 0;
    a(a.d.GreenCtxStreamCreate(&t, green, CU_STREAM_NON_BLOCKING, -50));
    (void)a.d.StreamGetPriority(t, &priority);
    a.Value(priority);
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("green_stream.null_context", "INVALID_CONTEXT",
            [](Ready& a) { a(a.d.GreenCtxStreamCreate(kIgnored, nullptr, CU_STREAM_NON_BLOCKING, 0)); });
  ask.Risky("green_stream.belongs", "SUCCESS 1 SUCCESS 0 1 SUCCESS 1", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    CUcontext converted = nullptr, c = nullptr;
    CUgreenCtx g = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&converted, green));
    a(a.d.StreamGetGreenCtx(s, &g));
    a.Value(g == green);
    a(a.d.StreamGetCtx(s, &c, &g));
    a.Value(c == converted);
    a.Value(g == green);
    const CUstream plain = a.StreamCreate();
    a(a.d.StreamGetGreenCtx(plain, &g));
    a.Value(g == nullptr);
  });
  ask.Risky("green_stream.standard_names", "SUCCESS SUCCESS 1 SUCCESS 1", [](Ready& a) {
    unsigned long long standard = 0, legacy = 0, primary = 0;
    a.Prepare(a.d.StreamGetId(nullptr, &primary));
    MakeCurrent(a, Green(a));
    a(a.d.StreamGetId(nullptr, &standard));
    a(a.d.StreamGetId(CU_STREAM_LEGACY, &legacy));
    a.Value(standard == legacy);
    a(a.d.CtxPopCurrent(kIgnored));
    a.Value(standard != primary);
  });
  ask.Risky("green_stream.standard_captured", "SUCCESS SUCCESS 1 SUCCESS 1 SUCCESS x4 2", [](Ready& a) {
    MakeCurrent(a, Green(a));
    CaptureStandard(a, nullptr);
  });
  ask.Risky("green_stream.standard_captured_as_legacy", "SUCCESS SUCCESS 1 SUCCESS 1 SUCCESS x4 2", [](Ready& a) {
    MakeCurrent(a, Green(a));
    CaptureStandard(a, CU_STREAM_LEGACY);
  });
  ask.Risky("green_stream.standard_beside_a_capture", "SUCCESS SUCCESS 0 SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate(CU_STREAM_DEFAULT);
    a(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    MakeCurrent(a, Green(a));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    a(a.d.StreamIsCapturing(nullptr, &status), status);
    a(a.d.MemAllocAsync(kIgnored, 512, nullptr));
    a(a.d.StreamEndCapture(s, kIgnored));
  });
  ask.Risky("green_stream.of_a_thread", "INVALID_HANDLE x5", [](Ready& a) {
    MakeCurrent(a, Green(a));
    unsigned long long id = 0;
    a(a.d.StreamGetId(CU_STREAM_PER_THREAD, &id));
    a(a.d.MemAllocAsync(kIgnored, 512, CU_STREAM_PER_THREAD));
    a(a.d.StreamSynchronize(CU_STREAM_PER_THREAD));
    a(a.d.StreamQuery(CU_STREAM_PER_THREAD));
    a(a.d.StreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  });
  ask.Risky("green_stream.v1_context", "SUCCESS x3 1 INVALID_VALUE", [](Ready& a) {
    const CUstream s = StreamOf(a, Green(a));
    CUgreenCtx g = nullptr;
    a(a.d.StreamGetCtx(s, kIgnored, nullptr));
    a(a.d.StreamGetCtx(s, nullptr, &g));
    a(a.d.StreamGetGreenCtx(nullptr, &g));
    a.Value(g == nullptr);
    a(a.d.StreamGetGreenCtx(s, nullptr));
  });
  ask.Risky("green_stream.works", "SUCCESS SUCCESS 1 SUCCESS", [](Ready& a) {
    const CUstream s = StreamOf(a, Green(a));
    int n = 0;
    a(a.d.LaunchHostFunc(s, Bump, &n));
    a(a.d.StreamSynchronize(s));
    a.Value(n);
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("green_stream.without_context", "SUCCESS SUCCESS 1 SUCCESS", [](Initialised& a) {
    const CUstream s = StreamOf(a, Green(a));
    int n = 0;
    a(a.d.LaunchHostFunc(s, Bump, &n));
    a(a.d.StreamSynchronize(s));
    a.Value(n);
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("green_stream.destroy_after_context", "SUCCESS CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    a(a.d.GreenCtxDestroy(green));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("green_stream.synchronize_after_context", "CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    a.Prepare(a.d.GreenCtxDestroy(green));
    a(a.d.StreamSynchronize(s));
  });
  ask.Risky("green_stream.query_after_context", "CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    a.Prepare(a.d.GreenCtxDestroy(green));
    a(a.d.StreamQuery(s));
  });
  ask.Risky("green_stream.work_after_context", "CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    int n = 0;
    a.Prepare(a.d.GreenCtxDestroy(green));
    a(a.d.LaunchHostFunc(s, Bump, &n));
  });
  ask.Risky("green_stream.plain_stream_after_context", "SUCCESS CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext c = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&c, green));
    a.Prepare(a.d.CtxPushCurrent(c));
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.CtxPopCurrent(&c));
    a(a.d.GreenCtxDestroy(green));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("green_stream.destroy_busy_context", "SUCCESS 1", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    static int n = 0;
    n = 0;
    a.Prepare(a.d.LaunchHostFunc(s, Bump, &n));
    a(a.d.GreenCtxDestroy(green));
    (void)a.d.CtxSynchronize(nullptr);
    a.Value(n);
  });
  ask.Risky("green_stream.events", "SUCCESS x3 INVALID_HANDLE INVALID_HANDLE INVALID_CONTEXT", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUevent e = a.EventCreate();
    a(a.d.GreenCtxRecordEvent(green, e));
    a(a.d.GreenCtxWaitEvent(green, e));
    a(a.d.EventSynchronize(e));
    a(a.d.GreenCtxRecordEvent(green, nullptr));
    a(a.d.GreenCtxWaitEvent(green, nullptr));
    a(a.d.GreenCtxRecordEvent(nullptr, e));
  });
  ask.Risky("green_stream.record_covers_streams", "SUCCESS SUCCESS 1", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    int n = 0;
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.LaunchHostFunc(s, Bump, &n));
    a(a.d.GreenCtxRecordEvent(green, e));
    a(a.d.EventSynchronize(e));
    a.Value(n);
  });
  ask.Risky("green_stream.context_events", "SUCCESS SUCCESS INVALID_CONTEXT SUCCESS INVALID_HANDLE INVALID_HANDLE", [](Ready& a) {
    const CUevent e = a.EventCreate();
    a(a.d.CtxRecordEvent(a.context, e));
    a(a.d.CtxWaitEvent(a.context, e));
    a(a.d.CtxRecordEvent(nullptr, e));
    a(a.d.EventSynchronize(e));
    a(a.d.CtxRecordEvent(a.context, nullptr));
    a(a.d.CtxWaitEvent(a.context, nullptr));
  });
  ask.Risky("green_stream.record_while_capturing", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
            [](Ready& a) {
              const CUevent e = a.EventCreate();
              Capturing c(a, CU_STREAM_CAPTURE_MODE_RELAXED);
              a(a.d.CtxRecordEvent(a.context, e));
              a(a.d.CtxWaitEvent(a.context, e));
              a(a.d.StreamEndCapture(c.s, &c.g));
            });
  ask.Fresh("green_stream.primary_release_under_green", "SUCCESS 1 SUCCESS SUCCESS", [](Initialised& a) {
    a.DevicePrimaryCtxRetain();
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    unsigned flags = 0;
    int active = -1;
    a(a.d.DevicePrimaryCtxRelease(0));
    (void)a.d.DevicePrimaryCtxGetState(0, &flags, &active);
    a.Value(active);
    a(a.d.StreamSynchronize(s));
    a(a.d.GreenCtxDestroy(green));
  });
}

}  // namespace cuaudit::contract::green_stream_questions
