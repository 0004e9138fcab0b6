// SPDX-License-Identifier: MIT
// Memory pools beyond alloc and free: attributes, trim, sizes, access, places, shareable pools, the current pool of a place.
#include <unistd.h>

#include "suites/contract/question.h"

namespace cuaudit::contract::pool_attribute_questions {
namespace {

// A pool and a stream.
struct Pooled {
  explicit Pooled(Asker& a, const CUmemPoolProps& properties = PoolOfDevice())
      : asker(a), s(a.StreamCreate()), pool(a.MemPoolCreate(properties)) {}
  void Tell(CUmemPool_attribute attribute) const {
    cuuint64_t value = 0;
    asker.Values(asker.d.MemPoolGetAttribute(pool, attribute, &value), value);
  }
  Asker& asker;
  const CUstream s;
  const CUmemoryPool pool;
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("pool.defaults", "1 1 1 0 0 0 0 0", [](Ready&, const Pooled& pooled) {
    pooled.Tell(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
    pooled.Tell(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
    pooled.Tell(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
    pooled.Tell(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    pooled.Tell(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    pooled.Tell(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
  });
  ask.Risky("pool.high_marks", "3048 33554432 INVALID_VALUE SUCCESS SUCCESS 0 0", [](Ready& a, const Pooled& pooled) {
    CUdeviceptr p = 0, q = 0;
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 2048, pooled.pool, pooled.s));
    a.Prepare(a.d.MemAllocFromPoolAsync(&q, 1000, pooled.pool, pooled.s));
    a.Prepare(a.d.MemFreeAsync(p, pooled.s));
    a.Prepare(a.d.MemFreeAsync(q, pooled.s));
    a.Prepare(a.d.StreamSynchronize(pooled.s));
    pooled.Tell(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    cuuint64_t value = 5;
    a(a.d.MemPoolSetAttribute(pooled.pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    value = 0;
    a(a.d.MemPoolSetAttribute(pooled.pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    a(a.d.MemPoolSetAttribute(pooled.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
    pooled.Tell(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
  });
  ask.Plain("pool.reuse_flags", "SUCCESS 0 SUCCESS 1", [](Ready& a, const Pooled& pooled) {
    int value = 0;
    a(a.d.MemPoolSetAttribute(pooled.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value));
    pooled.Tell(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
    value = 7;
    a(a.d.MemPoolSetAttribute(pooled.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value));
    pooled.Tell(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
  });
  ask.Risky("pool.bad_attributes", "INVALID_VALUE x5", [](Ready& a, const Pooled& pooled) {
    cuuint64_t value = 0;
    a(a.d.MemPoolGetAttribute(pooled.pool, Beyond<CUmemPool_attribute>(0), &value));
    a(a.d.MemPoolGetAttribute(pooled.pool, Beyond<CUmemPool_attribute>(99), &value));
    a(a.d.MemPoolSetAttribute(pooled.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    a(a.d.MemPoolGetAttribute(pooled.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr));
    a(a.d.MemPoolGetAttribute(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  });
  ask.Risky("pool.trim", "33554432 SUCCESS 33554432 SUCCESS 0", [](Ready& a, const Pooled& pooled) {
    cuuint64_t value = ~cuuint64_t{0};
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemPoolSetAttribute(pooled.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pooled.pool, pooled.s));
    a.Prepare(a.d.StreamSynchronize(pooled.s));
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    a(a.d.MemPoolTrimTo(pooled.pool, 0));
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    a.Prepare(a.d.MemFreeAsync(p, pooled.s));
    a.Prepare(a.d.StreamSynchronize(pooled.s));
    a(a.d.MemPoolTrimTo(pooled.pool, 0));
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  });
  ask.Risky("pool.max_size", "SUCCESS 33554432 OUT_OF_MEMORY", [](Ready& a) {
    CUmemPoolProps properties = PoolOfDevice();
    properties.maxSize = std::size_t{1} << 20;
    const Pooled pooled(a, properties);
    CUdeviceptr q = 0;
    a(a.d.MemAllocFromPoolAsync(kIgnored, 4096, pooled.pool, pooled.s));
    pooled.Tell(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    a(a.d.MemAllocFromPoolAsync(&q, std::size_t{40} << 20, pooled.pool, pooled.s));
    if (q != 0) (void)a.d.MemFreeAsync(q, pooled.s);
  });
  ask.Risky("pool.set_access", "INVALID_DEVICE INVALID_DEVICE SUCCESS SUCCESS 3 INVALID_VALUE SUCCESS", [](Ready& a, const Pooled& pooled) {
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CUmemAccess_flags flags{};
    a(a.d.MemPoolSetAccess(pooled.pool, &access, 1));
    access = {{CU_MEM_LOCATION_TYPE_DEVICE, 99}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    a(a.d.MemPoolSetAccess(pooled.pool, &access, 1));
    access.location.id = 0;
    a(a.d.MemPoolSetAccess(pooled.pool, &access, 1));
    a(a.d.MemPoolGetAccess(&flags, pooled.pool, &access.location), flags);
    access.location.id = 99;
    a(a.d.MemPoolGetAccess(&flags, pooled.pool, &access.location));
    access.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
    a(a.d.MemPoolGetAccess(&flags, pooled.pool, &access.location));
  });
  ask.Risky("pool.bad_properties", "INVALID_VALUE x6", [](Ready& a) {
    CUmemoryPool pool = nullptr;
    CUmemPoolProps properties = PoolOfDevice();
    a(a.d.MemPoolCreate(nullptr, &properties));
    a(a.d.MemPoolCreate(&pool, nullptr));
    properties.location.id = 99;
    a(a.d.MemPoolCreate(&pool, &properties));
    properties = PoolOfDevice(CU_MEM_HANDLE_TYPE_WIN32);
    a(a.d.MemPoolCreate(&pool, &properties));
    properties = PoolOfDevice();
    properties.reserved[3] = 1;
    a(a.d.MemPoolCreate(&pool, &properties));
    properties = PoolOfDevice();
    properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    a(a.d.MemPoolCreate(&pool, &properties));
  });
  ask.Fresh("pool.on_host", "SUCCESS SUCCESS 1 9 SUCCESS SUCCESS 3", [](Ready& a) {
    CUmemPoolProps properties = PoolOfDevice();
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CUmemoryPool pool = nullptr;
    CUdeviceptr p = 0;
    unsigned type = 0;
    const CUstream s = a.StreamCreate();
    if (a(a.d.MemPoolCreate(&pool, &properties)) != CUDA_SUCCESS) return;
    if (a(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s)) != CUDA_SUCCESS) return;
    a.Prepare(a.d.StreamSynchronize(s));
    a.Values(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), type);
    int* const values = reinterpret_cast<int*>(p);
    values[5] = 9;
    a.Value(values[5]);
    CUmemAccess_flags flags{};
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    a(a.d.MemPoolSetAccess(pool, &access, 1));
    a(a.d.MemPoolGetAccess(&flags, pool, &access.location), flags);
  });
  ask.Fresh("pool.managed", "SUCCESS SUCCESS 1", [](Ready& a) {
    CUmemPoolProps properties = PoolOfDevice();
    properties.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    CUmemoryPool pool = nullptr;
    CUdeviceptr p = 0;
    unsigned managed = 7;
    const CUstream s = a.StreamCreate();
    if (a(a.d.MemPoolCreate(&pool, &properties)) != CUDA_SUCCESS) return;
    if (a(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s)) != CUDA_SUCCESS) return;
    a.Values(a.d.PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p), managed);
  });
  ask.Fresh("pool.of_place", "SUCCESS 1 SUCCESS 1 SUCCESS 1 INVALID_VALUE INVALID_VALUE", [](Ready& a, const Pooled& pooled) {
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr, known = nullptr;
    a.Prepare(a.d.DeviceGetDefaultMemPool(&known, 0));
    a(a.d.MemGetDefaultMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    a.Value(pool == known);
    a(a.d.MemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pooled.pool));
    a.Prepare(a.d.DeviceGetMemPool(&known, 0));
    a.Value(pooled.pool == known);
    a(a.d.MemGetMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    a.Value(pooled.pool == pool);
    a(a.d.MemGetDefaultMemPool(&pool, &here, Beyond<CUmemAllocationType>(9)));
    a(a.d.MemGetDefaultMemPool(nullptr, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  });
  ask.Fresh("pool.of_other_places", "SUCCESS x3 INVALID_VALUE", [](Ready& a) {
    CUmemLocation where{CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemoryPool pool = nullptr;
    a(a.d.MemGetDefaultMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED));
    where = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    a(a.d.MemGetDefaultMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED));
    where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    a(a.d.MemGetDefaultMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_MANAGED));
    where = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
    a(a.d.MemGetDefaultMemPool(&pool, &where, CU_MEM_ALLOCATION_TYPE_PINNED));
  });
  ask.Risky("pool.export", "SUCCESS 1 INVALID_VALUE x4", [](Ready& a) {
    const Pooled pooled(a, PoolOfDevice(kFd));
    const Pooled plain(a);
    CUmemoryPool standard = nullptr;
    int fd = -1, other = -1;
    a.Prepare(a.d.DeviceGetDefaultMemPool(&standard, 0));
    a(a.d.MemPoolExportToShareableHandle(&fd, pooled.pool, kFd, 0));
    a.Value(fd >= 0);
    a(a.d.MemPoolExportToShareableHandle(&other, pooled.pool, kFd, 1));
    a(a.d.MemPoolExportToShareableHandle(&other, pooled.pool, CU_MEM_HANDLE_TYPE_NONE, 0));
    a(a.d.MemPoolExportToShareableHandle(&other, plain.pool, kFd, 0));
    a(a.d.MemPoolExportToShareableHandle(&other, standard, kFd, 0));
    if (fd >= 0) close(fd);
  });
  ask.Risky("pool.import_here", "SUCCESS 0 INVALID_VALUE SUCCESS", [](Ready& a) {
    const Pooled pooled(a, PoolOfDevice(kFd));
    CUmemoryPool pool = nullptr;
    int fd = -1;
    a.Prepare(a.d.MemPoolExportToShareableHandle(&fd, pooled.pool, kFd, 0));
    void* const given = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
    if (a(a.d.MemPoolImportFromShareableHandle(&pool, given, kFd, 0)) != CUDA_SUCCESS) return;
    a.Value(pool == pooled.pool);
    a(a.d.MemAllocFromPoolAsync(kIgnored, 4096, pool, pooled.s));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Risky("pool.import_bad", "UNKNOWN x3", [](Ready& a) {
    CUmemoryPool pool = nullptr;
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    const auto import = [&](int fd) {
      void* const given = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
      a(a.d.MemPoolImportFromShareableHandle(&pool, given, kFd, 0));
    };
    import(-1);
    import(ends[0]);
    import(1000);
  });
  ask.Risky("pool.pointer_here", "INVALID_VALUE x3", [](Ready& a) {
    const Pooled pooled(a, PoolOfDevice(kFd));
    CUdeviceptr p = 0;
    CUmemPoolPtrExportData data{};
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pooled.pool, pooled.s));
    a.Prepare(a.d.StreamSynchronize(pooled.s));
    a(a.d.MemPoolExportPointer(&data, p));
    a(a.d.MemPoolImportPointer(kIgnored, pooled.pool, &data));
    a(a.d.MemPoolExportPointer(&data, p + 256));
  });
  ask.Risky("pool.pointer_not_exportable", "INVALID_VALUE INVALID_VALUE", [](Ready& a, const Pooled& pooled) {
    CUdeviceptr p = 0;
    CUmemPoolPtrExportData data{};
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pooled.pool, pooled.s));
    const CUdeviceptr q = a.MemAlloc(4096);
    a.Prepare(a.d.StreamSynchronize(pooled.s));
    a(a.d.MemPoolExportPointer(&data, p));
    a(a.d.MemPoolExportPointer(&data, q));
  });
  ask.Fresh("pool.of_pointer", "1 SUCCESS 1", [](Ready& a) {
    CUmemoryPool seen = nullptr;
    CUdeviceptr p = 0;
    const CUmemPoolProps properties = PoolOfDevice();
    const CUstream s = a.StreamCreate();
    const CUmemoryPool pool = a.MemPoolCreate(properties);
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s));
    a.Prepare(a.d.PointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    a.Value(seen == pool);
    a.Prepare(a.d.MemPoolDestroy(pool));
    a(a.d.PointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    a.Value(seen != nullptr);
  });
}

}  // namespace cuaudit::contract::pool_attribute_questions
