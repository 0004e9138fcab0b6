// SPDX-License-Identifier: MIT
// Streams and events of green contexts, and what is left of them once the green context is gone.
#include "suites/contract/question.h"

namespace cuaudit::contract::green_stream_questions {
namespace {

CUgreenCtx Green(Asker& a) {
  CUdevResource all = {};
  CUdevResource part = {};
  unsigned groups = 1;
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  a.Prepare(a.d.DevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16));
  a.Prepare(a.d.DevResourceGenerateDesc(&desc, &part, 1));
  a.Prepare(a.d.GreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

CUstream StreamOf(Asker& a, CUgreenCtx green) {
  CUstream s = nullptr;
  a.Prepare(a.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
  return s;
}

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
    a(a.d.StreamIsCapturing(s, &status));
    a.Value(status);
  }
  for (const CUstream s : {CUstream{}, CU_STREAM_LEGACY}) {
    CUdeviceptr p = 0;
    a(a.d.MemAllocAsync(&p, 65536, s));
  }
  CUgraph graph = nullptr;
  std::size_t nodes = 0;
  a(a.d.StreamEndCapture(origin, &graph));
  a(a.d.GraphGetNodes(graph, nullptr, &nodes));
  a.Value(static_cast<long long>(nodes));
}

void Bump(void* argument) { ++*static_cast<int*>(argument); }

constexpr Question kQuestions[] = {
    {"green_stream.create", "SUCCESS SUCCESS 1 INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS -5 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       CUstream s = nullptr;
       CUstream t = nullptr;
       unsigned flags = 0;
       a(a.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
       a(a.d.StreamGetFlags(s, &flags));
       a.Value(flags);
       a(a.d.GreenCtxStreamCreate(&t, green, 0, 0));
       a(a.d.GreenCtxStreamCreate(&t, green, 0x40, 0));
       a(a.d.GreenCtxStreamCreate(nullptr, green, CU_STREAM_NON_BLOCKING, 0));
       int priority = 0;
       a(a.d.GreenCtxStreamCreate(&t, green, CU_STREAM_NON_BLOCKING, -50));
       (void)a.d.StreamGetPriority(t, &priority);
       a.Value(priority);
       a(a.d.StreamDestroy(s));
     }},
    {"green_stream.null_context", "INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a(a.d.GreenCtxStreamCreate(&s, nullptr, CU_STREAM_NON_BLOCKING, 0));
     }},
    {"green_stream.belongs", "SUCCESS 1 SUCCESS 0 1 SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       CUcontext converted = nullptr;
       CUcontext c = nullptr;
       CUgreenCtx g = nullptr;
       a.Prepare(a.d.CtxFromGreenCtx(&converted, green));
       a(a.d.StreamGetGreenCtx(s, &g));
       a.Value(g == green);
       a(a.d.StreamGetCtx(s, &c, &g));
       a.Value(c == converted);
       a.Value(g == green);
       CUstream plain = nullptr;
       a.Prepare(a.d.StreamCreate(&plain, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamGetGreenCtx(plain, &g));
       a.Value(g == nullptr);
     }},
    {"green_stream.standard_names", "SUCCESS SUCCESS 1 SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       unsigned long long standard = 0;
       unsigned long long legacy = 0;
       unsigned long long primary = 0;
       a.Prepare(a.d.StreamGetId(nullptr, &primary));
       MakeCurrent(a, Green(a));
       a(a.d.StreamGetId(nullptr, &standard));
       a(a.d.StreamGetId(CU_STREAM_LEGACY, &legacy));
       a.Value(standard == legacy);
       CUcontext popped = nullptr;
       a(a.d.CtxPopCurrent(&popped));
       a.Value(standard != primary);
     }},
    {"green_stream.standard_captured", "SUCCESS SUCCESS 1 SUCCESS 1 SUCCESS SUCCESS SUCCESS SUCCESS 2", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       MakeCurrent(a, Green(a));
       CaptureStandard(a, nullptr);
     }},
    {"green_stream.standard_captured_as_legacy", "SUCCESS SUCCESS 1 SUCCESS 1 SUCCESS SUCCESS SUCCESS SUCCESS 2", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       MakeCurrent(a, Green(a));
       CaptureStandard(a, CU_STREAM_LEGACY);
     }},
    {"green_stream.standard_beside_a_capture", "SUCCESS SUCCESS 0 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_DEFAULT));
       a(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       MakeCurrent(a, Green(a));
       CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
       a(a.d.StreamIsCapturing(nullptr, &status));
       a.Value(status);
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, 512, nullptr));
       CUgraph graph = nullptr;
       a(a.d.StreamEndCapture(s, &graph));
     }},
    {"green_stream.of_a_thread", "INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       MakeCurrent(a, Green(a));
       unsigned long long id = 0;
       CUdeviceptr p = 0;
       a(a.d.StreamGetId(CU_STREAM_PER_THREAD, &id));
       a(a.d.MemAllocAsync(&p, 512, CU_STREAM_PER_THREAD));
       a(a.d.StreamSynchronize(CU_STREAM_PER_THREAD));
       a(a.d.StreamQuery(CU_STREAM_PER_THREAD));
       a(a.d.StreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
     }},
    {"green_stream.v1_context", "SUCCESS SUCCESS SUCCESS 1 INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUstream s = StreamOf(a, Green(a));
       CUcontext c = nullptr;
       CUgreenCtx g = nullptr;
       a(a.d.StreamGetCtx(s, &c, nullptr));
       a(a.d.StreamGetCtx(s, nullptr, &g));
       a(a.d.StreamGetGreenCtx(nullptr, &g));
       a.Value(g == nullptr);
       a(a.d.StreamGetGreenCtx(s, nullptr));
     }},
    {"green_stream.works", "SUCCESS SUCCESS 1 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUstream s = StreamOf(a, Green(a));
       int n = 0;
       a(a.d.LaunchHostFunc(s, Bump, &n));
       a(a.d.StreamSynchronize(s));
       a.Value(n);
       a(a.d.StreamDestroy(s));
     }},
    {"green_stream.without_context", "SUCCESS SUCCESS 1 SUCCESS", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       const CUstream s = StreamOf(a, Green(a));
       int n = 0;
       a(a.d.LaunchHostFunc(s, Bump, &n));
       a(a.d.StreamSynchronize(s));
       a.Value(n);
       a(a.d.StreamDestroy(s));
     }},
    {"green_stream.destroy_after_context", "SUCCESS CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       a(a.d.GreenCtxDestroy(green));
       a(a.d.StreamDestroy(s));
     }},
    {"green_stream.synchronize_after_context", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       a.Prepare(a.d.GreenCtxDestroy(green));
       a(a.d.StreamSynchronize(s));
     }},
    {"green_stream.query_after_context", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       a.Prepare(a.d.GreenCtxDestroy(green));
       a(a.d.StreamQuery(s));
     }},
    {"green_stream.work_after_context", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       int n = 0;
       a.Prepare(a.d.GreenCtxDestroy(green));
       a(a.d.LaunchHostFunc(s, Bump, &n));
     }},
    {"green_stream.plain_stream_after_context", "SUCCESS CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       CUcontext c = nullptr;
       CUstream s = nullptr;
       a.Prepare(a.d.CtxFromGreenCtx(&c, green));
       a.Prepare(a.d.CtxPushCurrent(c));
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.CtxPopCurrent(&c));
       a(a.d.GreenCtxDestroy(green));
       a(a.d.StreamDestroy(s));
     }},
    {"green_stream.destroy_busy_context", "SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       static int n = 0;
       n = 0;
       a.Prepare(a.d.LaunchHostFunc(s, Bump, &n));
       a(a.d.GreenCtxDestroy(green));
       (void)a.d.CtxSynchronize(nullptr);
       a.Value(n);
     }},
    {"green_stream.events", "SUCCESS SUCCESS SUCCESS INVALID_HANDLE INVALID_HANDLE INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.GreenCtxRecordEvent(green, e));
       a(a.d.GreenCtxWaitEvent(green, e));
       a(a.d.EventSynchronize(e));
       a(a.d.GreenCtxRecordEvent(green, nullptr));
       a(a.d.GreenCtxWaitEvent(green, nullptr));
       a(a.d.GreenCtxRecordEvent(nullptr, e));
     }},
    {"green_stream.record_covers_streams", "SUCCESS SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       CUevent e = nullptr;
       int n = 0;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.LaunchHostFunc(s, Bump, &n));
       a(a.d.GreenCtxRecordEvent(green, e));
       a(a.d.EventSynchronize(e));
       a.Value(n);
     }},
    {"green_stream.context_events", "SUCCESS SUCCESS INVALID_CONTEXT SUCCESS INVALID_HANDLE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.CtxRecordEvent(ready.context, e));
       a(a.d.CtxWaitEvent(ready.context, e));
       a(a.d.CtxRecordEvent(nullptr, e));
       a(a.d.EventSynchronize(e));
       a(a.d.CtxRecordEvent(ready.context, nullptr));
       a(a.d.CtxWaitEvent(ready.context, nullptr));
     }},
    {"green_stream.record_while_capturing", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
     Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a(a.d.CtxRecordEvent(ready.context, e));
       a(a.d.CtxWaitEvent(ready.context, e));
       a(a.d.StreamEndCapture(s, &g));
     }},
    {"green_stream.primary_release_under_green", "SUCCESS 1 SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUcontext c = nullptr;
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       unsigned flags = 0;
       int active = -1;
       a(a.d.DevicePrimaryCtxRelease(0));
       (void)a.d.DevicePrimaryCtxGetState(0, &flags, &active);
       a.Value(active);
       a(a.d.StreamSynchronize(s));
       a(a.d.GreenCtxDestroy(green));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::green_stream_questions

namespace cuaudit::contract {
std::span<const Question> GreenStreamQuestions() { return green_stream_questions::kQuestions; }
}  // namespace cuaudit::contract
