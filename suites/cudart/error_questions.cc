// SPDX-License-Identifier: MIT
// Errors: which calls set and clear them, their names and texts.
#include <thread>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::error_questions {
namespace {

void Ask(Asker& a, int from, int to, const char* (*name)(cudaError_t)) {
  for (int code = from; code < to; ++code) a.Text(name(Beyond<cudaError_t>(static_cast<unsigned>(code))));
}

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
    {"name.up_to_100", [](Asker& a) { Ask(a, 0, 100, cudaGetErrorName); }},
    {"name.100_to_300", [](Asker& a) { Ask(a, 100, 300, cudaGetErrorName); }},
    {"name.300_to_700",
     [](Asker& a) {
       Ask(a, 300, 306, cudaGetErrorName);
       Ask(a, 398, 404, cudaGetErrorName);
       Ask(a, 499, 502, cudaGetErrorName);
       Ask(a, 599, 602, cudaGetErrorName);
     }},
    {"name.700_to_1000",
     [](Asker& a) {
       Ask(a, 700, 725, cudaGetErrorName);
       Ask(a, 799, 815, cudaGetErrorName);
       Ask(a, 899, 920, cudaGetErrorName);
       Ask(a, 998, 1001, cudaGetErrorName);
     }},
    {"name.beyond",
     [](Asker& a) {
       Ask(a, 10000, 10002, cudaGetErrorName);
       a.Text(cudaGetErrorName(Beyond<cudaError_t>(0xffffffffU)));
     }},
    {"string.common",
     [](Asker& a) {
       for (const int code : {0, 1, 2, 3, 4, 9, 12, 13, 21, 35, 46, 52, 98, 100, 101, 200, 201, 209, 215, 217, 218})
         Ask(a, code, code + 1, cudaGetErrorString);
     }},
    {"string.rest",
     [](Asker& a) {
       for (const int code : {301, 304, 400, 401, 500, 600, 700, 701, 704, 705, 708, 709, 712, 713, 719, 720, 800, 801})
         Ask(a, code, code + 1, cudaGetErrorString);
     }},
    {"string.capture", [](Asker& a) { Ask(a, 900, 916, cudaGetErrorString); }},
    {"string.unknown", [](Asker& a) { Ask(a, 998, 1001, cudaGetErrorString); }},
    {"version.runtime",
     [](Asker& a) {
       int version = 0;
       a(cudaRuntimeGetVersion(&version));
       a.Value(version);
     }},
    {"version.driver_is_not_older",
     [](Asker& a) {
       int version = 0;
       a(cudaDriverGetVersion(&version));
       a.Value(version >= 13000);
     }},
    {"entry.known",
     [](Asker& a) {
       void* function = nullptr;
       cudaDriverEntryPointQueryResult status{};
       a(cudaGetDriverEntryPoint("cuMemAlloc", &function, cudaEnableDefault, &status));
       a.Value(function != nullptr);
       a.Value(status);
     }},
    {"entry.unknown",
     [](Asker& a) {
       void* function = Invented();
       cudaDriverEntryPointQueryResult status{};
       a(cudaGetDriverEntryPoint("cuNoSuchThing", &function, cudaEnableDefault, &status));
       a.Value(function != nullptr);
       a.Value(status);
       a(cudaGetLastError());
     }},
    {"entry.by_version",
     [](Asker& a) {
       void* old_one = nullptr;
       void* new_one = nullptr;
       cudaDriverEntryPointQueryResult status{};
       a(cudaGetDriverEntryPointByVersion("cuCtxCreate", &old_one, 11000, cudaEnableDefault, &status));
       a.Value(status);
       a(cudaGetDriverEntryPointByVersion("cuCtxCreate", &new_one, 13000, cudaEnableDefault, &status));
       a.Value(status);
       a.Value(old_one != new_one);
     }},
    {"entry.version_not_sufficient",
     [](Asker& a) {
       void* function = Invented();
       cudaDriverEntryPointQueryResult status{};
       a(cudaGetDriverEntryPointByVersion("cuGraphAddNode", &function, 11000, cudaEnableDefault, &status));
       a.Value(status);
       a.Value(function != nullptr);
     }},
    {"entry.null_name",
     [](Asker& a) {
       void* function = nullptr;
       a(cudaGetDriverEntryPoint(nullptr, &function, cudaEnableDefault, nullptr));
     }},
    {"entry.null_function", [](Asker& a) { a(cudaGetDriverEntryPoint("cuMemAlloc", nullptr, cudaEnableDefault, nullptr)); }},
    {"entry.null_status",
     [](Asker& a) {
       void* function = nullptr;
       a(cudaGetDriverEntryPoint("cuMemAlloc", &function, cudaEnableDefault, nullptr));
       a.Value(function != nullptr);
       a(cudaGetDriverEntryPoint("cuNoSuchThing", &function, cudaEnableDefault, nullptr));
     }},
    {"entry.empty_name",
     [](Asker& a) {
       void* function = nullptr;
       cudaDriverEntryPointQueryResult status{};
       a(cudaGetDriverEntryPoint("", &function, cudaEnableDefault, &status));
       a.Value(status);
     }},
    {"entry.bad_flags",
     [](Asker& a) {
       void* function = nullptr;
       cudaDriverEntryPointQueryResult status{};
       a(cudaGetDriverEntryPoint("cuMemAlloc", &function, 77, &status));
     }},
    {"entry.per_thread_stream",
     [](Asker& a) {
       void* plain = nullptr;
       void* thread = nullptr;
       a(cudaGetDriverEntryPoint("cuStreamQuery", &plain, cudaEnableLegacyStream, nullptr));
       a(cudaGetDriverEntryPoint("cuStreamQuery", &thread, cudaEnablePerThreadDefaultStream, nullptr));
       a.Value(plain != thread);
     }},
    {"export.unknown_table",
     [](Asker& a) {
       const void* table = Invented();
       const cudaUUID_t id{};
       a(cudaGetExportTable(&table, &id));
       a.Value(table == nullptr);
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::error_questions

namespace cuaudit::cudart {
std::span<const Question> ErrorQuestions() { return error_questions::kQuestions; }
}  // namespace cuaudit::cudart
