// SPDX-License-Identifier: MIT
// External memory and semaphores, exported pools, and memory of the host as physical memory.
#include <unistd.h>

#include "suites/contract/partner.h"

namespace cuaudit::contract::sharing_questions {
namespace {

// Physical memory exported as a file descriptor, mapped and filled with 42.
struct Exported {
  explicit Exported(Asker& a) : asker(a), p(a.MemAddressReserve(kGranule)), h(a.MemCreate(kGranule, MemoryOfDevice(kFd))) {
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a.Prepare(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    a.Prepare(a.d.MemsetD8(p, 42, kGranule));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.MemExportToShareableHandle(&fd, h, kFd, 0));
  }
  // On success the descriptor is the driver's.
  CUresult Import(CUexternalMemory* out, unsigned flags = 0, unsigned long long size = kGranule) const {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
    from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    from.handle.fd = fd;
    from.size = size;
    from.flags = flags;
    return asker.d.ImportExternalMemory(out, &from);
  }
  Asker& asker;
  const CUdeviceptr p;
  const CUmemGenericAllocationHandle h;
  int fd = -1;
};

void TryImport(Asker& a, CUexternalMemoryHandleType type, int fd, unsigned long long size, unsigned flags) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
  CUexternalMemory memory = nullptr;
  from.type = type;
  from.handle.fd = fd;
  from.size = size;
  from.flags = flags;
  if (a(a.d.ImportExternalMemory(&memory, &from)) == CUDA_SUCCESS) (void)a.d.DestroyExternalMemory(memory);
}

void TrySemaphore(Asker& a, CUexternalSemaphoreHandleType type, int fd, unsigned flags) {
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC from{};
  CUexternalSemaphore semaphore = nullptr;
  from.type = type;
  from.handle.fd = fd;
  from.flags = flags;
  if (a(a.d.ImportExternalSemaphore(&semaphore, &from)) == CUDA_SUCCESS) (void)a.d.DestroyExternalSemaphore(semaphore);
}

void* AsHandle(int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); }

// A pool that was exported, and memory of it filled with 42.
struct ExportedPool {
  explicit ExportedPool(Asker& a) : s(a.StreamCreate()), pool(a.MemPoolCreate(PoolOfDevice(kFd))) {
    a.Prepare(a.d.MemPoolExportToShareableHandle(&fd, pool, kFd, 0));
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s));
    a.Prepare(a.d.MemsetD8Async(p, 42, 4096, s));
    a.Prepare(a.d.StreamSynchronize(s));
  }
  const CUstream s;
  const CUmemoryPool pool;
  CUdeviceptr p = 0;
  int fd = -1;
};

CUmemGenericAllocationHandle Physical(Asker& a, const CUmemLocation& location) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location;
  CUmemGenericAllocationHandle h = 0;
  a(a.d.MemCreate(&h, kGranule, &properties, 0));
  return h;
}

}  // namespace

void List(Questions& ask) {
  ask.Risky("external.import", "SUCCESS SUCCESS 42 SUCCESS SUCCESS", [](Ready& a, const Exported& exported) {
    CUexternalMemory memory = nullptr;
    CUdeviceptr p = 0;
    unsigned char out = 0;
    if (a(exported.Import(&memory)) != CUDA_SUCCESS) {
      close(exported.fd);
      return;
    }
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
    part.size = kGranule;
    if (a(a.d.ExternalMemoryGetMappedBuffer(&p, memory, &part)) == CUDA_SUCCESS) {
      a.Values(a.d.MemcpyDtoH(&out, p + 5, 1), out);
      a(a.d.MemFree(p));
    }
    a(a.d.DestroyExternalMemory(memory));
  });
  ask.Risky("external.import_dedicated", "SUCCESS SUCCESS", [](Ready& a, const Exported& exported) {
    CUexternalMemory memory = nullptr;
    if (a(exported.Import(&memory, CUDA_EXTERNAL_MEMORY_DEDICATED)) != CUDA_SUCCESS) {
      close(exported.fd);
      return;
    }
    a(a.d.DestroyExternalMemory(memory));
  });
  ask.Risky("external.import_bad_size", "INVALID_VALUE SUCCESS", [](Ready& a, const Exported& exported) {
    CUexternalMemory memory = nullptr;
    if (a(exported.Import(&memory, 0, 0)) != CUDA_SUCCESS) a(exported.Import(&memory, 0, 16 * kGranule));
  });
  ask.Risky("external.buffer_bounds", "INVALID_VALUE x3 SUCCESS", [](Ready& a, const Exported& exported) {
    CUexternalMemory memory = nullptr;
    if (!a.Prepare(exported.Import(&memory))) return;
    const auto map = [&](unsigned long long offset, unsigned long long size, unsigned flags) {
      CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
      part.offset = offset;
      part.size = size;
      part.flags = flags;
      CUdeviceptr p = 0;
      if (a(a.d.ExternalMemoryGetMappedBuffer(&p, memory, &part)) == CUDA_SUCCESS) (void)a.d.MemFree(p);
    };
    map(0, 2 * kGranule, 0);
    map(kGranule, 4096, 0);
    map(0, kGranule, 1);
    map(4096, 8192, 0);
  });
  ask.Risky("external.destroy_while_mapped", "SUCCESS SUCCESS 42 SUCCESS", [](Ready& a, const Exported& exported) {
    CUexternalMemory memory = nullptr;
    CUdeviceptr p = 0;
    unsigned char out = 0;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
    part.size = kGranule;
    if (!a.Prepare(exported.Import(&memory))) return;
    if (!a.Prepare(a.d.ExternalMemoryGetMappedBuffer(&p, memory, &part))) return;
    a(a.d.DestroyExternalMemory(memory));
    a(a.d.MemcpyDtoH(&out, p, 1), out);
    a(a.d.MemFree(p));
  });
  ask.Risky("external.mipmap", "SUCCESS x4", [](Ready& a, const Exported& exported) {
    CUexternalMemory memory = nullptr;
    CUmipmappedArray array = nullptr;
    CUarray level = nullptr;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC part{};
    part.arrayDesc = {64, 64, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    part.numLevels = 1;
    if (!a.Prepare(exported.Import(&memory))) return;
    if (a(a.d.ExternalMemoryGetMappedMipmappedArray(&array, memory, &part)) == CUDA_SUCCESS) {
      a(a.d.MipmappedArrayGetLevel(&level, array, 0));
      a(a.d.MipmappedArrayDestroy(array));
    }
    a(a.d.DestroyExternalMemory(memory));
  });
  ask.Risky("external.bad_imports", "UNKNOWN UNKNOWN INVALID_VALUE x3", [](Ready& a) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, -1, kGranule, 0);
    TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, ends[0], kGranule, 0);
    TryImport(a, Beyond<CUexternalMemoryHandleType>(99), ends[1], kGranule, 0);
    TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, ends[1], kGranule, 8);
    a(a.d.ImportExternalMemory(kIgnored, nullptr));
  });
  ask.Risky("external.windows", "NOT_SUPPORTED NOT_SUPPORTED", [](Ready& a) {
    TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32, 5, kGranule, 0);
    TrySemaphore(a, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32, 5, 0);
  });
  ask.Risky("external.destroy_null", "INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    a(a.d.DestroyExternalMemory(nullptr));
    a(a.d.DestroyExternalSemaphore(nullptr));
  });
  ask.Risky("external.bad_semaphores", "UNKNOWN UNKNOWN INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    TrySemaphore(a, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, -1, 0);
    TrySemaphore(a, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, ends[0], 0);
    TrySemaphore(a, Beyond<CUexternalSemaphoreHandleType>(99), ends[1], 0);
    a(a.d.ImportExternalSemaphore(kIgnored, nullptr));
  });
  ask.Risky("external.no_semaphores", "INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal{};
    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait{};
    CUexternalSemaphore none[1] = {nullptr};
    a(a.d.SignalExternalSemaphoresAsync(none, &signal, 0, nullptr));
    a(a.d.WaitExternalSemaphoresAsync(none, &wait, 0, nullptr));
  });
  ask.Risky("graphics.nothing", "INVALID_HANDLE INVALID_VALUE", [](Ready& a) {
    a(a.d.GraphicsUnregisterResource(nullptr));
    CUgraphicsResource none[1] = {nullptr};
    a(a.d.GraphicsMapResources(0, none, nullptr));
  });
  ask.Risky("vmm.dma_buf_as_told", "1 INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    int can = 0, fd = -1;
    const CUdeviceptr p = a.MemAlloc(kGranule);
    a.Prepare(a.d.DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    const CUresult result = a.d.MemGetHandleForAddressRange(&fd, p, kGranule, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    a.Value((result == CUDA_SUCCESS) == (can != 0));
    if (fd >= 0) close(fd);
    a(a.d.MemGetHandleForAddressRange(&fd, p, kGranule, Beyond<CUmemRangeHandleType>(9), 0));
    a(a.d.MemGetHandleForAddressRange(nullptr, p, kGranule, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  });
  ask.Risky("pool.pointer_of_exported", "SUCCESS SUCCESS 1 INVALID_VALUE INVALID_VALUE", [](Ready& a, const ExportedPool& exported) {
    CUmemPoolPtrExportData data{}, again{};
    a(a.d.MemPoolExportPointer(&data, exported.p));
    a(a.d.MemPoolExportPointer(&again, exported.p));
    a.Value(std::string(reinterpret_cast<char*>(&data), sizeof(data)) == std::string(reinterpret_cast<char*>(&again), sizeof(again)));
    a(a.d.MemPoolExportPointer(&again, exported.p + 256));
    a(a.d.MemPoolImportPointer(kIgnored, exported.pool, &data));
  });
  ask.Risky("pool.pointer_imported_here", "SUCCESS x4", [](Ready& a, const ExportedPool& exported) {
    CUmemPoolPtrExportData data{};
    CUmemoryPool pool = nullptr;
    CUdeviceptr q = 0;
    a.Prepare(a.d.MemPoolExportPointer(&data, exported.p));
    a(a.d.MemPoolImportFromShareableHandle(&pool, AsHandle(exported.fd), kFd, 0));
    if (a(a.d.MemPoolImportPointer(&q, pool, &data)) == CUDA_SUCCESS) a(a.d.MemFreeAsync(q, exported.s));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Risky("ipc.pool_memory", "SUCCESS SUCCESS 42 SUCCESS 1 SUCCESS INVALID_VALUE SUCCESS x3", [](Ready& a, ExportedPool& exported) {
    CUmemPoolPtrExportData data{};
    a.Prepare(a.d.MemPoolExportPointer(&data, exported.p));
    Partner partner(a, "pool_memory", exported.fd);
    partner.Give(&data, sizeof(data));
    partner.Finish();
    a(a.d.MemFreeAsync(exported.p, exported.s));
    exported.p = 0;
  });
  ask.Risky("ipc.pool_memory_freed", "SUCCESS SUCCESS", [](Ready& a, ExportedPool& exported) {
    CUmemPoolPtrExportData data{};
    a.Prepare(a.d.MemPoolExportPointer(&data, exported.p));
    a.Prepare(a.d.MemFreeAsync(exported.p, exported.s));
    a.Prepare(a.d.StreamSynchronize(exported.s));
    exported.p = 0;
    Partner partner(a, "pool_pointer", exported.fd);
    partner.Give(&data, sizeof(data));
    partner.Finish();
  });
  ask.Risky("ipc.two_contexts", "SUCCESS INVALID_HANDLE", [](Ready& a) {
    CUipcMemHandle handle{};
    const CUdeviceptr p = a.MemAlloc(kGranule);
    a.Prepare(a.d.IpcGetMemHandle(&handle, p));
    Partner partner(a, "two_contexts");
    partner.Give(&handle, sizeof(handle));
    partner.Finish();
  });
  ask.Risky("pool.host_access", "SUCCESS 0 SUCCESS 3", [](Ready& a) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CUmemAccess_flags flags{};
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const CUmemoryPool pool = a.MemPoolCreate(properties);
    a(a.d.MemPoolGetAccess(&flags, pool, &here), flags);
    a(a.d.MemPoolGetAccess(&flags, pool, &properties.location), flags);
  });
  ask.Risky("vmm.host_places", "SUCCESS SUCCESS INVALID_VALUE", [](Ready& a) {
    for (const CUmemLocationType type :
         {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT}) {
      const CUmemGenericAllocationHandle h = Physical(a, {type, 0});
      if (h != 0) (void)a.d.MemRelease(h);
    }
  });
  ask.Risky("vmm.host_sees_device_memory", "NOT_SUPPORTED", [](Ready& a) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemSetAccess(p, kGranule, &access, 1));
  });
  ask.Risky("array.map", "SUCCESS INVALID_VALUE SUCCESS SUCCESS", [](Ready& a) {
    CUarray array = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shape{64, 64, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING};
    a.Prepare(a.d.Array3DCreate(&array, &shape));
    const CUmemGenericAllocationHandle h = Physical(a, {CU_MEM_LOCATION_TYPE_DEVICE, 0});
    CUarrayMapInfo info{};
    info.resourceType = CU_RESOURCE_TYPE_ARRAY;
    info.resource.array = array;
    info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    info.subresource.sparseLevel.extentWidth = 64;
    info.subresource.sparseLevel.extentHeight = 64;
    info.subresource.sparseLevel.extentDepth = 1;
    info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    info.memHandle.memHandle = h;
    info.deviceBitMask = 1;
    if (a(a.d.MemMapArrayAsync(&info, 1, nullptr)) == CUDA_SUCCESS) {
      unsigned char bytes[16] = {7};
      unsigned char out[16] = {};
      a(a.d.MemcpyHtoA(array, 0, bytes, 16));
      a.Values(a.d.MemcpyAtoH(out, array, 0, 16), out[0]);
      info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
      a(a.d.MemMapArrayAsync(&info, 1, nullptr));
      a.Prepare(a.d.CtxSynchronize(nullptr));
    }
    a(a.d.MemRelease(h));
    a(a.d.ArrayDestroy(array));
  });
  ask.Risky("mipmapped.sparse", "SUCCESS SUCCESS 64 64 1 5 65536 0", [](Ready& a) {
    CUmipmappedArray array = nullptr;
    CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
    const CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
    if (a(a.d.MipmappedArrayCreate(&array, &shape, 11)) != CUDA_SUCCESS) return;
    a(a.d.MipmappedArrayGetSparseProperties(&tiles, array), tiles.tileExtent.width, tiles.tileExtent.height, tiles.tileExtent.depth,
      tiles.miptailFirstLevel, tiles.miptailSize, tiles.flags);
  });
  ask.Plain("range.host_ids", "SUCCESS 2 -1 SUCCESS 2 -1", [](Ready& a) {
    const CUdeviceptr p = a.MemAllocManaged(kGranule);
    const auto tell = [&](CUmem_range_attribute attribute) {
      int value = 77;
      a.Values(a.d.MemRangeGetAttribute(&value, sizeof(value), attribute, p, kGranule), value);
    };
    a(a.d.MemAdvise(p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_HOST, 0}));
    tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
    a(a.d.MemPrefetchAsync(p, kGranule, {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, nullptr));
    tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
    a.Prepare(a.d.CtxSynchronize(nullptr));
  });
}

}  // namespace cuaudit::contract::sharing_questions
