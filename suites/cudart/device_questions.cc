// SPDX-License-Identifier: MIT
#include <cuda.h>

#include <thread>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::device_questions {
namespace {

using GetCurrent = CUresult (*)(CUcontext*);

// What the driver holds current for this thread: -1 when it cannot be asked.
int DriverHasCurrent(Asker& a) {
  void* function = nullptr;
  if (!a.Prepare(cudaGetDriverEntryPoint("cuCtxGetCurrent", &function, cudaEnableDefault, nullptr))) return -1;
  CUcontext current = nullptr;
  const CUresult result = std::bit_cast<GetCurrent>(function)(&current);
  return result == CUDA_SUCCESS ? (current != nullptr ? 1 : 0) : -static_cast<int>(result);
}

int PrimaryIsActive(Asker& a, unsigned* flags) {
  void* function = nullptr;
  if (!a.Prepare(cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &function, cudaEnableDefault, nullptr))) return -1;
  int active = -1;
  const CUresult result = std::bit_cast<CUresult (*)(CUdevice, unsigned*, int*)>(function)(0, flags, &active);
  return result == CUDA_SUCCESS ? active : -static_cast<int>(result);
}

void Active(Asker& a) {
  unsigned flags = 0;
  a.Value(PrimaryIsActive(a, &flags));
}

constexpr Question kQuestions[] = {
    {"init.device_queries_activate_nothing",
     [](Asker& a) {
       int value = 0;
       a(cudaGetDeviceCount(&value));
       a(cudaGetDevice(&value));
       a.Value(value);
       a(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
       Active(a);
       a.Value(DriverHasCurrent(a));
     }},
    {"init.set_device_activates",
     [](Asker& a) {
       a(cudaSetDevice(0));
       Active(a);
       a.Value(DriverHasCurrent(a));
     }},
    {"init.free_null_activates",
     [](Asker& a) {
       a(cudaFree(nullptr));
       Active(a);
       a.Value(DriverHasCurrent(a));
     }},
    {"init.failed_malloc_activates",
     [](Asker& a) {
       a(cudaMalloc(nullptr, 16));
       Active(a);
     }},
    {"init.failed_malloc_host_activates",
     [](Asker& a) {
       a(cudaMallocHost(static_cast<void**>(nullptr), 16));
       Active(a);
     }},
    {"init.failed_malloc_managed_activates",
     [](Asker& a) {
       a(cudaMallocManaged(static_cast<void**>(nullptr), 16));
       Active(a);
     }},
    {"init.failed_malloc_async_activates",
     [](Asker& a) {
       a(cudaMallocAsync(static_cast<void**>(nullptr), 16, cudaStream_t{}));
       Active(a);
     }},
    {"init.failed_stream_create_activates",
     [](Asker& a) {
       a(cudaStreamCreate(nullptr));
       Active(a);
     }},
    {"init.failed_event_create_activates",
     [](Asker& a) {
       a(cudaEventCreate(static_cast<cudaEvent_t*>(nullptr)));
       Active(a);
     }},
    {"init.event_create_activates",
     [](Asker& a) {
       NewEvent(a);
       Active(a);
     }},
    {"init.graph_create_activates",
     [](Asker& a) {
       NewGraph(a);
       Active(a);
     }},
    {"init.synchronize_activates",
     [](Asker& a) {
       a(cudaDeviceSynchronize());
       Active(a);
     }},
    {"init.get_limit_activates",
     [](Asker& a) {
       std::size_t value = 0;
       a(cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize));
       Active(a);
     }},
    {"init.pointer_attributes_activate",
     [](Asker& a) {
       cudaPointerAttributes attributes{};
       a(cudaPointerGetAttributes(&attributes, Invented()));
       Active(a);
     }},
    {"init.get_flags_activates",
     [](Asker& a) {
       unsigned flags = 0;
       a(cudaGetDeviceFlags(&flags));
       Active(a);
       a.Value(flags);
     }},
    {"init.default_pool_activates",
     [](Asker& a) {
       cudaMemPool_t pool = nullptr;
       a(cudaDeviceGetDefaultMemPool(&pool, 0));
       Active(a);
     }},
    {"init.device_activates",
     [](Asker& a) {
       a(cudaInitDevice(0, 0, 0));
       Active(a);
       a.Value(DriverHasCurrent(a));
     }},
    {"init.device_bad",
     [](Asker& a) {
       a(cudaInitDevice(4711, 0, 0));
       a(cudaInitDevice(0, 0xffff, cudaInitDeviceFlagsAreValid));
       a(cudaInitDevice(0, 0, 77));
       a(cudaInitDevice(-1, 0, 0));
     }},
    {"init.other_thread_sees_device_0",
     [](Asker& a) {
       a(cudaSetDevice(0));
       std::thread([&] {
         int device = -1;
         a.Value(DriverHasCurrent(a));
         a(cudaGetDevice(&device));
         a.Value(device);
         a(cudaDeviceSynchronize());
         a.Value(DriverHasCurrent(a));
       }).join();
     }},
    {"init.driver_pop_then_runtime",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       void* function = nullptr;
       a.Prepare(cudaGetDriverEntryPoint("cuCtxPopCurrent", &function, cudaEnableDefault, nullptr));
       CUcontext popped = nullptr;
       a.Value(std::bit_cast<CUresult (*)(CUcontext*)>(function)(&popped));
       void* block = nullptr;
       a(cudaMalloc(&block, 16));
       a.Value(DriverHasCurrent(a));
     }},
    {"init.driver_context_is_used",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       void* create = nullptr;
       a.Prepare(cudaGetDriverEntryPointByVersion("cuCtxCreate", &create, 13000, cudaEnableDefault, nullptr));
       CUcontext context = nullptr;
       a.Value(std::bit_cast<CUresult (*)(CUcontext*, CUctxCreateParams*, unsigned, CUdevice)>(create)(&context, nullptr, 0, 0));
       const cudaStream_t stream = NewStream(a);
       void* get = nullptr;
       a.Prepare(cudaGetDriverEntryPoint("cuStreamGetCtx", &get, cudaEnableDefault, nullptr));
       CUcontext of_stream = nullptr;
       a.Prepare(cudaGetDriverEntryPointByVersion("cuStreamGetCtx", &get, 9020, cudaEnableDefault, nullptr));
       a.Value(std::bit_cast<CUresult (*)(CUstream, CUcontext*)>(get)(stream, &of_stream));
       a.Value(of_stream == context);
       a(cudaSetDevice(0));
       a.Value(DriverHasCurrent(a));
     }},
    {"device.count_is_positive",
     [](Asker& a) {
       int count = 0;
       a(cudaGetDeviceCount(&count));
       a.Value(count > 0);
     }},
    {"device.set_bad",
     [](Asker& a) {
       a(cudaSetDevice(-1));
       a(cudaSetDevice(4711));
       int device = -1;
       a(cudaGetDevice(&device));
       a.Value(device);
       a(cudaGetDevice(nullptr));
     }},
    {"device.set_valid",
     [](Asker& a) {
       int devices[] = {0};
       int bad[] = {4711};
       a(cudaSetValidDevices(devices, 1));
       a(cudaSetValidDevices(bad, 1));
       a(cudaSetValidDevices(nullptr, 0));
       a(cudaSetValidDevices(nullptr, 1));
       a(cudaSetValidDevices(devices, -1));
     }},
    {"device.set_flags_before",
     [](Asker& a) {
       a(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
       unsigned flags = 0;
       a(cudaGetDeviceFlags(&flags));
       a.Value(flags);
       a(cudaFree(nullptr));
       a(cudaGetDeviceFlags(&flags));
       a.Value(flags);
     }},
    {"device.set_flags_after",
     [](Asker& a) {
       a(cudaFree(nullptr));
       a(cudaSetDeviceFlags(cudaDeviceScheduleYield));
       unsigned flags = 0;
       a(cudaGetDeviceFlags(&flags));
       a.Value(flags);
     }},
    {"device.flags_bad",
     [](Asker& a) {
       a(cudaSetDeviceFlags(0xff00));
       a(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceScheduleYield));
       a(cudaGetDeviceFlags(nullptr));
     }},
    {"device.choose",
     [](Asker& a) {
       cudaDeviceProp wanted{};
       wanted.major = 3;
       int device = -1;
       a(cudaChooseDevice(&device, &wanted));
       a.Value(device);
     }},
    {"device.pci_bus_id",
     [](Asker& a) {
       char text[32] = {};
       a(cudaDeviceGetPCIBusId(text, sizeof(text), 0));
       int device = -1;
       a(cudaDeviceGetByPCIBusId(&device, text));
       a.Value(device);
       a(cudaDeviceGetPCIBusId(text, 4, 0));
       a(cudaDeviceGetPCIBusId(nullptr, 32, 0));
       a(cudaDeviceGetPCIBusId(text, 32, 4711));
       a(cudaDeviceGetByPCIBusId(&device, "nonsense"));
       a(cudaDeviceGetByPCIBusId(&device, "00ff:ff:1f.0"));
       a(cudaDeviceGetByPCIBusId(nullptr, "0000:00:00.0"));
     }},
    {"device.peer_of_itself",
     [](Asker& a) {
       int can = -1;
       a(cudaDeviceCanAccessPeer(&can, 0, 0));
       a.Value(can);
       a(cudaDeviceEnablePeerAccess(0, 0));
       a(cudaDeviceDisablePeerAccess(0));
       a(cudaDeviceCanAccessPeer(&can, 0, 4711));
       a(cudaDeviceEnablePeerAccess(4711, 0));
       a(cudaDeviceDisablePeerAccess(4711));
     }},
    {"device.peer_attribute",
     [](Asker& a) {
       int value = -1;
       a(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0));
       a(cudaDeviceGetP2PAttribute(&value, Beyond<cudaDeviceP2PAttr>(77), 0, 0));
       a(cudaDeviceGetP2PAttribute(nullptr, cudaDevP2PAttrAccessSupported, 0, 0));
       a(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 4711));
     }},
    {"device.flush_rdma",
     [](Asker& a) {
       a(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToOwner));
       a(cudaDeviceFlushGPUDirectRDMAWrites(Beyond<cudaFlushGPUDirectRDMAWritesTarget>(5), cudaFlushGPUDirectRDMAWritesToOwner));
     }},
    {"device.reset_persisting", [](Asker& a) { a(cudaCtxResetPersistingL2Cache()); }},
    {"device.async_notification",
     [](Asker& a) {
       cudaAsyncCallbackHandle_t handle = nullptr;
       a(cudaDeviceRegisterAsyncNotification(
           0, [](cudaAsyncNotificationInfo_t*, void*, cudaAsyncCallbackHandle_t) {}, nullptr, &handle));
       a.Value(handle != nullptr);
       a(cudaDeviceUnregisterAsyncNotification(0, handle));
     }},
    {"device.async_notification_without_function",
     [](Asker& a) {
       cudaAsyncCallbackHandle_t handle = nullptr;
       a(cudaDeviceRegisterAsyncNotification(0, nullptr, nullptr, &handle));
       a(cudaDeviceRegisterAsyncNotification(4711, nullptr, nullptr, &handle));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::device_questions

namespace cuaudit::cudart {
std::span<const Question> DeviceQuestions() { return device_questions::kQuestions; }
}  // namespace cuaudit::cudart
