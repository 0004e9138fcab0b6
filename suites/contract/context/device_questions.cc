// SPDX-License-Identifier: MIT
// Initialisation, devices and their contexts, and facts that the CUDA runtime asks for when it starts.
#include <cstring>
#include <thread>

#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::device_questions {
namespace {

// A synchronous copy while a stream captures, then what is left of the capture.
template <typename Copy>
void While(Asker& a, Copy copy) {
  const Capturing c(a);
  a(copy());
  c.ShowStatus();
}

}  // namespace

void List(Questions& ask) {
  ask.Fresh("init.bad_flags", "INVALID_VALUE", [](Asker& a) { a(a.d.Init(1)); });
  ask.Fresh("init.twice", "SUCCESS SUCCESS", [](Asker& a) {
    a(a.d.Init(0));
    a(a.d.Init(0));
  });
  ask.Fresh("init.before_everything", "NOT_INITIALIZED x5", [](Asker& a) {
    CUcontext c = nullptr;
    a(a.d.DeviceGetCount(kIgnored));
    a(a.d.CtxGetCurrent(&c));
    a(a.d.MemAlloc(kIgnored, 16));
    a(a.d.DevicePrimaryCtxRetain(&c, 0));
    a(a.d.GraphCreate(kIgnored, 0));
  });
  ask.Fresh("init.version_needs_no_init", "SUCCESS SUCCESS", [](Asker& a) {
    a(a.d.DriverGetVersion(kIgnored));
    a(a.d.GetErrorName(CUDA_ERROR_OUT_OF_MEMORY, kIgnored));
  });
  ask.Risky("version.null", "INVALID_VALUE", [](Asker& a) { a(a.d.DriverGetVersion(nullptr)); });
  ask.Plain("error.name", "CUDA_ERROR_OUT_OF_MEMORY CUDA_SUCCESS", [](Asker& a) {
    const char* text = nullptr;
    a.Values(a.d.GetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), text);
    a.Values(a.d.GetErrorName(CUDA_SUCCESS, &text), text);
  });
  ask.Plain("error.string", "out of memory", [](Asker& a) {
    const char* text = nullptr;
    a.Values(a.d.GetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), text);
  });
  ask.Plain("error.unknown", "INVALID_VALUE null", [](Asker& a) {
    const char* text = "untouched";
    a(a.d.GetErrorName(Beyond<CUresult>(12345), &text), text);
  });
  ask.Plain("device.ordinals", "SUCCESS INVALID_DEVICE INVALID_DEVICE", [](Ready& a) {
    CUdevice device = 0;
    a(a.d.DeviceGet(&device, 0));
    a(a.d.DeviceGet(&device, 64));
    a(a.d.DeviceGet(&device, -1));
  });
  ask.Risky("device.null_outputs", "INVALID_VALUE x3", [](Ready& a) {
    a(a.d.DeviceGet(nullptr, 0));
    a(a.d.DeviceGetCount(nullptr));
    a(a.d.DeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  });
  ask.Plain("device.name", "SUCCESS 1 SUCCESS 3 INVALID_DEVICE", [](Ready& a) {
    char name[64] = "";
    a(a.d.DeviceGetName(name, sizeof(name), 0));
    a.Value(name[0] != '\0');
    char small[4] = "";
    a(a.d.DeviceGetName(small, sizeof(small), 0));
    a.Value(static_cast<long long>(std::strlen(small)));
    a(a.d.DeviceGetName(name, sizeof(name), 99));
  });
  ask.Plain("device.attributes", "SUCCESS 32 SUCCESS 9 SUCCESS 1024 INVALID_VALUE INVALID_DEVICE", [](Ready& a) {
    int value = 0;
    a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), value);
    a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), value);
    a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0), value);
    a(a.d.DeviceGetAttribute(&value, Beyond<CUdevice_attribute>(100000), 0));
    a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
  });
  ask.Plain("device.multiprocessors", "132", [](Ready& a) {
    int value = 0;
    a.Values(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), value);
  });
  ask.Plain("device.memory", "SUCCESS 1 INVALID_DEVICE", [](Ready& a) {
    std::size_t bytes = 0;
    a(a.d.DeviceTotalMem(&bytes, 0));
    a.Value(bytes > 0);
    a(a.d.DeviceTotalMem(&bytes, 99));
  });
  ask.Plain("device.pci_round_trip", "SUCCESS SUCCESS 0", [](Ready& a) {
    char bus[32] = "";
    CUdevice device = 7;
    a(a.d.DeviceGetPCIBusId(bus, sizeof(bus), 0));
    a(a.d.DeviceGetByPCIBusId(&device, bus), device);
  });
  ask.Plain("profiler.start_stop", "SUCCESS SUCCESS", [](Ready& a) {
    a(a.d.ProfilerStart());
    a(a.d.ProfilerStop());
  });
  ask.Fresh("runtime_fact.capture_begun_twice", "ILLEGAL_STATE SUCCESS 1", [](Ready& a, Capturing& c) {
    a(a.d.StreamBeginCapture(c.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    c.ShowStatus();
  });
  ask.Fresh("runtime_fact.capture_ended_elsewhere", "STREAM_CAPTURE_WRONG_THREAD SUCCESS 0 ILLEGAL_STATE", [](Ready& a, Capturing& c) {
    std::thread([&] {
      a.Prepare(a.d.CtxSetCurrent(a.context));
      a(a.d.StreamEndCapture(c.s, &c.g));
    }).join();
    c.ShowStatus();
    a(a.d.StreamEndCapture(c.s, &c.g));
  });
  ask.Risky("runtime_fact.no_capture_ended_into_nothing", "ILLEGAL_STATE", [](Ready& a) {
    const CUstream stream = a.StreamCreate();
    a(a.d.StreamEndCapture(stream, nullptr));
  });
  ask.Risky("runtime_fact.capture_ended_into_nothing", "SUCCESS SUCCESS 0 ILLEGAL_STATE 0", [](Ready& a, Capturing& c) {
    a(a.d.StreamEndCapture(c.s, nullptr));
    c.ShowStatus();
    a(a.d.StreamEndCapture(c.s, &c.g));
    a.Value(c.g != nullptr);
  });
  // Whoever gave the graph need not be told it: expected, not yet asked.
  ask.Risky("runtime_fact.capture_to_graph_ended_into_nothing", "SUCCESS SUCCESS 0 1 ILLEGAL_STATE SUCCESS", [](Ready& a) {
    const CUstream stream = a.StreamCreate();
    const CUgraph graph = a.GraphCreate();
    const CUdeviceptr p = a.MemAlloc(64);
    a.Prepare(a.d.StreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a.Prepare(a.d.MemsetD8Async(p, 0, 64, stream));
    a(a.d.StreamEndCapture(stream, nullptr));
    CUstreamCaptureStatus status{};
    a(a.d.StreamIsCapturing(stream, &status), status);
    std::size_t nodes = 77;
    a.Values(a.d.GraphGetNodes(graph, nullptr, &nodes), nodes);
    a(a.d.StreamEndCapture(stream, nullptr));
    a(a.d.GraphDestroy(graph));
  });
  ask.Fresh("runtime_fact.copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", [](Ready& a) {
    int here = 0;
    const CUdeviceptr p = a.MemAlloc(64);
    While(a, [&] { return a.d.MemcpyHtoD(p, &here, sizeof(here)); });
    While(a, [&] { return a.d.MemcpyDtoH(&here, p, sizeof(here)); });
  });
  ask.Fresh("runtime_fact.pinned_copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", [](Ready& a) {
    void* pinned = nullptr;
    const CUdeviceptr p = a.MemAlloc(64);
    a.Prepare(a.d.MemHostAlloc(&pinned, 64, 0));
    While(a, [&] { return a.d.MemcpyHtoD(p, pinned, 16); });
    While(a, [&] { return a.d.MemcpyDtoH(pinned, p, 16); });
  });
  ask.Fresh("runtime_fact.device_copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(64);
    While(a, [&] { return a.d.MemcpyDtoD(p, p + 32, 16); });
    While(a, [&] { return a.d.Memcpy(p, p + 32, 16); });
  });
  ask.Fresh("runtime_fact.unified_copies_while_capturing", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", [](Ready& a) {
    int here = 0;
    const CUdeviceptr p = a.MemAlloc(64);
    While(a, [&] { return a.d.Memcpy(p, std::bit_cast<CUdeviceptr>(&here), sizeof(here)); });
    While(a, [&] { return a.d.Memcpy(std::bit_cast<CUdeviceptr>(&here), p, sizeof(here)); });
  });
  ask.Fresh("runtime_fact.refused_launch_while_capturing", "INVALID_VALUE SUCCESS 2", [](Ready& a) {
    const CUfunction function = a.ModuleGetFunction("plain");
    Capturing c(a);
    a(a.d.LaunchKernel(function, 1, 1, 1, 4096, 1, 1, 0, c.s, nullptr, nullptr));
    c.ShowStatus();
  });
  ask.Fresh("runtime_fact.refused_fill_while_capturing", "SUCCESS SUCCESS 1", [](Ready& a, Capturing& c) {
    a(a.d.MemsetD8Async(0, 0, 16, c.s));
    c.ShowStatus();
  });
  ask.Fresh("runtime_fact.fill_of_pinned_memory_is_done", "SUCCESS 7 SUCCESS 8", [](Ready& a) {
    void* pinned = nullptr;
    a.Prepare(a.d.MemHostAlloc(&pinned, 64, 0));
    a(a.d.MemsetD8(std::bit_cast<CUdeviceptr>(pinned), 7, 64));
    a.Value(static_cast<char*>(pinned)[63]);
    const CUdeviceptr managed = a.MemAllocManaged(64);
    a(a.d.MemsetD8(managed, 8, 64));
    a.Value(std::bit_cast<char*>(managed)[63]);
  });
  ask.Plain("runtime_fact.bus_id", "INVALID_VALUE INVALID_VALUE SUCCESS INVALID_VALUE INVALID_DEVICE", [](Ready& a) {
    char text[32] = {};
    a(a.d.DeviceGetPCIBusId(text, 4, 0));
    a(a.d.DeviceGetPCIBusId(text, 12, 0));
    a(a.d.DeviceGetPCIBusId(text, 13, 0));
    CUdevice device = 0;
    a(a.d.DeviceGetByPCIBusId(&device, "nonsense"));
    a(a.d.DeviceGetByPCIBusId(&device, "00ff:ff:1f.0"));
  });
  ask.Risky("runtime_fact.garbage_text_loads_lazily", "SUCCESS",
            [](Ready& a) { a(a.d.LibraryLoadData(kIgnored, "this is no program", nullptr, nullptr, 0, nullptr, nullptr, 0)); });
  ask.Fresh("runtime_fact.host_function_refuses_its_thread_only", "SUCCESS SUCCESS NOT_PERMITTED SUCCESS", [](Ready& a) {
    const CUstream stream = a.StreamCreate();
    struct Inside {
      Driver driver;
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
  });
  ask.Fresh("primary.counts", "SUCCESS x4 INVALID_CONTEXT", [](Initialised& a) {
    CUcontext c = nullptr;
    a(a.d.DevicePrimaryCtxRetain(&c, 0));
    a(a.d.DevicePrimaryCtxRetain(&c, 0));
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Fresh("primary.same_handle", "1", [](Asker& a) {
    a.Prepare(a.d.Init(0));
    const CUcontext c = a.DevicePrimaryCtxRetain(), again = a.DevicePrimaryCtxRetain();
    a.Value(c == again);
  });
  ask.Fresh("primary.state", "0 1 0", [](Asker& a) {
    unsigned flags = 0;
    int active = -1;
    a.Prepare(a.d.Init(0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
    a.DevicePrimaryCtxRetain();
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
  });
  ask.Fresh("primary.bad_device", "INVALID_DEVICE INVALID_DEVICE", [](Initialised& a) {
    a(a.d.DevicePrimaryCtxRetain(kIgnored, 99));
    a(a.d.DevicePrimaryCtxRelease(99));
  });
  ask.Fresh("primary.retain_is_not_current", "1 INVALID_CONTEXT", [](Asker& a) {
    CUcontext current = nullptr;
    a.Prepare(a.d.Init(0));
    a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxGetCurrent(&current));
    a.Value(current == nullptr);
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Risky("primary.use_after_last_release", "CONTEXT_IS_DESTROYED", [](Asker& a) {
    a.Prepare(a.d.Init(0));
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(c));
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Fresh("primary.destroy_as_context", "INVALID_CONTEXT", [](Initialised& a) {
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a(a.d.CtxDestroy(c));
  });
  ask.Fresh("primary.reset_unretained", "SUCCESS", [](Initialised& a) { a(a.d.DevicePrimaryCtxReset(0)); });
  ask.Fresh("primary.bad_flags", "INVALID_VALUE", [](Initialised& a) { a(a.d.DevicePrimaryCtxSetFlags(0, 0x10000)); });
  ask.Plain("context.create_makes_current", "SUCCESS 1 SUCCESS 1", [](Asker& a) {
    CUcontext c = nullptr, current = nullptr;
    a.Prepare(a.d.Init(0));
    a(a.d.CtxCreate(&c, nullptr, 0, 0));
    a.Prepare(a.d.CtxGetCurrent(&current));
    a.Value(c == current);
    a(a.d.CtxDestroy(c));
    a.Prepare(a.d.CtxGetCurrent(&current));
    a.Value(current == nullptr);
  });
  ask.Risky("context.create_bad", "INVALID_VALUE INVALID_DEVICE INVALID_VALUE", [](Initialised& a) {
    CUcontext c = nullptr;
    a(a.d.CtxCreate(&c, nullptr, 0x80000000U, 0));
    a(a.d.CtxCreate(&c, nullptr, 0, 99));
    a(a.d.CtxCreate(nullptr, nullptr, 0, 0));
  });
  ask.Risky("context.destroy_twice", "SUCCESS CONTEXT_IS_DESTROYED", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a(a.d.CtxDestroy(c));
    a(a.d.CtxDestroy(c));
  });
  ask.Risky("context.destroy_null", "INVALID_VALUE", [](Initialised& a) { a(a.d.CtxDestroy(nullptr)); });
  ask.Plain("context.stack", "SUCCESS SUCCESS 1 SUCCESS 1 INVALID_CONTEXT", [](Asker& a) {
    CUcontext popped = nullptr;
    a.Prepare(a.d.Init(0));
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a(a.d.CtxPushCurrent(c));
    a.Prepare(a.d.CtxPushCurrent(c));
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == c);
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == c);
    a(a.d.CtxPopCurrent(&popped));
    (void)a.d.DevicePrimaryCtxRelease(0);
  });
  ask.Plain("context.pop_without_output", "SUCCESS", [](Initialised& a) {
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxPushCurrent(c));
    a(a.d.CtxPopCurrent(nullptr));
    (void)a.d.DevicePrimaryCtxRelease(0);
  });
  ask.Risky("context.push_null", "INVALID_VALUE", [](Initialised& a) { a(a.d.CtxPushCurrent(nullptr)); });
  ask.Plain("context.set_null_pops", "SUCCESS 1", [](Initialised& a) {
    CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(c));
    a(a.d.CtxSetCurrent(nullptr));
    a.Prepare(a.d.CtxGetCurrent(&c));
    a.Value(c == nullptr);
    (void)a.d.DevicePrimaryCtxRelease(0);
  });
  ask.Fresh("context.none", "INVALID_CONTEXT x4", [](Asker& a) {
    a.Prepare(a.d.Init(0));
    a(a.d.CtxGetDevice(kIgnored, nullptr));
    a(a.d.StreamCreate(kIgnored, 0));
    a(a.d.EventCreate(kIgnored, 0));
    a(a.d.ModuleLoadData(kIgnored, kPtx));
  });
  ask.Plain("context.api_version", "SUCCESS 3020", [](Ready& a) {
    unsigned version = 0;
    a(a.d.CtxGetApiVersion(a.context, &version), version);
  });
  ask.Plain("context.priorities", "SUCCESS 0 -5", [](Ready& a) {
    int least = 9, greatest = 9;
    a(a.d.CtxGetStreamPriorityRange(&least, &greatest), least, greatest);
  });
  ask.Plain("context.limits", "SUCCESS 1024 INVALID_VALUE", [](Ready& a) {
    std::size_t value = 0;
    a(a.d.CtxGetLimit(&value, CU_LIMIT_STACK_SIZE), value);
    a(a.d.CtxGetLimit(&value, Beyond<CUlimit>(77)));
  });
  ask.Plain("context.synchronize_idle", "SUCCESS", [](Ready& a) { a(a.d.CtxSynchronize(nullptr)); });
  ask.Risky("context.destroy_frees_children", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUcontext c = a.CtxCreate();
    const CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.CtxDestroy(c));
    a(a.d.MemFree(p));
  });
  ask.Risky("context.set_destroyed", "SUCCESS crash", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a.Prepare(a.d.CtxDestroy(c));
    a(a.d.CtxSetCurrent(c));
  });
}

}  // namespace cuaudit::contract::device_questions
