// SPDX-License-Identifier: MIT
// cudaDeviceReset with objects that live: what their handles are worth afterwards.
#include <cuda.h>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::reset_questions {
namespace {

constexpr Question kQuestions[] = {
    {"reset.twice",
     [](Asker& a) {
       a(cudaDeviceReset());
       a(cudaDeviceReset());
     }},
    {"reset.before_any_call",
     [](Asker& a) {
       a(cudaDeviceReset());
       void* block = nullptr;
       a(cudaMalloc(&block, 16));
     }},
    {"reset.deactivates",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       a(cudaDeviceReset());
       void* function = nullptr;
       a.Prepare(cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &function, cudaEnableDefault, nullptr));
       unsigned flags = 0;
       int active = -1;
       a.Value(std::bit_cast<CUresult (*)(CUdevice, unsigned*, int*)>(function)(0, &flags, &active));
       a.Value(active);
       CUcontext current = nullptr;
       a.Prepare(cudaGetDriverEntryPoint("cuCtxGetCurrent", &function, cudaEnableDefault, nullptr));
       a.Value(std::bit_cast<CUresult (*)(CUcontext*)>(function)(&current));
       a.Value(current != nullptr);
     }},
    {"reset.memory_is_gone",
     [](Asker& a) {
       void* const block = NewBlock(a);
       a(cudaDeviceReset());
       a(cudaFree(block));
       a(cudaGetLastError());
     }},
    {"reset.stream_is_gone",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaDeviceReset());
       a(cudaStreamDestroy(stream));
     }},
    {"reset.stream_query_after",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaDeviceReset());
       a(cudaStreamQuery(stream));
     }},
    {"reset.event_is_gone",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       a(cudaDeviceReset());
       a(cudaEventDestroy(event));
     }},
    {"reset.event_record_after",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       a(cudaDeviceReset());
       a(cudaEventRecord(event, nullptr));
     }},
    {"reset.host_memory_is_gone",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaMallocHost(&host, 4096));
       a(cudaDeviceReset());
       a(cudaFreeHost(host));
     }},
    {"reset.graph_lives",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphNode_t node = nullptr;
       a.Prepare(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
       a(cudaDeviceReset());
       std::size_t count = 0;
       a(cudaGraphGetNodes(graph, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaGraphDestroy(graph));
     }},
    {"reset.exec_after",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphNode_t node = nullptr;
       a.Prepare(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
       cudaGraphExec_t exec = nullptr;
       a.Prepare(cudaGraphInstantiate(&exec, graph, 0));
       a(cudaDeviceReset());
       a(cudaGraphExecDestroy(exec));
     }},
    {"reset.device_is_kept",
     [](Asker& a) {
       a(cudaSetDevice(0));
       a(cudaDeviceReset());
       int device = -1;
       a(cudaGetDevice(&device));
       a.Value(device);
     }},
    {"reset.flags_are_kept",
     [](Asker& a) {
       a(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
       a(cudaDeviceReset());
       unsigned flags = 77;
       a(cudaGetDeviceFlags(&flags));
       a.Value(flags);
     }},
    {"reset.limits_are_not",
     [](Asker& a) {
       a(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
       a(cudaDeviceReset());
       std::size_t value = 0;
       a(cudaDeviceGetLimit(&value, cudaLimitStackSize));
       a.Value(static_cast<long long>(value));
     }},
    {"reset.while_capturing",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
       a(cudaDeviceReset());
       a(cudaDeviceSynchronize());
     }},
    {"reset.library_is_gone",
     [](Asker& a) {
       cudaLibrary_t library = nullptr;
       a.Prepare(cudaLibraryLoadData(&library, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry plain()\n{\n ret;\n}\n",
                                     nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(cudaDeviceReset());
       cudaKernel_t kernel = nullptr;
       a(cudaLibraryGetKernel(&kernel, library, "plain"));
       a(cudaLibraryUnload(library));
     }},
    {"reset.pool_after",
     [](Asker& a) {
       cudaMemPoolProps wanted{};
       wanted.allocType = cudaMemAllocationTypePinned;
       wanted.location = {cudaMemLocationTypeDevice, 0};
       cudaMemPool_t pool = nullptr;
       a.Prepare(cudaMemPoolCreate(&pool, &wanted));
       a(cudaDeviceReset());
       a(cudaMemPoolDestroy(pool));
     }},
    {"reset.then_everything_again",
     [](Asker& a) {
       NewStream(a);
       a(cudaDeviceReset());
       const cudaStream_t stream = NewStream(a);
       void* const block = NewBlock(a);
       a(cudaMemsetAsync(block, 0, 64, stream));
       a(cudaStreamSynchronize(stream));
       a(cudaFree(block));
       a(cudaStreamDestroy(stream));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::reset_questions

namespace cuaudit::cudart {
std::span<const Question> ResetQuestions() { return reset_questions::kQuestions; }
}  // namespace cuaudit::cudart
