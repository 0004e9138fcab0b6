// SPDX-License-Identifier: MIT
// Streams and events.
#include "suites/cudart/question.h"

namespace cuaudit::cudart::stream_questions {
namespace {

void CUDART_CB NoteStatus(cudaStream_t, cudaError_t status, void* where) { *static_cast<int*>(where) = 100 + static_cast<int>(status); }

constexpr Question kQuestions[] = {
    {"stream.create_null",
     [](Asker& a) {
       a(cudaStreamCreate(nullptr));
       a(cudaStreamCreateWithFlags(nullptr, 0));
       a(cudaStreamCreateWithPriority(nullptr, 0, 0));
     }},
    {"stream.create_bad_flags",
     [](Asker& a) {
       cudaStream_t stream = nullptr;
       a(cudaStreamCreateWithFlags(&stream, 77));
       a(cudaStreamCreateWithPriority(&stream, 77, 0));
     }},
    {"stream.flags",
     [](Asker& a) {
       cudaStream_t plain = nullptr;
       a.Prepare(cudaStreamCreate(&plain));
       unsigned flags = 77;
       a(cudaStreamGetFlags(plain, &flags));
       a.Value(flags);
       a(cudaStreamGetFlags(NewStream(a), &flags));
       a.Value(flags);
       a(cudaStreamGetFlags(plain, nullptr));
     }},
    {"stream.flags_of_default",
     [](Asker& a) {
       unsigned flags = 77;
       a(cudaStreamGetFlags(nullptr, &flags));
       a.Value(flags);
       a(cudaStreamGetFlags(cudaStreamLegacy, &flags));
       a.Value(flags);
       a(cudaStreamGetFlags(cudaStreamPerThread, &flags));
       a.Value(flags);
     }},
    {"stream.priority",
     [](Asker& a) {
       int least = 0;
       int greatest = 0;
       a.Prepare(cudaDeviceGetStreamPriorityRange(&least, &greatest));
       for (const int wanted : {least, greatest, greatest - 10, least + 10}) {
         cudaStream_t stream = nullptr;
         int priority = 77;
         a(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, wanted));
         a(cudaStreamGetPriority(stream, &priority));
         a.Value(priority);
       }
     }},
    {"stream.priority_of_default",
     [](Asker& a) {
       int priority = 77;
       a(cudaStreamGetPriority(nullptr, &priority));
       a.Value(priority);
       a(cudaStreamGetPriority(cudaStreamPerThread, &priority));
       a.Value(priority);
       a(cudaStreamGetPriority(nullptr, nullptr));
     }},
    {"stream.destroy_null",
     [](Asker& a) {
       a(cudaStreamDestroy(nullptr));
       a(cudaGetLastError());
     }},
    {"stream.destroy_legacy", [](Asker& a) { a(cudaStreamDestroy(cudaStreamLegacy)); }},
    {"stream.destroy_per_thread", [](Asker& a) { a(cudaStreamDestroy(cudaStreamPerThread)); }},
    {"stream.destroy_twice",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamDestroy(stream));
       a(cudaStreamDestroy(stream));
     }},
    {"stream.destroy_invented", [](Asker& a) { a(cudaStreamDestroy(static_cast<cudaStream_t>(Invented()))); }},
    {"stream.query_destroyed",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamDestroy(stream));
       a(cudaStreamQuery(stream));
     }},
    {"stream.synchronize_destroyed",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamDestroy(stream));
       a(cudaStreamSynchronize(stream));
     }},
    {"stream.defaults_are_idle",
     [](Asker& a) {
       a(cudaStreamQuery(nullptr));
       a(cudaStreamQuery(cudaStreamLegacy));
       a(cudaStreamQuery(cudaStreamPerThread));
       a(cudaStreamSynchronize(nullptr));
       a(cudaStreamSynchronize(cudaStreamLegacy));
       a(cudaStreamSynchronize(cudaStreamPerThread));
     }},
    {"stream.ids",
     [](Asker& a) {
       unsigned long long one = 0;
       unsigned long long two = 0;
       a(cudaStreamGetId(NewStream(a), &one));
       a(cudaStreamGetId(NewStream(a), &two));
       a.Value(one != two);
       a(cudaStreamGetId(nullptr, &one));
       a(cudaStreamGetId(cudaStreamLegacy, &two));
       a.Value(one == two);
       a(cudaStreamGetId(nullptr, nullptr));
     }},
    {"stream.device",
     [](Asker& a) {
       int device = -1;
       a(cudaStreamGetDevice(NewStream(a), &device));
       a.Value(device);
     }},
    {"stream.device_of_default",
     [](Asker& a) {
       int device = -1;
       a.Prepare(cudaFree(nullptr));
       a(cudaStreamGetDevice(nullptr, &device));
       a.Value(device);
     }},
    {"stream.device_into_nothing", [](Asker& a) { a(cudaStreamGetDevice(NewStream(a), nullptr)); }},
    {"stream.attribute_synchronisation_policy",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       cudaStreamAttrValue value{};
       a(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
       a.Value(value.syncPolicy);
       value.syncPolicy = cudaSyncPolicyYield;
       a(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
       value = {};
       a(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
       a.Value(value.syncPolicy);
     }},
    {"stream.attribute_priority",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       cudaStreamAttrValue value{};
       value.priority = -1;
       a(cudaStreamSetAttribute(stream, cudaStreamAttributePriority, &value));
       int priority = 77;
       a(cudaStreamGetPriority(stream, &priority));
       a.Value(priority);
     }},
    {"stream.attribute_unknown",
     [](Asker& a) {
       cudaStreamAttrValue value{};
       a(cudaStreamGetAttribute(NewStream(a), Beyond<cudaStreamAttrID>(77), &value));
       a(cudaStreamSetAttribute(NewStream(a), Beyond<cudaStreamAttrID>(77), &value));
     }},
    {"stream.attribute_of_kernels",
     [](Asker& a) {
       cudaStreamAttrValue value{};
       a(cudaStreamGetAttribute(NewStream(a), cudaLaunchAttributeCooperative, &value));
       a(cudaStreamSetAttribute(NewStream(a), cudaLaunchAttributeCooperative, &value));
     }},
    {"stream.attribute_into_nothing",
     [](Asker& a) { a(cudaStreamGetAttribute(NewStream(a), cudaStreamAttributeSynchronizationPolicy, nullptr)); }},
    {"stream.attribute_from_nothing",
     [](Asker& a) { a(cudaStreamSetAttribute(NewStream(a), cudaStreamAttributeSynchronizationPolicy, nullptr)); }},
    {"stream.copy_attributes",
     [](Asker& a) {
       const cudaStream_t from = NewStream(a);
       const cudaStream_t to = NewStream(a);
       cudaStreamAttrValue value{};
       value.syncPolicy = cudaSyncPolicySpin;
       a.Prepare(cudaStreamSetAttribute(from, cudaStreamAttributeSynchronizationPolicy, &value));
       a(cudaStreamCopyAttributes(to, from));
       value = {};
       a(cudaStreamGetAttribute(to, cudaStreamAttributeSynchronizationPolicy, &value));
       a.Value(value.syncPolicy);
       a(cudaStreamCopyAttributes(to, nullptr));
     }},
    {"stream.wait_event_bad",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       const cudaEvent_t event = NewEvent(a);
       a(cudaStreamWaitEvent(stream, event, 0));
       a(cudaStreamWaitEvent(stream, nullptr, 0));
       a(cudaStreamWaitEvent(stream, event, 77));
       a(cudaStreamWaitEvent(nullptr, event, 0));
     }},
    {"stream.wait_event_external_outside_capture",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamWaitEvent(stream, NewEvent(a), cudaEventWaitExternal));
     }},
    {"stream.callback",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       int seen = 0;
       a(cudaStreamAddCallback(stream, NoteStatus, &seen, 0));
       a(cudaStreamSynchronize(stream));
       a.Value(seen);
       a(cudaStreamAddCallback(stream, nullptr, &seen, 0));
       a(cudaStreamAddCallback(stream, NoteStatus, &seen, 1));
     }},
    {"stream.host_function",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       int seen = 0;
       a(cudaLaunchHostFunc(
           stream, [](void* where) { *static_cast<int*>(where) = 7; }, &seen));
       a(cudaStreamSynchronize(stream));
       a.Value(seen);
       a(cudaLaunchHostFunc(stream, nullptr, nullptr));
     }},
    {"stream.call_in_host_function",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       cudaError_t seen[4] = {};
       a(cudaLaunchHostFunc(
           stream,
           [](void* where) {
             void* block = nullptr;
             static_cast<cudaError_t*>(where)[0] = cudaMalloc(&block, 16);
             static_cast<cudaError_t*>(where)[1] = cudaGetLastError();
             static_cast<cudaError_t*>(where)[2] = cudaDeviceSynchronize();
             static_cast<cudaError_t*>(where)[3] = cudaStreamQuery(nullptr);
           },
           seen));
       a(cudaStreamSynchronize(stream));
       for (const cudaError_t code : seen) a(code);
       a(cudaGetLastError());
     }},
    {"stream.attach",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       void* block = nullptr;
       a.Prepare(cudaMallocManaged(&block, 4096, cudaMemAttachHost));
       a(cudaStreamAttachMemAsync(stream, block, 0, cudaMemAttachSingle));
       a(cudaStreamAttachMemAsync(stream, block, 4096, cudaMemAttachGlobal));
       a(cudaStreamAttachMemAsync(stream, block, 100, cudaMemAttachSingle));
       a(cudaStreamAttachMemAsync(stream, NewBlock(a), 0, cudaMemAttachSingle));
       a(cudaStreamAttachMemAsync(stream, block, 0, 77));
     }},
    {"stream.blocking_follows_default",
     [](Asker& a) {
       cudaStream_t stream = nullptr;
       a.Prepare(cudaStreamCreate(&stream));
       char* const block = NewBlock(a);
       a(cudaMemsetAsync(block, 1, 4096, nullptr));
       a(cudaMemsetAsync(block, 2, 4096, stream));
       a(cudaStreamSynchronize(stream));
       char seen = 0;
       a(cudaMemcpy(&seen, block, 1, cudaMemcpyDeviceToHost));
       a.Value(seen);
     }},
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
}  // namespace cuaudit::cudart::stream_questions

namespace cuaudit::cudart {
std::span<const Question> StreamQuestions() { return stream_questions::kQuestions; }
}  // namespace cuaudit::cudart
