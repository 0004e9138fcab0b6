// SPDX-License-Identifier: MIT
// What an event leads to that was recorded while a stream is captured: into the capture, into a node, or, once that is over, nowhere.
#include "suites/contract/question.h"

namespace cuaudit::contract::captured_event_questions {
namespace {

// What becomes of another stream that waits for the event which `record` leaves behind in a relaxed capture.
void AfterRecord(Asker& a, void (*record)(Asker& asker, CUcontext context, CUstream captured, CUevent e)) {
  const Ready ready(a);
  CUstream captured = nullptr;
  CUstream other = nullptr;
  CUevent e = nullptr;
  CUgraph g = nullptr;
  a.Prepare(a.d.StreamCreate(&captured, CU_STREAM_NON_BLOCKING));
  a.Prepare(a.d.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
  a.Prepare(a.d.EventCreate(&e, 0));
  a.Prepare(a.d.EventRecord(e, other));
  a.Prepare(a.d.StreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  record(a, ready.context, captured, e);
  a(a.d.StreamWaitEvent(other, e, 0));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  (void)a.d.StreamIsCapturing(other, &status);
  a.Value(status);
  a(a.d.StreamEndCapture(captured, &g));
  if (g != nullptr) (void)a.d.GraphDestroy(g);
  (void)a.d.EventDestroy(e);
  (void)a.d.StreamDestroy(other);
  (void)a.d.StreamDestroy(captured);
}

constexpr Question kQuestions[] = {
    {"captured.external_record", "SUCCESS SUCCESS 0 SUCCESS", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         b(b.d.EventRecordWithFlags(e, captured, CU_EVENT_RECORD_EXTERNAL));
       });
     }},
    {"captured.external_record_after_record", "SUCCESS SUCCESS SUCCESS 1 SUCCESS", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.EventRecordWithFlags(e, captured, CU_EVENT_RECORD_EXTERNAL));
       });
     }},
    {"captured.external_wait_after_record", "SUCCESS SUCCESS SUCCESS 1 SUCCESS", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamWaitEvent(captured, e, CU_EVENT_WAIT_EXTERNAL));
       });
     }},
    {"captured.context_record", "STREAM_CAPTURE_UNSUPPORTED SUCCESS 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a,
                   [](Asker& b, CUcontext context, [[maybe_unused]] CUstream captured, CUevent e) { b(b.d.CtxRecordEvent(context, e)); });
     }},
    {"captured.context_record_after_record", "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext context, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.CtxRecordEvent(context, e));
       });
     }},
    {"captured.invalidated_event", "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamSynchronize(captured));
       });
     }},
    {"captured.invalidated_event_of_its_own",
     "SUCCESS STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamSynchronize(captured));
         b(b.d.StreamWaitEvent(captured, e, 0));
       });
     }},
    {"captured.invalidated_event_query", "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
     Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamSynchronize(captured));
         b(b.d.EventQuery(e));
       });
     }},
    {"captured.invalidated_event_recorded_anew",
     "SUCCESS STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamSynchronize(captured));
         b(b.d.EventRecord(e, captured));
       });
     }},
    {"captured.invalidated_event_for_a_context",
     "SUCCESS STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext context, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamSynchronize(captured));
         b(b.d.CtxWaitEvent(context, e));
       });
     }},
    {"captured.ended_event", "SUCCESS SUCCESS INVALID_VALUE 0 ILLEGAL_STATE", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, [[maybe_unused]] CUcontext context, CUstream captured, CUevent e) {
         CUgraph g = nullptr;
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamEndCapture(captured, &g));
         if (g != nullptr) (void)b.d.GraphDestroy(g);
       });
     }},
    {"captured.ended_event_synchronize", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE 0 ILLEGAL_STATE", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, [[maybe_unused]] CUcontext context, CUstream captured, CUevent e) {
         CUgraph g = nullptr;
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamEndCapture(captured, &g));
         if (g != nullptr) (void)b.d.GraphDestroy(g);
         b(b.d.EventSynchronize(e));
       });
     }},
    {"captured.ended_event_for_a_context", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE 0 ILLEGAL_STATE", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, [[maybe_unused]] CUcontext context, CUstream captured, CUevent e) {
         CUgraph g = nullptr;
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamEndCapture(captured, &g));
         if (g != nullptr) (void)b.d.GraphDestroy(g);
         b(b.d.CtxWaitEvent(context, e));
       });
     }},
    {"captured.ended_event_in_the_next_capture", "SUCCESS SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
     Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, [[maybe_unused]] CUcontext context, CUstream captured, CUevent e) {
         CUgraph g = nullptr;
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamEndCapture(captured, &g));
         if (g != nullptr) (void)b.d.GraphDestroy(g);
         b(b.d.StreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
         b(b.d.StreamWaitEvent(captured, e, 0));
       });
     }},
    {"captured.invalidated_event_synchronize",
     "SUCCESS STREAM_CAPTURE_UNSUPPORTED INVALID_VALUE INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, [[maybe_unused]] CUcontext context, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamSynchronize(captured));
         b(b.d.EventSynchronize(e));
       });
     }},
    {"captured.queried_event", "SUCCESS CAPTURED_EVENT INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, [[maybe_unused]] CUcontext context, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.EventQuery(e));
       });
     }},
    {"captured.invalidated_event_in_another_capture",
     "SUCCESS STREAM_CAPTURE_UNSUPPORTED SUCCESS INVALID_VALUE STREAM_CAPTURE_INVALIDATED INVALID_VALUE 0 STREAM_CAPTURE_INVALIDATED",
     Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, [[maybe_unused]] CUcontext context, CUstream captured, CUevent e) {
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamSynchronize(captured));
         CUstream third = nullptr;
         CUgraph g = nullptr;
         (void)b.d.StreamCreate(&third, CU_STREAM_NON_BLOCKING);
         b(b.d.StreamBeginCapture(third, CU_STREAM_CAPTURE_MODE_RELAXED));
         b(b.d.StreamWaitEvent(third, e, 0));
         b(b.d.StreamEndCapture(third, &g));
         if (g != nullptr) (void)b.d.GraphDestroy(g);
         (void)b.d.StreamDestroy(third);
       });
     }},
    {"captured.ended_event_elapsed", "SUCCESS SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE 0 ILLEGAL_STATE", Manner::Plain,
     [](Asker& a) {
       AfterRecord(a, [](Asker& b, CUcontext, CUstream captured, CUevent e) {
         CUgraph g = nullptr;
         CUevent f = nullptr;
         float milliseconds = 0;
         b.Prepare(b.d.EventCreate(&f, 0));
         b(b.d.EventRecord(e, captured));
         b(b.d.StreamEndCapture(captured, &g));
         if (g != nullptr) (void)b.d.GraphDestroy(g);
         b(b.d.EventRecord(f, captured));
         (void)b.d.StreamSynchronize(captured);
         b(b.d.EventElapsedTime(&milliseconds, e, f));
         b(b.d.EventElapsedTime(&milliseconds, f, e));
         (void)b.d.EventDestroy(f);
       });
     }},
};

}  // namespace
}  // namespace cuaudit::contract::captured_event_questions

namespace cuaudit::contract {
std::span<const Question> CapturedEventQuestions() { return captured_event_questions::kQuestions; }
}  // namespace cuaudit::contract
