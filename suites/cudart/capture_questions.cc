// SPDX-License-Identifier: MIT
#include <thread>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::capture_questions {
namespace {

cudaStream_t Capturing(Asker& a, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  const cudaStream_t stream = NewStream(a);
  a.Prepare(cudaStreamBeginCapture(stream, mode));
  return stream;
}

void Status(Asker& a, cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  a(cudaStreamIsCapturing(stream, &status));
  a.Value(status);
}

long long Nodes(cudaGraph_t graph) {
  std::size_t count = 0;
  return graph == nullptr || cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess ? -1 : static_cast<long long>(count);
}

// What a call that a capture may forbid answers, and what it leaves of the capture.
template <typename Call>
void While(Asker& a, cudaStreamCaptureMode mode, Call call) {
  const cudaStream_t stream = Capturing(a, mode);
  a(call(stream));
  a(cudaGetLastError());
  Status(a, stream);
  const cudaGraph_t graph = Captured(a, stream);
  a.Value(Nodes(graph));
}

template <typename Call>
void InEveryMode(Asker& a, Call call) {
  for (const cudaStreamCaptureMode mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed})
    While(a, mode, call);
}

constexpr Question kQuestions[] = {
    {"capture.round_trip",
     [](Asker& a) {
       char* const block = NewBlock(a);
       const cudaStream_t stream = NewStream(a);
       Status(a, stream);
       a(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
       Status(a, stream);
       a(cudaMemsetAsync(block, 7, 16, stream));
       a(cudaMemcpyAsync(block + 64, block, 16, cudaMemcpyDeviceToDevice, stream));
       const cudaGraph_t graph = Captured(a, stream);
       a.Value(Nodes(graph));
       Status(a, stream);
       const cudaGraphExec_t exec = Instantiated(a, graph);
       a(cudaGraphLaunch(exec, stream));
       a(cudaStreamSynchronize(stream));
       char seen = 0;
       a(cudaMemcpy(&seen, block + 79, 1, cudaMemcpyDefault));
       a.Value(seen);
     }},
    {"capture.empty",
     [](Asker& a) {
       const cudaStream_t stream = Capturing(a);
       const cudaGraph_t graph = Captured(a, stream);
       a.Value(Nodes(graph));
     }},
    {"capture.begin_bad",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
       a(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
       a(cudaStreamBeginCapture(stream, Beyond<cudaStreamCaptureMode>(7)));
       a(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
       a(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
       Status(a, stream);
     }},
    {"capture.begin_per_thread",
     [](Asker& a) {
       a(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeGlobal));
       cudaGraph_t graph = nullptr;
       a(cudaStreamEndCapture(cudaStreamPerThread, &graph));
     }},
    {"capture.end_without_begin",
     [](Asker& a) {
       cudaGraph_t graph = nullptr;
       a(cudaStreamEndCapture(NewStream(a), &graph));
       a(cudaStreamEndCapture(nullptr, &graph));
       a(cudaStreamEndCapture(NewStream(a), nullptr));
     }},
    {"capture.end_in_other_thread",
     [](Asker& a) {
       const cudaStream_t stream = Capturing(a);
       cudaGraph_t graph = nullptr;
       std::thread([&] { a(cudaStreamEndCapture(stream, &graph)); }).join();
       Status(a, stream);
       a(cudaStreamEndCapture(stream, &graph));
       a.Value(graph != nullptr);
     }},
    {"capture.end_in_other_thread_relaxed",
     [](Asker& a) {
       const cudaStream_t stream = Capturing(a, cudaStreamCaptureModeRelaxed);
       cudaGraph_t graph = nullptr;
       std::thread([&] { a(cudaStreamEndCapture(stream, &graph)); }).join();
       a.Value(graph != nullptr);
     }},
    {"capture.malloc",
     [](Asker& a) {
       InEveryMode(a, [](cudaStream_t) {
         void* block = nullptr;
         return cudaMalloc(&block, 64);
       });
     }},
    {"capture.free", [](Asker& a) { InEveryMode(a, [](cudaStream_t) { return cudaFree(nullptr); }); }},
    {"capture.free_of_block",
     [](Asker& a) {
       void* const block = NewBlock(a);
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaFree(block); });
     }},
    {"capture.memcpy_default_stream",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char host = 0;
       InEveryMode(a, [&](cudaStream_t) { return cudaMemcpy(&host, block, 1, cudaMemcpyDeviceToHost); });
     }},
    {"capture.memcpy_kinds",
     [](Asker& a) {
       char* const block = NewBlock(a);
       void* pinned = nullptr;
       a.Prepare(cudaMallocHost(&pinned, 64));
       char host = 0;
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaMemcpy(block, &host, 1, cudaMemcpyHostToDevice); });
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaMemcpy(block, pinned, 1, cudaMemcpyHostToDevice); });
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaMemcpy(pinned, block, 1, cudaMemcpyDeviceToHost); });
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaMemcpy(block + 64, block, 1, cudaMemcpyDeviceToDevice); });
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaMemcpy(&host, block, 1, cudaMemcpyDefault); });
     }},
    {"capture.memcpy_with_the_legacy_stream_implied",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char host = 0;
       cudaStream_t blocking = nullptr;
       a.Prepare(cudaStreamCreate(&blocking));
       a(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
       a(cudaMemcpy(&host, block, 1, cudaMemcpyDeviceToHost));
       Status(a, blocking);
     }},
    {"capture.memset_default_stream",
     [](Asker& a) {
       char* const block = NewBlock(a);
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaMemset(block, 0, 16); });
     }},
    {"capture.legacy_stream_used",
     [](Asker& a) {
       char* const block = NewBlock(a);
       cudaStream_t blocking = nullptr;
       a.Prepare(cudaStreamCreate(&blocking));
       a(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
       a(cudaMemsetAsync(block, 0, 16, nullptr));
       Status(a, blocking);
       cudaStreamCaptureStatus status{};
       a(cudaStreamIsCapturing(nullptr, &status));
       cudaGraph_t graph = nullptr;
       a(cudaStreamEndCapture(blocking, &graph));
     }},
    {"capture.synchronize_stream", [](Asker& a) { InEveryMode(a, [](cudaStream_t stream) { return cudaStreamSynchronize(stream); }); }},
    {"capture.query_stream",
     [](Asker& a) { While(a, cudaStreamCaptureModeRelaxed, [](cudaStream_t stream) { return cudaStreamQuery(stream); }); }},
    {"capture.synchronize_device", [](Asker& a) { InEveryMode(a, [](cudaStream_t) { return cudaDeviceSynchronize(); }); }},
    {"capture.destroy_stream",
     [](Asker& a) {
       const cudaStream_t stream = Capturing(a);
       a(cudaStreamDestroy(stream));
       a(cudaDeviceSynchronize());
     }},
    {"capture.create_stream_and_event",
     [](Asker& a) {
       While(a, cudaStreamCaptureModeGlobal, [](cudaStream_t) {
         cudaStream_t stream = nullptr;
         return cudaStreamCreate(&stream);
       });
       While(a, cudaStreamCaptureModeGlobal, [](cudaStream_t) {
         cudaEvent_t event = nullptr;
         return cudaEventCreate(&event);
       });
     }},
    {"capture.event_query",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       While(a, cudaStreamCaptureModeGlobal, [&](cudaStream_t) { return cudaEventQuery(event); });
       While(a, cudaStreamCaptureModeRelaxed, [&](cudaStream_t) { return cudaEventQuery(event); });
     }},
    {"capture.captured_event_query",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       While(a, cudaStreamCaptureModeRelaxed, [&](cudaStream_t stream) {
         const cudaError_t recorded = cudaEventRecord(event, stream);
         return recorded != cudaSuccess ? recorded : cudaEventQuery(event);
       });
     }},
    {"capture.captured_event_synchronize",
     [](Asker& a) {
       const cudaEvent_t event = NewEvent(a);
       While(a, cudaStreamCaptureModeRelaxed, [&](cudaStream_t stream) {
         const cudaError_t recorded = cudaEventRecord(event, stream);
         return recorded != cudaSuccess ? recorded : cudaEventSynchronize(event);
       });
     }},
    {"capture.malloc_host",
     [](Asker& a) {
       While(a, cudaStreamCaptureModeGlobal, [](cudaStream_t) {
         void* host = nullptr;
         return cudaMallocHost(&host, 64);
       });
     }},
    {"capture.set_device", [](Asker& a) { While(a, cudaStreamCaptureModeGlobal, [](cudaStream_t) { return cudaSetDevice(0); }); }},
    {"capture.get_properties",
     [](Asker& a) {
       While(a, cudaStreamCaptureModeGlobal, [](cudaStream_t) {
         cudaDeviceProp properties{};
         return cudaGetDeviceProperties(&properties, 0);
       });
     }},
    {"capture.mem_get_info",
     [](Asker& a) {
       While(a, cudaStreamCaptureModeGlobal, [](cudaStream_t) {
         std::size_t free_bytes = 0;
         std::size_t total = 0;
         return cudaMemGetInfo(&free_bytes, &total);
       });
     }},
    {"capture.async_allocation",
     [](Asker& a) {
       const cudaStream_t stream = Capturing(a);
       void* block = nullptr;
       a(cudaMallocAsync(&block, 1024, stream));
       a(cudaMemsetAsync(block, 0, 1024, stream));
       a(cudaFreeAsync(block, stream));
       const cudaGraph_t graph = Captured(a, stream);
       a.Value(Nodes(graph));
     }},
    {"capture.fork_and_join",
     [](Asker& a) {
       char* const block = NewBlock(a);
       const cudaStream_t side = NewStream(a);
       const cudaEvent_t fork = NewEvent(a, cudaEventDisableTiming);
       const cudaEvent_t join = NewEvent(a, cudaEventDisableTiming);
       const cudaStream_t stream = Capturing(a);
       a(cudaEventRecord(fork, stream));
       a(cudaStreamWaitEvent(side, fork, 0));
       Status(a, side);
       a(cudaMemsetAsync(block, 0, 16, side));
       a(cudaEventRecord(join, side));
       a(cudaStreamWaitEvent(stream, join, 0));
       const cudaGraph_t graph = Captured(a, stream);
       a.Value(Nodes(graph));
       Status(a, side);
     }},
    {"capture.unjoined",
     [](Asker& a) {
       char* const block = NewBlock(a);
       const cudaStream_t side = NewStream(a);
       const cudaEvent_t fork = NewEvent(a, cudaEventDisableTiming);
       const cudaStream_t stream = Capturing(a);
       a(cudaEventRecord(fork, stream));
       a(cudaStreamWaitEvent(side, fork, 0));
       a(cudaMemsetAsync(block, 0, 16, side));
       cudaGraph_t graph = static_cast<cudaGraph_t>(Invented());
       a(cudaStreamEndCapture(stream, &graph));
       a.Value(graph == nullptr);
       a(cudaGetLastError());
       Status(a, side);
     }},
    {"capture.end_on_side_stream",
     [](Asker& a) {
       const cudaStream_t side = NewStream(a);
       const cudaEvent_t fork = NewEvent(a, cudaEventDisableTiming);
       const cudaStream_t stream = Capturing(a);
       a(cudaEventRecord(fork, stream));
       a(cudaStreamWaitEvent(side, fork, 0));
       cudaGraph_t graph = nullptr;
       a(cudaStreamEndCapture(side, &graph));
     }},
    {"capture.info",
     [](Asker& a) {
       char* const block = NewBlock(a);
       const cudaStream_t stream = NewStream(a);
       cudaStreamCaptureStatus status{};
       unsigned long long id = 0;
       cudaGraph_t graph = nullptr;
       const cudaGraphNode_t* dependencies = nullptr;
       std::size_t count = 77;
       a(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, nullptr, &count));
       a.Value(status);
       a.Prepare(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
       a.Prepare(cudaMemsetAsync(block, 0, 16, stream));
       a(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, nullptr, &count));
       a.Value(status);
       a.Value(graph != nullptr);
       a.Value(static_cast<long long>(count));
       a(cudaStreamGetCaptureInfo(stream, nullptr, &id, nullptr, nullptr, nullptr, nullptr));
       a(cudaStreamGetCaptureInfo(nullptr, &status, nullptr, nullptr, nullptr, nullptr, nullptr));
     }},
    {"capture.update_dependencies",
     [](Asker& a) {
       char* const block = NewBlock(a);
       const cudaStream_t stream = Capturing(a);
       a.Prepare(cudaMemsetAsync(block, 0, 16, stream));
       a(cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies));
       std::size_t count = 77;
       cudaStreamCaptureStatus status{};
       a(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, nullptr, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, 77));
       a(cudaStreamUpdateCaptureDependencies(NewStream(a), nullptr, nullptr, 0, 0));
     }},
    {"capture.to_graph",
     [](Asker& a) {
       char* const block = NewBlock(a);
       const cudaStream_t stream = NewStream(a);
       const cudaGraph_t graph = NewGraph(a);
       a(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
       a(cudaMemsetAsync(block, 0, 16, stream));
       cudaGraph_t ended = nullptr;
       a(cudaStreamEndCapture(stream, &ended));
       a.Value(ended == graph);
       a.Value(Nodes(graph));
       a(cudaStreamBeginCaptureToGraph(stream, nullptr, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
     }},
    {"capture.exchange_mode",
     [](Asker& a) {
       cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
       a(cudaThreadExchangeStreamCaptureMode(&mode));
       a.Value(mode);
       const cudaStream_t stream = Capturing(a, cudaStreamCaptureModeGlobal);
       void* block = nullptr;
       a(cudaMalloc(&block, 16));
       Status(a, stream);
     }},
    {"capture.exchange_mode_with_nothing", [](Asker& a) { a(cudaThreadExchangeStreamCaptureMode(nullptr)); }},
    {"capture.exchange_bad_mode",
     [](Asker& a) {
       cudaStreamCaptureMode mode = Beyond<cudaStreamCaptureMode>(7);
       a(cudaThreadExchangeStreamCaptureMode(&mode));
     }},
    {"capture.other_thread_malloc",
     [](Asker& a) {
       for (const cudaStreamCaptureMode mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
         const cudaStream_t stream = Capturing(a, mode);
         std::thread([&] {
           void* block = nullptr;
           a(cudaMalloc(&block, 16));
         }).join();
         Status(a, stream);
         (void)Captured(a, stream);
       }
     }},
    {"capture.host_function",
     [](Asker& a) {
       const cudaStream_t stream = Capturing(a);
       a(cudaLaunchHostFunc(stream, Nothing, nullptr));
       a(cudaStreamAddCallback(
           stream, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0));
       (void)Captured(a, stream);
     }},
    {"capture.status_null",
     [](Asker& a) {
       cudaStreamCaptureStatus status{};
       a(cudaStreamIsCapturing(NewStream(a), nullptr));
       a(cudaStreamIsCapturing(nullptr, &status));
       a(cudaStreamIsCapturing(cudaStreamPerThread, &status));
     }},
    {"capture.legacy_while_relaxed",
     [](Asker& a) {
       cudaStream_t blocking = nullptr;
       a.Prepare(cudaStreamCreate(&blocking));
       a.Prepare(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
       cudaStreamCaptureStatus status{};
       a(cudaStreamIsCapturing(cudaStreamLegacy, &status));
       a(cudaStreamQuery(nullptr));
       a(cudaEventRecord(NewEvent(a), nullptr));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::capture_questions

namespace cuaudit::cudart {
std::span<const Question> CaptureQuestions() { return capture_questions::kQuestions; }
}  // namespace cuaudit::cudart
