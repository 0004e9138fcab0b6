// SPDX-License-Identifier: MIT
#include "suites/cudart/question.h"

namespace cuaudit::cudart::event_questions {
namespace {

constexpr Question kQuestions[] = {
    {"event.create_null",
     [](Asker& a) {
       a(cudaEventCreate(nullptr));
       a(cudaEventCreateWithFlags(nullptr, 0));
     }},
    {"event.create_bad_flags",
     [](Asker& a) {
       cudaEvent_t event = nullptr;
       a(cudaEventCreateWithFlags(&event, 0x100));
       a(cudaEventCreateWithFlags(&event, cudaEventInterprocess));
       a(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
     }},
    {"event.unrecorded",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       a(cudaEventQuery(event));
       a(cudaEventSynchronize(event));
     }},
    {"event.recorded",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       a(cudaEventRecord(event, nullptr));
       a(cudaEventSynchronize(event));
       a(cudaEventQuery(event));
     }},
    {"event.null",
     [](Asker& a) {
       a(cudaEventRecord(nullptr, nullptr));
       a(cudaEventQuery(nullptr));
       a(cudaEventSynchronize(nullptr));
       a(cudaEventDestroy(nullptr));
     }},
    {"event.destroyed_twice",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       a(cudaEventDestroy(event));
       a(cudaEventDestroy(event));
     }},
    {"event.query_destroyed",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       a(cudaEventDestroy(event));
       a(cudaEventQuery(event));
     }},
    {"event.invented", [](Asker& a) { a(cudaEventQuery(static_cast<cudaEvent_t>(Invented()))); }},
    {"event.elapsed",
     [](Asker& a) {
       const cudaEvent_t first = NewEvent(a);
       const cudaEvent_t second = NewEvent(a);
       a(cudaEventRecord(first, nullptr));
       a(cudaEventRecord(second, nullptr));
       a(cudaDeviceSynchronize());
       float ms = -1;
       a(cudaEventElapsedTime(&ms, first, second));
       a.Value(ms >= 0);
       a(cudaEventElapsedTime(nullptr, first, second));
     }},
    {"event.elapsed_unrecorded",
     [](Asker& a) {
       const cudaEvent_t first = NewEvent(a);
       const cudaEvent_t second = NewEvent(a);
       float ms = 0;
       a(cudaEventElapsedTime(&ms, first, second));
       a(cudaEventRecord(first, nullptr));
       a(cudaEventSynchronize(first));
       a(cudaEventElapsedTime(&ms, first, second));
       a(cudaEventElapsedTime(&ms, first, nullptr));
     }},
    {"event.elapsed_without_timing",
     [](Asker& a) {
       const cudaEvent_t first = NewEvent(a, cudaEventDisableTiming);
       const cudaEvent_t second = NewEvent(a, cudaEventDisableTiming);
       a(cudaEventRecord(first, nullptr));
       a(cudaEventRecord(second, nullptr));
       a(cudaDeviceSynchronize());
       float ms = 0;
       a(cudaEventElapsedTime(&ms, first, second));
     }},
    {"event.across_streams",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       const cudaStream_t one = NewStream(a);
       const cudaStream_t two = NewStream(a);
       a(cudaEventRecord(event, one));
       a(cudaStreamWaitEvent(two, event, 0));
       a(cudaEventRecord(event, two));
       a(cudaStreamSynchronize(two));
       a(cudaEventQuery(event));
     }},
    {"event.record_with_flags",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       a(cudaEventRecordWithFlags(event, nullptr, cudaEventRecordDefault));
       a(cudaEventRecordWithFlags(event, NewStream(a), cudaEventRecordExternal));
       a(cudaEventRecordWithFlags(event, nullptr, 77));
     }},
    {"event.record_on_destroyed_stream",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamDestroy(stream));
       a(cudaEventRecord(event, stream));
     }},
    {"event.outlives_its_stream",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       const cudaStream_t stream = NewStream(a);
       a(cudaEventRecord(event, stream));
       a(cudaStreamDestroy(stream));
       a(cudaEventSynchronize(event));
       a(cudaEventDestroy(event));
     }},
    {"event.blocking",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a, cudaEventBlockingSync | cudaEventDisableTiming);
       a(cudaEventRecord(event, nullptr));
       a(cudaEventSynchronize(event));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::event_questions

namespace cuaudit::cudart {
std::span<const Question> EventQuestions() { return event_questions::kQuestions; }
}  // namespace cuaudit::cudart
