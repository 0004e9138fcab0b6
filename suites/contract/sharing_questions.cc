// SPDX-License-Identifier: MIT
// Pools between processes, arrays whose memory comes later, and what else the first recording left open.
#include <unistd.h>

#include "suites/contract/partner.h"

namespace cuaudit::contract::sharing_questions {
namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

void* AsHandle(int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); }

// A pool that was exported, and memory of it filled with 42.
struct ExportedPool {
  explicit ExportedPool(Asker& a) : asker(a) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = kFd;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.MemPoolCreate(&pool, &properties));
    a.Prepare(a.d.MemPoolExportToShareableHandle(&fd, pool, kFd, 0));
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s));
    a.Prepare(a.d.MemsetD8Async(p, 42, 4096, s));
    a.Prepare(a.d.StreamSynchronize(s));
  }
  ~ExportedPool() {
    close(fd);
    if (p != 0) (void)asker.d.MemFreeAsync(p, s);
    (void)asker.d.StreamSynchronize(s);
    (void)asker.d.MemPoolDestroy(pool);
    (void)asker.d.StreamDestroy(s);
  }
  ExportedPool(const ExportedPool&) = delete;
  ExportedPool& operator=(const ExportedPool&) = delete;
  Asker& asker;
  CUstream s = nullptr;
  CUmemoryPool pool = nullptr;
  CUdeviceptr p = 0;
  int fd = -1;
};

CUmemGenericAllocationHandle Physical(Asker& a, const CUmemLocation& location) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location;
  CUmemGenericAllocationHandle h = 0;
  a(a.d.MemCreate(&h, kBytes, &properties, 0));
  return h;
}

constexpr Question kQuestions[] = {
    {"pool.pointer_of_exported", "SUCCESS SUCCESS 1 INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const ExportedPool exported(a);
       CUmemPoolPtrExportData data{};
       CUmemPoolPtrExportData again{};
       CUdeviceptr q = 0;
       a(a.d.MemPoolExportPointer(&data, exported.p));
       a(a.d.MemPoolExportPointer(&again, exported.p));
       a.Value(std::string(reinterpret_cast<char*>(&data), sizeof(data)) == std::string(reinterpret_cast<char*>(&again), sizeof(again)));
       a(a.d.MemPoolExportPointer(&again, exported.p + 256));
       a(a.d.MemPoolImportPointer(&q, exported.pool, &data));
     }},
    {"pool.pointer_imported_here", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const ExportedPool exported(a);
       CUmemPoolPtrExportData data{};
       CUmemoryPool pool = nullptr;
       CUdeviceptr q = 0;
       a.Prepare(a.d.MemPoolExportPointer(&data, exported.p));
       a(a.d.MemPoolImportFromShareableHandle(&pool, AsHandle(exported.fd), kFd, 0));
       if (a(a.d.MemPoolImportPointer(&q, pool, &data)) == CUDA_SUCCESS) a(a.d.MemFreeAsync(q, exported.s));
       a(a.d.MemPoolDestroy(pool));
     }},
    {"ipc.pool_memory", "SUCCESS SUCCESS 42 SUCCESS 1 SUCCESS INVALID_VALUE SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       ExportedPool exported(a);
       CUmemPoolPtrExportData data{};
       a.Prepare(a.d.MemPoolExportPointer(&data, exported.p));
       Partner partner(a, "pool_memory", exported.fd);
       partner.Give(&data, sizeof(data));
       partner.Finish();
       a(a.d.MemFreeAsync(exported.p, exported.s));
       exported.p = 0;
     }},
    {"ipc.pool_memory_freed", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       ExportedPool exported(a);
       CUmemPoolPtrExportData data{};
       a.Prepare(a.d.MemPoolExportPointer(&data, exported.p));
       a.Prepare(a.d.MemFreeAsync(exported.p, exported.s));
       a.Prepare(a.d.StreamSynchronize(exported.s));
       exported.p = 0;
       Partner partner(a, "pool_pointer", exported.fd);
       partner.Give(&data, sizeof(data));
       partner.Finish();
     }},
    {"ipc.two_contexts", "SUCCESS INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       CUipcMemHandle handle{};
       a.Prepare(a.d.MemAlloc(&p, kBytes));
       a.Prepare(a.d.IpcGetMemHandle(&handle, p));
       Partner partner(a, "two_contexts");
       partner.Give(&handle, sizeof(handle));
       partner.Finish();
       (void)a.d.MemFree(p);
     }},
    {"pool.host_access", "SUCCESS 0 SUCCESS 3", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
       CUmemoryPool pool = nullptr;
       CUmemAccess_flags flags{};
       CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a(a.d.MemPoolGetAccess(&flags, pool, &here));
       a.Value(flags);
       a(a.d.MemPoolGetAccess(&flags, pool, &properties.location));
       a.Value(flags);
       (void)a.d.MemPoolDestroy(pool);
     }},
    {"vmm.host_places", "SUCCESS SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       for (const CUmemLocationType type :
            {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT}) {
         const CUmemGenericAllocationHandle h = Physical(a, {type, 0});
         if (h != 0) (void)a.d.MemRelease(h);
       }
     }},
    {"vmm.host_sees_device_memory", "NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemGenericAllocationHandle h = 0;
       const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
       a.Prepare(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
       a.Prepare(a.d.MemCreate(&h, kBytes, &properties, 0));
       a.Prepare(a.d.MemMap(p, kBytes, 0, h, 0));
       a(a.d.MemSetAccess(p, kBytes, &access, 1));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"array.map", "SUCCESS INVALID_VALUE SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
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
         a.Prepare(a.d.MemcpyAtoH(out, array, 0, 16));
         a.Value(out[0]);
         info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
         a(a.d.MemMapArrayAsync(&info, 1, nullptr));
         a.Prepare(a.d.CtxSynchronize(nullptr));
       }
       a(a.d.MemRelease(h));
       a(a.d.ArrayDestroy(array));
     }},
    {"mipmapped.sparse", "SUCCESS SUCCESS 64 64 1 5 65536 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmipmappedArray array = nullptr;
       CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
       const CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
       if (a(a.d.MipmappedArrayCreate(&array, &shape, 11)) != CUDA_SUCCESS) return;
       a(a.d.MipmappedArrayGetSparseProperties(&tiles, array));
       a.Value(tiles.tileExtent.width);
       a.Value(tiles.tileExtent.height);
       a.Value(tiles.tileExtent.depth);
       a.Value(tiles.miptailFirstLevel);
       a.Value(static_cast<long long>(tiles.miptailSize));
       a.Value(tiles.flags);
       (void)a.d.MipmappedArrayDestroy(array);
     }},
    {"range.host_ids", "SUCCESS 2 -1 SUCCESS 2 -1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAllocManaged(&p, kBytes, CU_MEM_ATTACH_GLOBAL));
       const auto tell = [&](CUmem_range_attribute attribute) {
         int value = 77;
         a.Prepare(a.d.MemRangeGetAttribute(&value, sizeof(value), attribute, p, kBytes));
         a.Value(value);
       };
       a(a.d.MemAdvise(p, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_HOST, 0}));
       tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
       tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
       a(a.d.MemPrefetchAsync(p, kBytes, {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, nullptr));
       tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
       tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
       a.Prepare(a.d.CtxSynchronize(nullptr));
       (void)a.d.MemFree(p);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::sharing_questions

namespace cuaudit::contract {
std::span<const Question> SharingQuestions() { return sharing_questions::kQuestions; }
}  // namespace cuaudit::contract
