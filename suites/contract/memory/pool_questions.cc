// SPDX-License-Identifier: MIT
// Stream-ordered memory and its pools.
#include "suites/contract/question.h"

namespace cuaudit::contract::pool_questions {
void List(Questions& ask) {
  ask.Plain("pool.async_round_trip", "SUCCESS x3", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr p = 0;
    a(a.d.MemAllocAsync(&p, 1024, s));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.StreamSynchronize(s));
  });
  ask.Plain("pool.async_zero", "SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.MemAllocAsync(kIgnored, 0, s));
  });
  ask.Plain("pool.async_free_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.MemFreeAsync(p, s));
  });
  ask.Plain("pool.sync_free_of_async", "SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
    a(a.d.MemFree(p));
  });
  ask.Plain("pool.create_destroy", "SUCCESS SUCCESS", [](Ready& a) {
    const CUmemPoolProps properties = PoolOfDevice();
    CUmemoryPool pool = nullptr;
    a(a.d.MemPoolCreate(&pool, &properties));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Plain("pool.create_bad", "INVALID_VALUE", [](Ready& a) {
    const CUmemPoolProps properties{};
    a(a.d.MemPoolCreate(kIgnored, &properties));
  });
  ask.Risky("pool.destroy_default", "INVALID_VALUE", [](Ready& a) {
    CUmemoryPool pool = nullptr;
    a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Fresh("pool.current_is_default", "1", [](Ready& a) {
    CUmemoryPool pool = nullptr, current = nullptr;
    a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
    a.Prepare(a.d.DeviceGetMemPool(&current, 0));
    a.Value(pool == current);
  });
  ask.Fresh("pool.destroy_resets_current", "1", [](Ready& a) {
    CUmemoryPool current = nullptr, standard = nullptr;
    const CUmemoryPool pool = a.MemPoolCreate();
    a.Prepare(a.d.DeviceSetMemPool(0, pool));
    a.Prepare(a.d.MemPoolDestroy(pool));
    a.Prepare(a.d.DeviceGetMemPool(&current, 0));
    a.Prepare(a.d.DeviceGetDefaultMemPool(&standard, 0));
    a.Value(current == standard);
  });
  ask.Plain("pool.threshold", "0 SUCCESS 4096", [](Ready& a) {
    cuuint64_t value = 9;
    const CUmemoryPool pool = a.MemPoolCreate();
    a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value), value);
    value = 4096;
    a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    value = 0;
    a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value), value);
  });
  ask.Plain("pool.reserved_cannot_be_set", "INVALID_VALUE", [](Ready& a) {
    cuuint64_t value = 1;
    const CUmemoryPool pool = a.MemPoolCreate();
    a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
  });
  ask.Plain("pool.used_and_reserved", "1024 33554432 0 0", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr p = 0;
    cuuint64_t value = 9;
    const CUmemoryPool pool = a.MemPoolCreate();
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 1024, pool, s));
    a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), value);
    a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value), value);
    a.Prepare(a.d.MemFreeAsync(p, s));
    a.Prepare(a.d.StreamSynchronize(s));
    a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), value);
    a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value), value);
  });
  ask.Plain("pool.access", "SUCCESS 3", [](Ready& a) {
    CUmemoryPool pool = nullptr;
    CUmemAccess_flags flags{};
    CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
    a(a.d.MemPoolGetAccess(&flags, pool, &location), flags);
  });
  ask.Plain("free.async_of_plain", "SUCCESS SUCCESS INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.MemAlloc(&p, 1024));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.StreamSynchronize(s));
    a(a.d.MemFree(p));
  });
  ask.Plain("free.async_of_managed", "NOT_SUPPORTED SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.MemAllocManaged(&p, 1024, CU_MEM_ATTACH_GLOBAL));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.MemFree(p));
  });
  ask.Plain("free.async_of_pinned", "INVALID_VALUE SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    void* h = nullptr;
    a.Prepare(a.d.MemAllocHost(&h, 64));
    a(a.d.MemFreeAsync(reinterpret_cast<CUdeviceptr>(h), s));
    a(a.d.MemFreeHost(h));
  });
  ask.Plain("free.async_null", "SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    a(a.d.MemFreeAsync(p, s));
  });
  ask.Plain("free.async_inside", "INVALID_VALUE SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
    a(a.d.MemFreeAsync(p + 512, s));
    a(a.d.MemFreeAsync(p, s));
  });
  ask.Plain("free.async_on_other_stream", "SUCCESS SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
    const CUstream t = a.StreamCreate();
    a.Prepare(a.d.StreamSynchronize(s));
    a(a.d.MemFreeAsync(p, t));
    a(a.d.StreamSynchronize(t));
  });
  ask.Plain("free.plain_after_async", "SUCCESS INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.MemFree(p));
  });
  ask.Plain("free.plain_of_async_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
    a(a.d.MemFree(p));
    a(a.d.MemFree(p));
  });
  ask.Plain("free.zero_from_pool", "SUCCESS 1 SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    p = 7;
    a(a.d.MemAllocAsync(&p, 0, s));
    a.Value(p == 0);
    a(a.d.MemFreeAsync(p, s));
  });
  ask.Risky("free.host_of_device", "INVALID_VALUE SUCCESS", [](Ready& a) {
    a.StreamCreate();
    const CUdeviceptr p = a.MemAlloc(1024);
    a(a.d.MemFreeHost(reinterpret_cast<void*>(p)));
    a(a.d.MemFree(p));
  });
  ask.Risky("free.host_of_managed", "INVALID_VALUE SUCCESS", [](Ready& a) {
    a.StreamCreate();
    const CUdeviceptr p = a.MemAllocManaged(1024);
    a(a.d.MemFreeHost(reinterpret_cast<void*>(p)));
    a(a.d.MemFree(p));
  });
  ask.Risky("free.host_null", "SUCCESS", [](Ready& a) {
    a.StreamCreate();
    a(a.d.MemFreeHost(nullptr));
  });
  ask.Plain("free.host_inside", "INVALID_VALUE SUCCESS", [](Ready& a) {
    a.StreamCreate();
    void* h = nullptr;
    a.Prepare(a.d.MemAllocHost(&h, 64));
    a(a.d.MemFreeHost(static_cast<char*>(h) + 16));
    a(a.d.MemFreeHost(h));
  });
  ask.Risky("free.host_of_registered", "INVALID_VALUE SUCCESS", [](Ready& a) {
    a.StreamCreate();
    alignas(4096) static char page[4096];
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemFreeHost(page));
    a(a.d.MemHostUnregister(page));
  });
  ask.Risky("free.unregister_pinned", "INVALID_VALUE SUCCESS", [](Ready& a) {
    a.StreamCreate();
    void* const h = a.MemAllocHost(64);
    a(a.d.MemHostUnregister(h));
    a(a.d.MemFreeHost(h));
  });
  ask.Risky("free.unregister_inside", "INVALID_VALUE SUCCESS", [](Ready& a) {
    a.StreamCreate();
    alignas(4096) static char page[8192];
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemHostUnregister(page + 4096));
    a(a.d.MemHostUnregister(page));
  });
  ask.Risky("free.mapped", "INVALID_VALUE SUCCESS", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemFree(p));
    a(a.d.MemUnmap(p, kGranule));
  });
  ask.Risky("free.module_global", "INVALID_VALUE SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUmodule m = a.ModuleLoadData();
    a.Prepare(a.d.ModuleGetGlobal(&p, kIgnored, m, "table"));
    a(a.d.MemFree(p));
    a(a.d.ModuleUnload(m));
  });
  ask.Plain("pool.destroy_live", "SUCCESS x3", [](Ready& a) {
    CUdeviceptr p = 0;
    const CUstream s = a.StreamCreate();
    const CUmemPoolProps properties = PoolOfDevice();
    CUmemoryPool pool = nullptr;
    a.Prepare(a.d.MemPoolCreate(&pool, &properties));
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 1024, pool, s));
    a(a.d.MemPoolDestroy(pool));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.StreamSynchronize(s));
  });
  ask.Risky("pool.destroy_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    a.StreamCreate();
    const CUmemoryPool pool = a.MemPoolCreate();
    a(a.d.MemPoolDestroy(pool));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Risky("pool.alloc_from_destroyed", "INVALID_VALUE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUmemoryPool pool = a.MemPoolCreate();
    a.Prepare(a.d.MemPoolDestroy(pool));
    a(a.d.MemAllocFromPoolAsync(kIgnored, 1024, pool, s));
  });
  ask.Plain("vmm.unmap_unreserved", "INVALID_VALUE", [](Ready& a) { a(a.d.MemUnmap(0x200000, std::size_t{2} << 20)); });
  ask.Plain("vmm.free_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemAddressReserve(&p, kGranule, 0, 0, 0));
    a(a.d.MemAddressFree(p, kGranule));
    a(a.d.MemAddressFree(p, kGranule));
  });
}

}  // namespace cuaudit::contract::pool_questions
