// SPDX-License-Identifier: MIT
// What may be asked about a stream while it is captured, and what becomes of an event that was recorded there.
#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::captured_questions {
namespace {

using CapturedCall = CUresult (*)(Driver, CUstream captured, CUstream other);
constexpr const char* kAllowed = "SUCCESS SUCCESS";
constexpr const char* kRefused =
    "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED";
constexpr const char* kAllowedIfRelaxed = "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED SUCCESS";

// The answer to one call on the captured stream or beside it, and, when it was refused, what became of the capture. `relaxed`: the
// thread allows unsafe calls meanwhile.
void WhileCaptured(Ready& a, CUstreamCaptureMode mode, bool relaxed, CapturedCall call) {
  const CUstream other = a.StreamCreate();
  Capturing c(a, mode);
  CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (relaxed) a.Prepare(a.d.ThreadExchangeStreamCaptureMode(&own));
  const CUresult result = a(call(a.d, c.s, other));
  if (relaxed) a.Prepare(a.d.ThreadExchangeStreamCaptureMode(&own));
  const CUresult ended = a.d.StreamEndCapture(c.s, &c.g);
  if (result != CUDA_SUCCESS) a(ended);
}

// In the global mode, the thread being strict.
void Strict(Questions& ask, const char* name, const char* expected, CapturedCall call) {
  ask.Plain(name, expected, [call](Ready& a) { WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call); });
}

// In the global mode, the thread being strict and then relaxed.
void StrictAndRelaxed(Ready& a, CapturedCall call) {
  WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call);
  WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, true, call);
}
void Both(Questions& ask, const char* name, const char* expected, CapturedCall call) {
  ask.Plain(name, expected, [call](Ready& a) { StrictAndRelaxed(a, call); });
}

CUresult IdOf(Driver d, CUstream stream) {
  unsigned long long id = 0;
  return d.StreamGetId(stream, &id);
}

CUresult ContextOf(Driver d, CUstream stream) {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  CUgreenCtx green = nullptr;
  return d.StreamGetCtx(stream, &context, &green);
#else
  return d.StreamGetCtx(stream, &context);
#endif
}

CUresult IsCapturing(Driver d, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return d.StreamIsCapturing(stream, &status);
}

// Whether the stream is captured, and as said, asked both ways.
CUresult WithoutContext(Driver d, CUstream stream, CUstreamCaptureStatus expected) {
  CUcontext context = nullptr;
  if (const CUresult result = d.CtxPopCurrent(&context); result != CUDA_SUCCESS) return result;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED, again = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  cuuint64_t id = 0;
  CUresult result = d.StreamIsCapturing(stream, &status);
#if CUDA_VERSION >= 13000
  if (result == CUDA_SUCCESS) result = d.StreamGetCaptureInfo(stream, &again, &id, nullptr, nullptr, nullptr, nullptr);
#else
  if (result == CUDA_SUCCESS) result = d.StreamGetCaptureInfo(stream, &again, &id, nullptr, nullptr, nullptr);
#endif
  const CUresult back = d.CtxPushCurrent(context);
  if (result != CUDA_SUCCESS || back != CUDA_SUCCESS) return result != CUDA_SUCCESS ? result : back;
  return status == expected && again == expected ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

// The answers to `record`, which leaves an event behind in a relaxed capture, and then what becomes of another stream that waits for it.
void AfterRecord(Questions& ask, const char* name, const char* expected, void (*record)(Ready& a, CUstream captured, CUevent e)) {
  ask.Plain(name, expected, [record](Ready& a) {
    const CUstream other = a.StreamCreate();
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.EventRecord(e, other));
    Capturing c(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    record(a, c.s, e);
    a(a.d.StreamWaitEvent(other, e, 0));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    (void)a.d.StreamIsCapturing(other, &status);
    a.Value(status);
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
}

// Records the event, and then a call that is not allowed ends the capture.
void RecordAndInvalidate(Ready& a, CUstream captured, CUevent e) {
  a(a.d.EventRecord(e, captured));
  a(a.d.StreamSynchronize(captured));
}

// Records the event and ends the capture.
void RecordAndEnd(Ready& a, CUstream captured, CUevent e) {
  CUgraph g = nullptr;
  a(a.d.EventRecord(e, captured));
  a(a.d.StreamEndCapture(captured, &g));
  if (g != nullptr) (void)a.d.GraphDestroy(g);
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("captured.get_id",
            "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED "
            "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
            [](Ready& a) {
              const CapturedCall call = [](Driver d, CUstream captured, CUstream) { return IdOf(d, captured); };
              StrictAndRelaxed(a, call);
              WhileCaptured(a, CU_STREAM_CAPTURE_MODE_RELAXED, false, call);
              WhileCaptured(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, call);
            });
  Both(ask, "captured.get_context", kAllowed, [](Driver d, CUstream captured, CUstream) { return ContextOf(d, captured); });
  Both(ask, "captured.get_flags", kRefused, [](Driver d, CUstream captured, CUstream) {
    unsigned flags = 0;
    return d.StreamGetFlags(captured, &flags);
  });
  Both(ask, "captured.get_priority", kAllowed, [](Driver d, CUstream captured, CUstream) {
    int priority = 0;
    return d.StreamGetPriority(captured, &priority);
  });
#if CUDA_VERSION >= 12080
  Both(ask, "captured.get_device", kRefused, [](Driver d, CUstream captured, CUstream) {
    CUdevice device = 0;
    return d.StreamGetDevice(captured, &device);
  });
#endif
  Strict(ask, "captured.is_capturing", "SUCCESS", [](Driver d, CUstream captured, CUstream) { return IsCapturing(d, captured); });
  Strict(ask, "captured.other_id", "SUCCESS", [](Driver d, CUstream, CUstream other) { return IdOf(d, other); });
  Strict(ask, "captured.other_context", "SUCCESS", [](Driver d, CUstream, CUstream other) { return ContextOf(d, other); });
  Both(ask, "captured.event_create", kAllowed, [](Driver d, CUstream, CUstream) {
    CUevent e = nullptr;
    const CUresult result = d.EventCreate(&e, CU_EVENT_DISABLE_TIMING);
    if (e != nullptr) (void)d.EventDestroy(e);
    return result;
  });
  Strict(ask, "captured.other_is_capturing", "SUCCESS", [](Driver d, CUstream, CUstream other) { return IsCapturing(d, other); });
  // Asked about by its own handle while the thread has no context: what an allocator asks before each recording.
  ask.Plain("captured.without_context", "SUCCESS x4", [](Ready& a) {
    WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false,
                  [](Driver d, CUstream captured, CUstream) { return WithoutContext(d, captured, CU_STREAM_CAPTURE_STATUS_ACTIVE); });
    WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false,
                  [](Driver d, CUstream, CUstream other) { return WithoutContext(d, other, CU_STREAM_CAPTURE_STATUS_NONE); });
    StrictAndRelaxed(a, [](Driver d, CUstream captured, CUstream) {
      CUevent e = nullptr;
      CUcontext context = nullptr;
      CUresult result = d.EventCreate(&e, CU_EVENT_DISABLE_TIMING);
      if (result == CUDA_SUCCESS) result = d.CtxPopCurrent(&context);
      if (result != CUDA_SUCCESS) return result;
      result = d.EventRecord(e, captured);
      const CUresult back = d.CtxPushCurrent(context);
      (void)d.EventDestroy(e);
      return result == CUDA_SUCCESS ? back : result;
    });
  });
  Both(ask, "captured.default_id", kAllowed, [](Driver d, CUstream, CUstream) { return IdOf(d, nullptr); });
  Both(ask, "captured.own_thread_id", kAllowed, [](Driver d, CUstream, CUstream) { return IdOf(d, CU_STREAM_PER_THREAD); });
  Both(ask, "captured.memory_info", kAllowed, [](Driver d, CUstream, CUstream) {
    std::size_t free_bytes = 0, total = 0;
    return d.MemGetInfo(&free_bytes, &total);
  });
  Both(ask, "captured.pinned_alloc", kAllowedIfRelaxed, [](Driver d, CUstream, CUstream) {
    void* h = nullptr;
    const CUresult result = d.MemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
    if (h != nullptr) {
      CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
      (void)d.ThreadExchangeStreamCaptureMode(&own);
      (void)d.MemFreeHost(h);
      (void)d.ThreadExchangeStreamCaptureMode(&own);
    }
    return result;
  });
  Both(ask, "captured.other_query", kAllowedIfRelaxed, [](Driver d, CUstream, CUstream other) { return d.StreamQuery(other); });
  Both(ask, "captured.default_is_capturing", kAllowed, [](Driver d, CUstream, CUstream) { return IsCapturing(d, nullptr); });
  Both(ask, "captured.own_thread_is_capturing", kAllowed,
       [](Driver d, CUstream, CUstream) { return IsCapturing(d, CU_STREAM_PER_THREAD); });
  ask.Plain("captured.function_parameters", "SUCCESS x4", [](Ready& a) {
    for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
      CUkernel k = nullptr;
      CUfunction f = nullptr;
      std::size_t offset = 0, size = 0;
      a.Prepare(a.d.LibraryGetKernel(&k, a.LibraryLoadData(), "fill"));
      a.Prepare(a.d.KernelGetFunction(&f, k));
      Capturing c(a, mode);
      const CUresult of_function = a.d.FuncGetParamInfo(f, 0, &offset, &size);
      const CUresult of_kernel = a.d.KernelGetParamInfo(k, 0, &offset, &size);
      a(of_function == CUDA_SUCCESS ? of_kernel : of_function);
      a(a.d.StreamEndCapture(c.s, &c.g));
    }
  });
  ask.Plain("captured.node_that_a_call_becomes", "SUCCESS 1 1 SUCCESS 1 1 SUCCESS 2 1 1", [](Ready& a) {
    CUgraph shown = nullptr;
    const CUdeviceptr p = a.MemAlloc(64);
    Capturing c(a);
    CUgraphNode seen[2] = {};
    for (CUgraphNode& one : seen) {
      a(a.d.MemsetD8Async(p, 0, 64, c.s));
      CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
      const CUgraphNode* nodes = nullptr;
      std::size_t count = 0;
#if CUDA_VERSION >= 13000
      const CUgraphEdgeData* edges = nullptr;
      (void)a.d.StreamGetCaptureInfo(c.s, &status, nullptr, &shown, &nodes, &edges, &count);
#else
      (void)a.d.StreamGetCaptureInfo(c.s, &status, nullptr, &shown, &nodes, &count);
#endif
      a.Value(status);
      a.Value(static_cast<long long>(count));
      if (count == 1) one = nodes[0];
    }
    a(a.d.StreamEndCapture(c.s, &c.g));
    CUgraphNode made[2] = {};
    std::size_t count = 2;
    (void)a.d.GraphGetNodes(c.g, made, &count);
    a.Value(static_cast<long long>(count));
    a.Value((made[0] == seen[0] && made[1] == seen[1]) || (made[0] == seen[1] && made[1] == seen[0]));
    a.Value(shown == c.g);
  });
  AfterRecord(ask, "captured.external_record", "SUCCESS SUCCESS 0 SUCCESS",
              [](Ready& a, CUstream captured, CUevent e) { a(a.d.EventRecordWithFlags(e, captured, CU_EVENT_RECORD_EXTERNAL)); });
  AfterRecord(ask, "captured.external_record_after_record", "SUCCESS x3 1 SUCCESS", [](Ready& a, CUstream captured, CUevent e) {
    a(a.d.EventRecord(e, captured));
    a(a.d.EventRecordWithFlags(e, captured, CU_EVENT_RECORD_EXTERNAL));
  });
  AfterRecord(ask, "captured.external_wait_after_record", "SUCCESS x3 1 SUCCESS", [](Ready& a, CUstream captured, CUevent e) {
    a(a.d.EventRecord(e, captured));
    a(a.d.StreamWaitEvent(captured, e, CU_EVENT_WAIT_EXTERNAL));
  });
  AfterRecord(ask, "captured.context_record", "STREAM_CAPTURE_UNSUPPORTED SUCCESS 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream, CUevent e) { a(a.d.CtxRecordEvent(a.context, e)); });
  AfterRecord(ask, "captured.context_record_after_record", "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                a(a.d.EventRecord(e, captured));
                a(a.d.CtxRecordEvent(a.context, e));
              });
  AfterRecord(ask, "captured.invalidated_event", "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              RecordAndInvalidate);
  AfterRecord(ask, "captured.invalidated_event_of_its_own",
              "SUCCESS STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndInvalidate(a, captured, e);
                a(a.d.StreamWaitEvent(captured, e, 0));
              });
  AfterRecord(ask, "captured.invalidated_event_query",
              "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndInvalidate(a, captured, e);
                a(a.d.EventQuery(e));
              });
  AfterRecord(ask, "captured.invalidated_event_recorded_anew",
              "SUCCESS STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndInvalidate(a, captured, e);
                a(a.d.EventRecord(e, captured));
              });
  AfterRecord(ask, "captured.invalidated_event_for_a_context",
              "SUCCESS STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndInvalidate(a, captured, e);
                a(a.d.CtxWaitEvent(a.context, e));
              });
  AfterRecord(ask, "captured.ended_event", "SUCCESS SUCCESS INVALID_VALUE 0 ILLEGAL_STATE", RecordAndEnd);
  AfterRecord(ask, "captured.ended_event_synchronize", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE 0 ILLEGAL_STATE",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndEnd(a, captured, e);
                a(a.d.EventSynchronize(e));
              });
  AfterRecord(ask, "captured.ended_event_for_a_context", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE 0 ILLEGAL_STATE",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndEnd(a, captured, e);
                a(a.d.CtxWaitEvent(a.context, e));
              });
  AfterRecord(ask, "captured.ended_event_in_the_next_capture", "SUCCESS x3 INVALID_VALUE INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndEnd(a, captured, e);
                a(a.d.StreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
                a(a.d.StreamWaitEvent(captured, e, 0));
              });
  AfterRecord(ask, "captured.invalidated_event_synchronize",
              "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndInvalidate(a, captured, e);
                a(a.d.EventSynchronize(e));
              });
  AfterRecord(ask, "captured.queried_event", "SUCCESS CAPTURED_EVENT INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                a(a.d.EventRecord(e, captured));
                a(a.d.EventQuery(e));
              });
  AfterRecord(ask, "captured.invalidated_event_in_another_capture",
              "SUCCESS STREAM_CAPTURE_UNSUPPORTED SUCCESS INVALID_VALUE STREAM_CAPTURE_INVALIDATED INVALID_VALUE 0 "
              "STREAM_CAPTURE_INVALIDATED",
              [](Ready& a, CUstream captured, CUevent e) {
                RecordAndInvalidate(a, captured, e);
                CUgraph g = nullptr;
                const CUstream third = a.StreamCreate();
                a(a.d.StreamBeginCapture(third, CU_STREAM_CAPTURE_MODE_RELAXED));
                a(a.d.StreamWaitEvent(third, e, 0));
                a(a.d.StreamEndCapture(third, &g));
              });
  AfterRecord(ask, "captured.ended_event_elapsed", "SUCCESS x3 INVALID_VALUE x3 0 ILLEGAL_STATE",
              [](Ready& a, CUstream captured, CUevent e) {
                const CUevent f = a.EventCreate();
                float milliseconds = 0;
                RecordAndEnd(a, captured, e);
                a(a.d.EventRecord(f, captured));
                (void)a.d.StreamSynchronize(captured);
                a(a.d.EventElapsedTime(&milliseconds, e, f));
                a(a.d.EventElapsedTime(&milliseconds, f, e));
              });
}

}  // namespace cuaudit::contract::captured_questions
