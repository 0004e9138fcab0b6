// SPDX-License-Identifier: MIT
// What may be asked about a stream while it is captured, and about others meanwhile.
#include "suites/contract/question.h"

namespace cuaudit::contract::captured_stream_questions {
namespace {

using CapturedCall = CUresult (*)(driver::DriverRef, CUstream captured, CUstream other);

// The answer to one call on the captured stream or beside it, and, when it was refused, what became of the capture. `relaxed`: the
// thread allows unsafe calls meanwhile.
void WhileCaptured(Asker& a, CUstreamCaptureMode mode, bool relaxed, CapturedCall call) {
  const Ready ready(a);
  CUstream captured = nullptr;
  CUstream other = nullptr;
  CUgraph g = nullptr;
  a.Prepare(a.d.StreamCreate(&captured, CU_STREAM_NON_BLOCKING));
  a.Prepare(a.d.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
  a.Prepare(a.d.StreamBeginCapture(captured, mode));
  CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (relaxed) a.Prepare(a.d.ThreadExchangeStreamCaptureMode(&own));
  const CUresult result = call(a.d, captured, other);
  a(result);
  if (relaxed) a.Prepare(a.d.ThreadExchangeStreamCaptureMode(&own));
  const CUresult ended = a.d.StreamEndCapture(captured, &g);
  if (result != CUDA_SUCCESS) a(ended);
  if (g != nullptr) (void)a.d.GraphDestroy(g);
  (void)a.d.StreamDestroy(other);
  (void)a.d.StreamDestroy(captured);
}

// In the global mode, the thread being strict and relaxed.
void StrictAndRelaxed(Asker& a, CapturedCall call) {
  WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call);
  WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, true, call);
}

CUresult IdOf(driver::DriverRef d, CUstream stream) {
  unsigned long long id = 0;
  return d.StreamGetId(stream, &id);
}

CUresult ContextOf(driver::DriverRef d, CUstream stream) {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  CUgreenCtx green = nullptr;
  return d.StreamGetCtx(stream, &context, &green);
#else
  return d.StreamGetCtx(stream, &context);
#endif
}

CUresult IsCapturing(driver::DriverRef d, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return d.StreamIsCapturing(stream, &status);
}

// Whether the stream is captured, and as said, asked both ways.
CUresult WithoutContext(driver::DriverRef d, CUstream stream, CUstreamCaptureStatus expected) {
  CUcontext context = nullptr;
  if (const CUresult result = d.CtxPopCurrent(&context); result != CUDA_SUCCESS) return result;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  CUstreamCaptureStatus again = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
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

constexpr Question kQuestions[] = {
    {"captured.get_id",
     "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED "
     "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
     Manner::Plain,
     [](Asker& a) {
       const CapturedCall call = [](driver::DriverRef d, CUstream captured, CUstream) { return IdOf(d, captured); };
       StrictAndRelaxed(a, call);
       WhileCaptured(a, CU_STREAM_CAPTURE_MODE_RELAXED, false, call);
       WhileCaptured(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, call);
     }},
    {"captured.get_context", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         return ContextOf(d, captured);
       });
     }},
    {"captured.get_flags", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
     Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         unsigned flags = 0;
         return d.StreamGetFlags(captured, &flags);
       });
     }},
    {"captured.get_priority", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         int priority = 0;
         return d.StreamGetPriority(captured, &priority);
       });
     }},
#if CUDA_VERSION >= 12080
    {"captured.get_device", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
     Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         CUdevice device = 0;
         return d.StreamGetDevice(captured, &device);
       });
     }},
#endif
    {"captured.is_capturing", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false,
                     [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
                       return IsCapturing(d, captured);
                     });
     }},
    {"captured.other_id", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       WhileCaptured(
           a, CU_STREAM_CAPTURE_MODE_GLOBAL, false,
           [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) { return IdOf(d, other); });
     }},
    {"captured.other_context", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       WhileCaptured(
           a, CU_STREAM_CAPTURE_MODE_GLOBAL, false,
           [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) { return ContextOf(d, other); });
     }},
    {"captured.event_create", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         CUevent e = nullptr;
         const CUresult result = d.EventCreate(&e, CU_EVENT_DISABLE_TIMING);
         if (e != nullptr) (void)d.EventDestroy(e);
         return result;
       });
     }},
    {"captured.other_is_capturing", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       WhileCaptured(
           a, CU_STREAM_CAPTURE_MODE_GLOBAL, false,
           [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) { return IsCapturing(d, other); });
     }},
    // Asked about by its own handle while the thread has no context: what an allocator asks before each recording.
    {"captured.without_context", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false, [](driver::DriverRef d, CUstream captured, CUstream) {
         return WithoutContext(d, captured, CU_STREAM_CAPTURE_STATUS_ACTIVE);
       });
       WhileCaptured(a, CU_STREAM_CAPTURE_MODE_GLOBAL, false,
                     [](driver::DriverRef d, CUstream, CUstream other) { return WithoutContext(d, other, CU_STREAM_CAPTURE_STATUS_NONE); });
       const CapturedCall record = [](driver::DriverRef d, CUstream captured, CUstream) {
         CUevent e = nullptr;
         CUcontext context = nullptr;
         CUresult result = d.EventCreate(&e, CU_EVENT_DISABLE_TIMING);
         if (result == CUDA_SUCCESS) result = d.CtxPopCurrent(&context);
         if (result != CUDA_SUCCESS) return result;
         result = d.EventRecord(e, captured);
         const CUresult back = d.CtxPushCurrent(context);
         (void)d.EventDestroy(e);
         return result == CUDA_SUCCESS ? back : result;
       };
       StrictAndRelaxed(a, record);
     }},
    {"captured.default_id", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(
           a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) { return IdOf(d, nullptr); });
     }},
    {"captured.own_thread_id", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         return IdOf(d, CU_STREAM_PER_THREAD);
       });
     }},
    {"captured.memory_info", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         std::size_t free_bytes = 0, total = 0;
         return d.MemGetInfo(&free_bytes, &total);
       });
     }},
    {"captured.pinned_alloc", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
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
     }},
    {"captured.other_query", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         return d.StreamQuery(other);
       });
     }},
    {"captured.default_is_capturing", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         return IsCapturing(d, nullptr);
       });
     }},
    {"captured.own_thread_is_capturing", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       StrictAndRelaxed(a, [](driver::DriverRef d, [[maybe_unused]] CUstream captured, [[maybe_unused]] CUstream other) {
         return IsCapturing(d, CU_STREAM_PER_THREAD);
       });
     }},
    {"captured.function_parameters", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       for (const bool relaxed : {false, true}) {
         const Ready ready(a);
         CUlibrary l = nullptr;
         CUkernel k = nullptr;
         CUfunction f = nullptr;
         CUstream s = nullptr;
         CUgraph g = nullptr;
         std::size_t offset = 0;
         std::size_t size = 0;
         a.Prepare(a.d.LibraryLoadData(&l, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
         a.Prepare(a.d.LibraryGetKernel(&k, l, "fill"));
         a.Prepare(a.d.KernelGetFunction(&f, k));
         a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
         a.Prepare(a.d.StreamBeginCapture(s, relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL));
         const CUresult of_function = a.d.FuncGetParamInfo(f, 0, &offset, &size);
         const CUresult of_kernel = a.d.KernelGetParamInfo(k, 0, &offset, &size);
         a(of_function == CUDA_SUCCESS ? of_kernel : of_function);
         a(a.d.StreamEndCapture(s, &g));
         if (g != nullptr) (void)a.d.GraphDestroy(g);
         (void)a.d.StreamDestroy(s);
         (void)a.d.LibraryUnload(l);
       }
     }},
    {"captured.node_that_a_call_becomes", "SUCCESS 1 1 SUCCESS 1 1 SUCCESS 2 1 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       CUgraph shown = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAlloc(&p, 64));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUgraphNode seen[2] = {};
       for (CUgraphNode& one : seen) {
         a(a.d.MemsetD8Async(p, 0, 64, s));
         CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
         const CUgraphNode* nodes = nullptr;
         std::size_t count = 0;
#if CUDA_VERSION >= 13000
         const CUgraphEdgeData* edges = nullptr;
         (void)a.d.StreamGetCaptureInfo(s, &status, nullptr, &shown, &nodes, &edges, &count);
#else
         (void)a.d.StreamGetCaptureInfo(s, &status, nullptr, &shown, &nodes, &count);
#endif
         a.Value(status);
         a.Value(static_cast<long long>(count));
         if (count == 1) one = nodes[0];
       }
       a(a.d.StreamEndCapture(s, &g));
       CUgraphNode made[2] = {};
       std::size_t count = 2;
       (void)a.d.GraphGetNodes(g, made, &count);
       a.Value(static_cast<long long>(count));
       a.Value((made[0] == seen[0] && made[1] == seen[1]) || (made[0] == seen[1] && made[1] == seen[0]));
       a.Value(shown == g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
       (void)a.d.MemFree(p);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::captured_stream_questions

namespace cuaudit::contract {
std::span<const Question> CapturedStreamQuestions() { return captured_stream_questions::kQuestions; }
}  // namespace cuaudit::contract
