// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::capture_questions {
namespace {

void Bump(void* argument) { ++*static_cast<int*>(argument); }
void Called(CUstream, CUresult, void*) {}

constexpr Question kQuestions[] = {
    {"capture.empty", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamEndCapture(s, &g));
       a.Value(g != nullptr);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.status", "SUCCESS 1 SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUstreamCaptureStatus status{};
       a(a.d.StreamIsCapturing(s, &status));
       a.Value(status);
       a.Prepare(a.d.StreamEndCapture(s, &g));
       a(a.d.StreamIsCapturing(s, &status));
       a.Value(status);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.legacy_stream", "STREAM_CAPTURE_UNSUPPORTED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.StreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
     }},
    {"capture.twice", "ILLEGAL_STATE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.end_without_begin", "ILLEGAL_STATE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a(a.d.StreamEndCapture(s, &g));
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.bad_mode", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamBeginCapture(s, Beyond<CUstreamCaptureMode>(9)));
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.host_function", "SUCCESS SUCCESS 1 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       int ran = 0;
       std::size_t count = 0;
       a(a.d.LaunchHostFunc(s, Bump, &ran));
       a(a.d.StreamEndCapture(s, &g));
       a.Prepare(a.d.GraphGetNodes(g, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a.Value(ran);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.alloc_is_unsafe", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUdeviceptr p = 0;
       a(a.d.MemAlloc(&p, 16));
       a(a.d.StreamEndCapture(s, &g));
       a.Value(g == nullptr);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.alloc_when_relaxed", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a(a.d.MemAlloc(&p, 16));
       a(a.d.StreamEndCapture(s, &g));
       (void)a.d.MemFree(p);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.synchronize", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamSynchronize(s));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.query", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamQuery(s));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.callback", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamAddCallback(s, Called, nullptr, 0));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.context_synchronize", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.CtxSynchronize(nullptr));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.after_invalidation", "STREAM_CAPTURE_INVALIDATED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       int ran = 0;
       (void)a.d.StreamSynchronize(s);
       a(a.d.LaunchHostFunc(s, Bump, &ran));
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.invalidated_status", "SUCCESS 2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUstreamCaptureStatus status{};
       (void)a.d.StreamSynchronize(s);
       a(a.d.StreamIsCapturing(s, &status));
       a.Value(status);
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.fork_join", "SUCCESS 2 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUstream t = nullptr;
       CUevent e = nullptr;
       int ran = 0;
       std::size_t nodes = 0;
       std::size_t edges = 0;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.LaunchHostFunc(s, Bump, &ran));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.StreamWaitEvent(t, e, 0));
       a.Prepare(a.d.LaunchHostFunc(t, Bump, &ran));
       a.Prepare(a.d.EventRecord(e, t));
       a.Prepare(a.d.StreamWaitEvent(s, e, 0));
       a(a.d.StreamEndCapture(s, &g));
       a.Prepare(a.d.GraphGetNodes(g, nullptr, &nodes));
       a.Value(static_cast<long long>(nodes));
       a.Prepare(a.d.GraphGetEdges(g, nullptr, nullptr, nullptr, &edges));
       a.Value(static_cast<long long>(edges));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(t);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.unjoined", "STREAM_CAPTURE_UNJOINED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUstream t = nullptr;
       CUevent e = nullptr;
       int ran = 0;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.StreamWaitEvent(t, e, 0));
       a.Prepare(a.d.LaunchHostFunc(t, Bump, &ran));
       a(a.d.StreamEndCapture(s, &g));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(t);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.only_waited", "SUCCESS 2 SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       CUstream t = nullptr;
       CUevent e = nullptr;
       int ran = 0;
       std::size_t nodes = 0;
       CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a.Prepare(a.d.LaunchHostFunc(s, Bump, &ran));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.StreamWaitEvent(t, e, 0));
       a.Prepare(a.d.LaunchHostFunc(s, Bump, &ran));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) a.Prepare(a.d.GraphGetNodes(g, nullptr, &nodes));
       a.Value(static_cast<long long>(nodes));
       a(a.d.StreamIsCapturing(t, &status));
       a.Value(static_cast<long long>(status));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(t);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.legacy_asked", "STREAM_CAPTURE_IMPLICIT STREAM_CAPTURE_IMPLICIT SUCCESS 1 SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_DEFAULT));
       CUgraph g = nullptr;
       CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamIsCapturing(nullptr, &status));
       cuuint64_t id = 0;
       a(a.d.StreamGetCaptureInfo(nullptr, &status, &id, nullptr, nullptr, nullptr, nullptr));
       a(a.d.StreamIsCapturing(s, &status));
       a.Value(static_cast<long long>(status));
       a(a.d.StreamEndCapture(s, &g));
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.unmatched", "STREAM_CAPTURE_UNMATCHED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       CUstream t = nullptr;
       CUevent e = nullptr;
       CUgraph h = nullptr;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.StreamWaitEvent(t, e, 0));
       a(a.d.StreamEndCapture(t, &h));
       (void)a.d.StreamEndCapture(s, &g);
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(t);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.isolation", "STREAM_CAPTURE_ISOLATION", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamWaitEvent(s, e, 0));
       (void)a.d.StreamEndCapture(s, &g);
       (void)a.d.EventDestroy(e);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.event_query", "CAPTURED_EVENT", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUgraph g = nullptr;
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a.Prepare(a.d.EventRecord(e, s));
       a(a.d.EventQuery(e));
       (void)a.d.StreamEndCapture(s, &g);
       (void)a.d.EventDestroy(e);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.implicit", "STREAM_CAPTURE_IMPLICIT", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       int ran = 0;
       a.Prepare(a.d.StreamCreate(&s, 0));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a(a.d.LaunchHostFunc(nullptr, Bump, &ran));
       (void)a.d.StreamEndCapture(s, &g);
       if (g != nullptr) (void)a.d.GraphDestroy(g);
       (void)a.d.StreamDestroy(s);
     }},
    {"capture.exchange_mode", "SUCCESS 0 2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
       a(a.d.ThreadExchangeStreamCaptureMode(&mode));
       a.Value(mode);
       mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
       a.Prepare(a.d.ThreadExchangeStreamCaptureMode(&mode));
       a.Value(mode);
     }},
    {"capture.destroy_stream", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamDestroy(s));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::capture_questions

namespace cuaudit::contract {
std::span<const Question> CaptureQuestions() { return capture_questions::kQuestions; }
}  // namespace cuaudit::contract
