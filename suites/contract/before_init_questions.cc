// SPDX-License-Identifier: MIT
#include "suites/contract/furniture.h"

namespace cuaudit::contract::before_init_questions {
namespace {

constexpr Question kQuestions[] = {
    {"before_init.words", "SUCCESS SUCCESS SUCCESS NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       int version = 0;
       const char* text = nullptr;
       a(a.d.DriverGetVersion(&version));
       a(a.d.GetErrorName(CUDA_SUCCESS, &text));
       a(a.d.GetErrorString(CUDA_SUCCESS, &text));
       a(a.d.ProfilerStop());
     }},
    {"before_init.device", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       CUdevice device = 0;
       char name[64];
       std::size_t bytes = 0;
       int value = 0;
       CUmemoryPool pool = nullptr;
       a(a.d.DeviceGet(&device, 0));
       a(a.d.DeviceGetName(name, 64, 0));
       a(a.d.DeviceTotalMem(&bytes, 0));
       a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
       a(a.d.DeviceGetDefaultMemPool(&pool, 0));
       a(a.d.DeviceCanAccessPeer(&value, 0, 0));
     }},
    {"before_init.primary", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       unsigned flags = 0;
       int active = 0;
       a(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a(a.d.DevicePrimaryCtxSetFlags(0, 0));
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.DevicePrimaryCtxReset(0));
     }},
    {"before_init.context",
     "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED INVALID_VALUE",
     Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       CUdevice device = 0;
       std::size_t limit = 0;
       a(a.d.CtxCreate(&c, nullptr, 0, 0));
       a(a.d.CtxSetCurrent(nullptr));
       a(a.d.CtxPushCurrent(nullptr));
       a(a.d.CtxPopCurrent(&c));
       a(a.d.CtxGetDevice(&device, nullptr));
       a(a.d.CtxSynchronize(nullptr));
       a(a.d.CtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
       a(a.d.CtxDestroy(nullptr));
     }},
    {"before_init.stream",
     "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED INVALID_HANDLE NOT_INITIALIZED INVALID_HANDLE NOT_INITIALIZED NOT_INITIALIZED",
     Manner::Fresh,
     [](Asker& a) {
       CUstream s = nullptr;
       CUevent e = nullptr;
       CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
       a(a.d.StreamCreate(&s, 0));
       a(a.d.StreamSynchronize(nullptr));
       a(a.d.StreamQuery(nullptr));
       a(a.d.StreamDestroy(nullptr));
       a(a.d.EventCreate(&e, 0));
       a(a.d.EventDestroy(nullptr));
       a(a.d.LaunchHostFunc(nullptr, DoNothing, nullptr));
       a(a.d.ThreadExchangeStreamCaptureMode(&mode));
     }},
    {"before_init.memory",
     "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED "
     "NOT_INITIALIZED",
     Manner::Fresh,
     [](Asker& a) {
       static char page[4096];
       std::size_t free = 0;
       std::size_t total = 0;
       void* h = nullptr;
       CUdeviceptr p = 0;
       a(a.d.MemGetInfo(&free, &total));
       a(a.d.MemFree(0));
       a(a.d.MemAllocHost(&h, 16));
       a(a.d.MemFreeHost(nullptr));
       a(a.d.MemHostRegister(page, sizeof(page), 0));
       a(a.d.MemAllocAsync(&p, 16, nullptr));
       a(a.d.MemAllocManaged(&p, 16, CU_MEM_ATTACH_GLOBAL));
       a(a.d.MemsetD8(0x1000, 0, 16));
       a(a.d.MemcpyHtoD(0x1000, page, 16));
     }},
    {"before_init.pointer", "NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       unsigned type = 0;
       CUdeviceptr base = 0;
       std::size_t size = 0;
       a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1000));
       a(a.d.MemGetAddressRange(&base, &size, 0x1000));
     }},
    {"before_init.virtual_memory", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       CUmemAllocationProp shape{};
       shape.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       shape.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
       CUmemPoolProps wish{};
       wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       wish.location = shape.location;
       std::size_t granule = 0;
       CUdeviceptr p = 0;
       CUmemGenericAllocationHandle h = 0;
       CUmemoryPool pool = nullptr;
       a(a.d.MemGetAllocationGranularity(&granule, &shape, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
       a(a.d.MemAddressReserve(&p, std::size_t{2} << 20, 0, 0, 0));
       a(a.d.MemCreate(&h, std::size_t{2} << 20, &shape, 0));
       a(a.d.MemUnmap(0x200000, std::size_t{2} << 20));
       a(a.d.MemPoolCreate(&pool, &wish));
     }},
    {"before_init.code", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       CUmodule m = nullptr;
       CUlibrary library = nullptr;
       CUlinkState link = nullptr;
       a(a.d.ModuleLoadData(&m, kPtx));
       a(a.d.ModuleUnload(nullptr));
       a(a.d.LibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(a.d.LinkCreate(0, nullptr, nullptr, &link));
       a(a.d.LaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
     }},
    {"before_init.graph", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED SUCCESS", Manner::Fresh,
     [](Asker& a) {
       CUgraph g = nullptr;
       CUuserObject object = nullptr;
       a(a.d.GraphCreate(&g, 0));
       a(a.d.GraphDestroy(nullptr));
       a(a.d.GraphLaunch(nullptr, nullptr));
       a(a.d.GraphExecDestroy(nullptr));
       a(a.d.UserObjectCreate(&object, nullptr, DoNothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
     }},
    {"before_init.null_outputs", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED INVALID_VALUE NOT_INITIALIZED", Manner::Risky,
     [](Asker& a) {
       a(a.d.DeviceGetCount(nullptr));
       a(a.d.CtxGetCurrent(nullptr));
       a(a.d.MemAlloc(nullptr, 0));
       a(a.d.StreamCreate(nullptr, 0));
       a(a.d.MemGetInfo(nullptr, nullptr));
     }},
    {"before_init.stays_after_refusal", "INVALID_VALUE NOT_INITIALIZED SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       int count = 0;
       a(a.d.Init(1));
       a(a.d.DeviceGetCount(&count));
       a(a.d.Init(0));
       a(a.d.DeviceGetCount(&count));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::before_init_questions

namespace cuaudit::contract {
std::span<const Question> BeforeInitQuestions() { return before_init_questions::kQuestions; }
}  // namespace cuaudit::contract
