// SPDX-License-Identifier: MIT
// Facts of the driver that the answers of the runtime above it suggest.
#include <thread>

#include "suites/contract/question.h"

namespace cuaudit::contract::runtime_fact_questions {
namespace {

CUstream Capturing(Asker& a, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  CUstream stream = nullptr;
  a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  a.Prepare(a.d.StreamBeginCapture(stream, mode));
  return stream;
}

void Status(Asker& a, CUstream stream) {
  CUstreamCaptureStatus status{};
  a(a.d.StreamIsCapturing(stream, &status));
  a.Value(status);
}

// A synchronous copy while a stream captures, then what is left of the capture.
template <typename Copy>
void While(Asker& a, Copy copy) {
  const CUstream stream = Capturing(a);
  a(copy());
  Status(a, stream);
  CUgraph graph = nullptr;
  (void)a.d.StreamEndCapture(stream, &graph);
}

constexpr Question kQuestions[] = {
    {"runtime_fact.capture_begun_twice", "ILLEGAL_STATE SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const CUstream stream = Capturing(a);
       a(a.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
       Status(a, stream);
     }},
    {"runtime_fact.capture_ended_elsewhere", "STREAM_CAPTURE_WRONG_THREAD SUCCESS 0 ILLEGAL_STATE", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const CUstream stream = Capturing(a);
       CUgraph graph = nullptr;
       std::thread([&] {
         a.Prepare(a.d.CtxSetCurrent(ready.context));
         a(a.d.StreamEndCapture(stream, &graph));
       }).join();
       Status(a, stream);
       a(a.d.StreamEndCapture(stream, &graph));
     }},
    {"runtime_fact.no_capture_ended_into_nothing", "ILLEGAL_STATE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream stream = nullptr;
       a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamEndCapture(stream, nullptr));
     }},
    {"runtime_fact.capture_ended_into_nothing", "SUCCESS SUCCESS 0 ILLEGAL_STATE 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUstream stream = Capturing(a);
       a(a.d.StreamEndCapture(stream, nullptr));
       Status(a, stream);
       CUgraph graph = nullptr;
       a(a.d.StreamEndCapture(stream, &graph));
       a.Value(graph != nullptr);
     }},
    // Whoever gave the graph need not be told it: expected, not yet asked.
    {"runtime_fact.capture_to_graph_ended_into_nothing", "SUCCESS SUCCESS 0 1 ILLEGAL_STATE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream stream = nullptr;
       CUgraph graph = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.GraphCreate(&graph, 0));
       a.Prepare(a.d.MemAlloc(&p, 64));
       a.Prepare(a.d.StreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a.Prepare(a.d.MemsetD8Async(p, 0, 64, stream));
       a(a.d.StreamEndCapture(stream, nullptr));
       Status(a, stream);
       std::size_t nodes = 77;
       a.Prepare(a.d.GraphGetNodes(graph, nullptr, &nodes));
       a.Value(static_cast<long long>(nodes));
       a(a.d.StreamEndCapture(stream, nullptr));
       a(a.d.GraphDestroy(graph));
     }},
    {"runtime_fact.copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       int here = 0;
       a.Prepare(a.d.MemAlloc(&p, 64));
       While(a, [&] { return a.d.MemcpyHtoD(p, &here, sizeof(here)); });
       While(a, [&] { return a.d.MemcpyDtoH(&here, p, sizeof(here)); });
     }},
    {"runtime_fact.pinned_copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       void* pinned = nullptr;
       a.Prepare(a.d.MemAlloc(&p, 64));
       a.Prepare(a.d.MemHostAlloc(&pinned, 64, 0));
       While(a, [&] { return a.d.MemcpyHtoD(p, pinned, 16); });
       While(a, [&] { return a.d.MemcpyDtoH(pinned, p, 16); });
     }},
    {"runtime_fact.device_copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 64));
       While(a, [&] { return a.d.MemcpyDtoD(p, p + 32, 16); });
       While(a, [&] { return a.d.Memcpy(p, p + 32, 16); });
     }},
    {"runtime_fact.unified_copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       int here = 0;
       a.Prepare(a.d.MemAlloc(&p, 64));
       While(a, [&] { return a.d.Memcpy(p, std::bit_cast<CUdeviceptr>(&here), sizeof(here)); });
       While(a, [&] { return a.d.Memcpy(std::bit_cast<CUdeviceptr>(&here), p, sizeof(here)); });
     }},
    {"runtime_fact.refused_launch_while_capturing", "INVALID_VALUE SUCCESS 2", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule module = nullptr;
       CUfunction function = nullptr;
       a.Prepare(a.d.ModuleLoadData(&module, kPtx));
       a.Prepare(a.d.ModuleGetFunction(&function, module, "plain"));
       const CUstream stream = Capturing(a);
       a(a.d.LaunchKernel(function, 1, 1, 1, 4096, 1, 1, 0, stream, nullptr, nullptr));
       Status(a, stream);
     }},
    {"runtime_fact.refused_fill_while_capturing", "SUCCESS SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const CUstream stream = Capturing(a);
       a(a.d.MemsetD8Async(0, 0, 16, stream));
       Status(a, stream);
     }},
    {"runtime_fact.fill_of_pinned_memory_is_done", "SUCCESS 7 SUCCESS 8", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       void* pinned = nullptr;
       a.Prepare(a.d.MemHostAlloc(&pinned, 64, 0));
       a(a.d.MemsetD8(std::bit_cast<CUdeviceptr>(pinned), 7, 64));
       a.Value(static_cast<char*>(pinned)[63]);
       CUdeviceptr managed = 0;
       a.Prepare(a.d.MemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
       a(a.d.MemsetD8(managed, 8, 64));
       a.Value(std::bit_cast<char*>(managed)[63]);
     }},
    {"runtime_fact.bus_id", "INVALID_VALUE INVALID_VALUE SUCCESS INVALID_VALUE INVALID_DEVICE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       char text[32] = {};
       a(a.d.DeviceGetPCIBusId(text, 4, 0));
       a(a.d.DeviceGetPCIBusId(text, 12, 0));
       a(a.d.DeviceGetPCIBusId(text, 13, 0));
       CUdevice device = 0;
       a(a.d.DeviceGetByPCIBusId(&device, "nonsense"));
       a(a.d.DeviceGetByPCIBusId(&device, "00ff:ff:1f.0"));
     }},
    {"runtime_fact.garbage_text_loads_lazily", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUlibrary library = nullptr;
       a(a.d.LibraryLoadData(&library, "this is no program", nullptr, nullptr, 0, nullptr, nullptr, 0));
     }},
    {"runtime_fact.host_function_refuses_its_thread_only", "SUCCESS SUCCESS NOT_PERMITTED SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUstream stream = nullptr;
       a.Prepare(a.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
       struct Inside {
         driver::DriverRef driver;
         CUresult result;
       } inside{a.d, CUDA_SUCCESS};
       a(a.d.LaunchHostFunc(
           stream,
           [](void* where) {
             Inside* const there = static_cast<Inside*>(where);
             CUdeviceptr p = 0;
             there->result = there->driver.MemAlloc(&p, 16);
           },
           &inside));
       a(a.d.StreamSynchronize(stream));
       a(inside.result);
       CUdeviceptr p = 0;
       a(a.d.MemAlloc(&p, 16));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::runtime_fact_questions

namespace cuaudit::contract {
std::span<const Question> RuntimeFactQuestions() { return runtime_fact_questions::kQuestions; }
}  // namespace cuaudit::contract
