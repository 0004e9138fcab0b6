// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::free_questions {
namespace {

constexpr Question kQuestions[] = {
    {"free.async_of_plain", "SUCCESS SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAlloc(&p, 1024));
       a(a.d.MemFreeAsync(p, s));
       a(a.d.StreamSynchronize(s));
       a(a.d.MemFree(p));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.async_of_managed", "NOT_SUPPORTED SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocManaged(&p, 1024, CU_MEM_ATTACH_GLOBAL));
       a(a.d.MemFreeAsync(p, s));
       a(a.d.MemFree(p));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.async_of_pinned", "INVALID_VALUE SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       void* h = nullptr;
       a.Prepare(a.d.MemAllocHost(&h, 64));
       a(a.d.MemFreeAsync(reinterpret_cast<CUdeviceptr>(h), s));
       a(a.d.MemFreeHost(h));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.async_null", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.MemFreeAsync(p, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.async_inside", "INVALID_VALUE SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
       a(a.d.MemFreeAsync(p + 512, s));
       a(a.d.MemFreeAsync(p, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.async_on_other_stream", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
       CUstream t = nullptr;
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamSynchronize(s));
       a(a.d.MemFreeAsync(p, t));
       a(a.d.StreamSynchronize(t));
       (void)a.d.StreamDestroy(t);
       (void)a.d.StreamDestroy(s);
     }},
    {"free.plain_after_async", "SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
       a(a.d.MemFreeAsync(p, s));
       a(a.d.MemFree(p));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.plain_of_async_twice", "SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
       a(a.d.MemFree(p));
       a(a.d.MemFree(p));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.zero_from_pool", "SUCCESS 1 SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       p = 7;
       a(a.d.MemAllocAsync(&p, 0, s));
       a.Value(p == 0);
       a(a.d.MemFreeAsync(p, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.host_of_device", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAlloc(&p, 1024));
       a(a.d.MemFreeHost(reinterpret_cast<void*>(p)));
       a(a.d.MemFree(p));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.host_of_managed", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAllocManaged(&p, 1024, CU_MEM_ATTACH_GLOBAL));
       a(a.d.MemFreeHost(reinterpret_cast<void*>(p)));
       a(a.d.MemFree(p));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.host_null", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.MemFreeHost(nullptr));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.host_inside", "INVALID_VALUE SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       void* h = nullptr;
       a.Prepare(a.d.MemAllocHost(&h, 64));
       a(a.d.MemFreeHost(static_cast<char*>(h) + 16));
       a(a.d.MemFreeHost(h));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.host_of_registered", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       alignas(4096) static char page[4096];
       a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
       a(a.d.MemFreeHost(page));
       a(a.d.MemHostUnregister(page));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.unregister_pinned", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       void* h = nullptr;
       a.Prepare(a.d.MemAllocHost(&h, 64));
       a(a.d.MemHostUnregister(h));
       a(a.d.MemFreeHost(h));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.unregister_inside", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       alignas(4096) static char page[8192];
       a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
       a(a.d.MemHostUnregister(page + 4096));
       a(a.d.MemHostUnregister(page));
       (void)a.d.StreamDestroy(s);
     }},
    {"free.mapped", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       constexpr std::size_t kBytes = std::size_t{2} << 20;
       CUdeviceptr p = 0;
       CUmemGenericAllocationHandle h = 0;
       a.Prepare(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
       a.Prepare(a.d.MemCreate(&h, kBytes, &properties, 0));
       a.Prepare(a.d.MemMap(p, kBytes, 0, h, 0));
       a(a.d.MemFree(p));
       a(a.d.MemUnmap(p, kBytes));
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"free.module_global", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       CUdeviceptr p = 0;
       std::size_t bytes = 0;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.ModuleGetGlobal(&p, &bytes, m, "table"));
       a(a.d.MemFree(p));
       a(a.d.ModuleUnload(m));
     }},
    {"pool.destroy_live", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a.Prepare(a.d.MemAllocFromPoolAsync(&p, 1024, pool, s));
       a(a.d.MemPoolDestroy(pool));
       a(a.d.MemFreeAsync(p, s));
       a(a.d.StreamSynchronize(s));
       (void)a.d.StreamDestroy(s);
     }},
    {"pool.destroy_twice", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a(a.d.MemPoolDestroy(pool));
       a(a.d.MemPoolDestroy(pool));
       (void)a.d.StreamDestroy(s);
     }},
    {"pool.alloc_from_destroyed", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a.Prepare(a.d.MemPoolDestroy(pool));
       a(a.d.MemAllocFromPoolAsync(&p, 1024, pool, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"vmm.unmap_unreserved", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.MemUnmap(0x200000, std::size_t{2} << 20));
     }},
    {"vmm.free_twice", "SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       constexpr std::size_t kBytes = std::size_t{2} << 20;
       a.Prepare(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
       a(a.d.MemAddressFree(p, kBytes));
       a(a.d.MemAddressFree(p, kBytes));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::free_questions

namespace cuaudit::contract {
std::span<const Question> FreeQuestions() { return free_questions::kQuestions; }
}  // namespace cuaudit::contract
