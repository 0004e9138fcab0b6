// SPDX-License-Identifier: MIT
#include <cstring>

#include "suites/contract/question.h"

namespace cuaudit::contract::device_questions {
namespace {

constexpr Question kQuestions[] = {
    {"init.bad_flags", "INVALID_VALUE", Manner::Fresh, [](Asker& a) { a(a.d.Init(1)); }},
    {"init.twice", "SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       a(a.d.Init(0));
       a(a.d.Init(0));
     }},
    {"init.before_everything", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       int n = 0;
       CUcontext c = nullptr;
       CUdeviceptr p = 0;
       CUgraph g = nullptr;
       a(a.d.DeviceGetCount(&n));
       a(a.d.CtxGetCurrent(&c));
       a(a.d.MemAlloc(&p, 16));
       a(a.d.DevicePrimaryCtxRetain(&c, 0));
       a(a.d.GraphCreate(&g, 0));
     }},
    {"init.version_needs_no_init", "SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       int v = 0;
       const char* text = nullptr;
       a(a.d.DriverGetVersion(&v));
       a(a.d.GetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
     }},
    {"version.null", "INVALID_VALUE", Manner::Risky, [](Asker& a) { a(a.d.DriverGetVersion(nullptr)); }},
    {"error.name", "CUDA_ERROR_OUT_OF_MEMORY CUDA_SUCCESS", Manner::Plain,
     [](Asker& a) {
       const char* text = nullptr;
       a.Prepare(a.d.GetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
       a.Text(text);
       a.Prepare(a.d.GetErrorName(CUDA_SUCCESS, &text));
       a.Text(text);
     }},
    {"error.string", "out of memory", Manner::Plain,
     [](Asker& a) {
       const char* text = nullptr;
       a.Prepare(a.d.GetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
       a.Text(text);
     }},
    {"error.unknown", "INVALID_VALUE null", Manner::Plain,
     [](Asker& a) {
       const char* text = "untouched";
       a(a.d.GetErrorName(Beyond<CUresult>(12345), &text));
       a.Text(text);
     }},
    {"device.ordinals", "SUCCESS INVALID_DEVICE INVALID_DEVICE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUdevice device = 0;
       a(a.d.DeviceGet(&device, 0));
       a(a.d.DeviceGet(&device, 64));
       a(a.d.DeviceGet(&device, -1));
     }},
    {"device.null_outputs", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.DeviceGet(nullptr, 0));
       a(a.d.DeviceGetCount(nullptr));
       a(a.d.DeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
     }},
    {"device.name", "SUCCESS 1 SUCCESS 3 INVALID_DEVICE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       char name[64] = "";
       a(a.d.DeviceGetName(name, sizeof(name), 0));
       a.Value(name[0] != '\0');
       char small[4] = "";
       a(a.d.DeviceGetName(small, sizeof(small), 0));
       a.Value(static_cast<long long>(std::strlen(small)));
       a(a.d.DeviceGetName(name, sizeof(name), 99));
     }},
    {"device.attributes", "SUCCESS 32 SUCCESS 9 SUCCESS 1024 INVALID_VALUE INVALID_DEVICE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       int value = 0;
       a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
       a.Value(value);
       a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
       a.Value(value);
       a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
       a.Value(value);
       a(a.d.DeviceGetAttribute(&value, Beyond<CUdevice_attribute>(100000), 0));
       a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
     }},
    {"device.multiprocessors", "132", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       int value = 0;
       a.Prepare(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
       a.Value(value);
     }},
    {"device.memory", "SUCCESS 1 INVALID_DEVICE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       std::size_t bytes = 0;
       a(a.d.DeviceTotalMem(&bytes, 0));
       a.Value(bytes > 0);
       a(a.d.DeviceTotalMem(&bytes, 99));
     }},
    {"device.pci_round_trip", "SUCCESS SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       char bus[32] = "";
       CUdevice device = 7;
       a(a.d.DeviceGetPCIBusId(bus, sizeof(bus), 0));
       a(a.d.DeviceGetByPCIBusId(&device, bus));
       a.Value(device);
     }},
    {"profiler.start_stop", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.ProfilerStart());
       a(a.d.ProfilerStop());
     }},
};

}  // namespace
}  // namespace cuaudit::contract::device_questions

namespace cuaudit::contract {
std::span<const Question> DeviceQuestions() { return device_questions::kQuestions; }
}  // namespace cuaudit::contract
