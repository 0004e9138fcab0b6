// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::event_questions {
namespace {

constexpr Question kQuestions[] = {
    {"event.create_destroy", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       a(a.d.EventCreate(&e, 0));
       a(a.d.EventDestroy(e));
     }},
    {"event.create_bad_flags", "INVALID_VALUE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       a(a.d.EventCreate(&e, 0x100));
       a(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS));
     }},
    {"event.destroy_twice", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.EventDestroy(e));
       a(a.d.EventDestroy(e));
     }},
    {"event.destroy_null", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.EventDestroy(nullptr));
     }},
    {"event.unrecorded", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.EventQuery(e));
       a(a.d.EventSynchronize(e));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
    {"event.record_and_wait", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.EventRecord(e, s));
       a(a.d.EventSynchronize(e));
       a(a.d.EventQuery(e));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
    {"event.elapsed", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       CUevent f = nullptr;
       float ms = -1;
       a.Prepare(a.d.EventCreate(&f, 0));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.EventRecord(f, s));
       a.Prepare(a.d.StreamSynchronize(s));
       a(a.d.EventElapsedTime(&ms, e, f));
       a.Value(ms >= 0);
       (void)a.d.EventDestroy(f);
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
    {"event.elapsed_unrecorded", "INVALID_HANDLE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       float ms = 0;
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.StreamSynchronize(s));
       CUevent f = nullptr;
       a.Prepare(a.d.EventCreate(&f, 0));
       a(a.d.EventElapsedTime(&ms, e, f));
       (void)a.d.EventDestroy(f);
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
    {"event.elapsed_without_timing", "INVALID_HANDLE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       CUevent f = nullptr;
       float ms = 0;
       a.Prepare(a.d.EventCreate(&f, CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.EventRecord(f, s));
       a.Prepare(a.d.StreamSynchronize(s));
       a(a.d.EventElapsedTime(&ms, e, f));
       (void)a.d.EventDestroy(f);
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
    {"event.wait_unrecorded", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.StreamWaitEvent(s, e, 0));
       a(a.d.StreamSynchronize(s));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
    {"event.wait_bad_flags", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.StreamWaitEvent(s, e, 0x80));
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
    {"event.wait_null", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamWaitEvent(s, nullptr, 0));
       (void)a.d.StreamDestroy(s);
     }},
    {"event.record_null", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.EventRecord(nullptr, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"event.query_destroyed", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.EventDestroy(e));
       a(a.d.EventQuery(e));
     }},
    {"event.destroy_while_pending", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.EventRecord(e, s));
       a(a.d.EventDestroy(e));
       a(a.d.StreamSynchronize(s));
       (void)a.d.StreamDestroy(s);
     }},
    {"event.foreign_context", "INVALID_HANDLE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       CUcontext c = nullptr;
       CUstream t = nullptr;
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.StreamCreate(&t, 0));
       a(a.d.EventRecord(e, t));
       (void)a.d.CtxDestroy(c);
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::event_questions

namespace cuaudit::contract {
std::span<const Question> EventQuestions() { return event_questions::kQuestions; }
}  // namespace cuaudit::contract
