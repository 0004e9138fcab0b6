// SPDX-License-Identifier: MIT
#include <thread>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::error_questions {
namespace {

constexpr Question kQuestions[] = {
    {"error.none_at_first",
     [](Asker& a) {
       a(cudaGetLastError());
       a(cudaPeekAtLastError());
     }},
    {"error.get_clears",
     [](Asker& a) {
       a(cudaMalloc(nullptr, 16));
       a(cudaGetLastError());
       a(cudaGetLastError());
     }},
    {"error.peek_keeps",
     [](Asker& a) {
       a(cudaMalloc(nullptr, 16));
       a(cudaPeekAtLastError());
       a(cudaPeekAtLastError());
     }},
    {"error.success_keeps",
     [](Asker& a) {
       int device = 0;
       a(cudaMalloc(nullptr, 16));
       a(cudaGetDevice(&device));
       a(cudaDeviceSynchronize());
       a(cudaPeekAtLastError());
     }},
    {"error.later_replaces",
     [](Asker& a) {
       a(cudaMalloc(nullptr, 16));
       a(cudaSetDevice(4711));
       a(cudaGetLastError());
       a(cudaGetLastError());
     }},
    {"error.per_thread",
     [](Asker& a) {
       a(cudaMalloc(nullptr, 16));
       std::thread([&] {
         a(cudaGetLastError());
         a(cudaSetDevice(4711));
         a(cudaPeekAtLastError());
       }).join();
       a(cudaGetLastError());
     }},
    {"error.not_ready_is_no_last_error",
     [](Asker& a) {
       const cudaEvent_t first = NewEvent(a);
       const cudaEvent_t second = NewEvent(a);
       float ms = 0;
       a(cudaEventElapsedTime(&ms, first, second));
       a(cudaGetLastError());
     }},
    {"error.out_of_memory_is_cleared",
     [](Asker& a) {
       void* p = nullptr;
       a(cudaMalloc(&p, std::size_t{1} << 50));
       a(cudaPeekAtLastError());
       a(cudaGetLastError());
       a(cudaDeviceSynchronize());
       a(cudaGetLastError());
     }},
    {"error.stream_query_garbage_records",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       a(cudaStreamQuery(static_cast<cudaStream_t>(nullptr)));
       a(cudaGetLastError());
     }},
    {"error.null_in_get_attribute_records",
     [](Asker& a) {
       a(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
       a(cudaGetLastError());
     }},
    {"error.pointer_get_attributes_of_null_records",
     [](Asker& a) {
       a(cudaPointerGetAttributes(nullptr, nullptr));
       a(cudaGetLastError());
     }},
    {"error.versions_record",
     [](Asker& a) {
       a(cudaDriverGetVersion(nullptr));
       a(cudaPeekAtLastError());
       a(cudaRuntimeGetVersion(nullptr));
       a(cudaGetLastError());
     }},
    {"error.graph_calls_record",
     [](Asker& a) {
       a(cudaGraphCreate(nullptr, 0));
       a(cudaGetLastError());
       a(cudaGraphDestroy(nullptr));
       a(cudaGetLastError());
     }},
    {"error.event_destroy_null_records",
     [](Asker& a) {
       a(cudaEventDestroy(nullptr));
       a(cudaGetLastError());
     }},
    {"error.set_device_same_keeps",
     [](Asker& a) {
       a(cudaMalloc(nullptr, 16));
       a(cudaSetDevice(0));
       a(cudaGetLastError());
     }},
    {"error.reset_keeps",
     [](Asker& a) {
       a(cudaMalloc(nullptr, 16));
       a(cudaDeviceReset());
       a(cudaGetLastError());
     }},
    {"error.get_device_count_null",
     [](Asker& a) {
       a(cudaGetDeviceCount(nullptr));
       a(cudaGetLastError());
     }},
    {"error.choose_device_null",
     [](Asker& a) {
       int device = -1;
       a(cudaChooseDevice(&device, nullptr));
       a(cudaChooseDevice(nullptr, nullptr));
       a(cudaGetLastError());
     }},
    {"error.launch_failure_is_seen_once",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       a(cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr));
       a(cudaGetLastError());
       a(cudaGetLastError());
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::error_questions

namespace cuaudit::cudart {
std::span<const Question> ErrorQuestions() { return error_questions::kQuestions; }
}  // namespace cuaudit::cudart
