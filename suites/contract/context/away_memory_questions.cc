// SPDX-License-Identifier: MIT
// What calls about memory, its pools, what is exported of it and what streams do with it answer when no context is current, and when
// another one than the memory's is.
#include "suites/contract/context/away.h"

namespace cuaudit::contract::away_memory_questions {
namespace {

void* AsHandle(int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); }

// Physical memory, exported pools, external memory, sparse and deferred arrays beside the objects of Away.
struct Shared : Away {
  Shared(const Asker& asker, bool elsewhere) : Away(asker, elsewhere) {
    Prepare(d.CtxPushCurrent(context));
    managed = MemAllocManaged(kGranule);
    reserved = MemAddressReserve(2 * kGranule);
    handle = MemCreate(kGranule, MemoryOfDevice(kFd));
    spare = MemCreate(kGranule);
    Prepare(d.MemMap(reserved, kGranule, 0, handle, 0));
    Prepare(d.MemSetAccess(reserved, kGranule, &kReadWrite, 1));
    Prepare(d.MemExportToShareableHandle(&fd, handle, kFd, 0));
    int imported = -1;
    Prepare(d.MemExportToShareableHandle(&imported, handle, kFd, 0));
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
    from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    from.handle.fd = imported;
    from.size = kGranule;
    Prepare(d.ImportExternalMemory(&external, &from));
    exported = MemPoolCreate(PoolOfDevice(kFd));
    Prepare(d.MemPoolExportToShareableHandle(&pool_fd, exported, kFd, 0));
    Prepare(d.MemAllocFromPoolAsync(&block, 4096, exported, s));
    Prepare(d.StreamSynchronize(s));
    Prepare(d.MemPoolExportPointer(&pointer, block));
    const CUDA_ARRAY3D_DESCRIPTOR deferred_shape{64, 64, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING};
    const CUDA_ARRAY3D_DESCRIPTOR sparse_shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
    const CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    other = ArrayCreate(shape);
    Prepare(d.Array3DCreate(&deferred, &deferred_shape));
    Prepare(d.Array3DCreate(&sparse, &sparse_shape));
    Prepare(d.MipmappedArrayCreate(&sparse_mipmap, &sparse_shape, 2));
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = deferred;
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    map.subresource.sparseLevel.extentWidth = map.subresource.sparseLevel.extentHeight = 64;
    map.subresource.sparseLevel.extentDepth = 1;
    map.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    map.memHandle.memHandle = spare;
    map.deviceBitMask = 1;
    plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    plane.srcDevice = p;
    plane.dstDevice = p + 2048;
    plane.srcPitch = plane.dstPitch = 64;
    plane.WidthInBytes = 16;
    plane.Height = 4;
    peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    peer.srcDevice = p;
    peer.dstDevice = p + 2048;
    peer.srcContext = peer.dstContext = context;
    peer.srcPitch = peer.dstPitch = 64;
    peer.srcHeight = peer.dstHeight = 4;
    peer.WidthInBytes = 16;
    peer.Height = 4;
    peer.Depth = 1;
    how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    volume.src.type = volume.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    volume.src.op.ptr.ptr = p;
    volume.dst.op.ptr.ptr = p + 2048;
    volume.extent = {64, 2, 1};
    volume.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    to = p + 2048;
    from_address = p;
    buffer.size = kGranule;
    levels.arrayDesc = {64, 64, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    levels.numLevels = 1;
    operation.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = p;
    operation.writeValue.value = 0;  // `{}` sets the first member of the union alone
    operation.writeValue.flags = 0;
    Prepare(d.StreamGetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, &setting));
    Prepare(d.CtxSynchronize(nullptr));
    CtxPopCurrent();
  }

  CUdeviceptr managed, reserved, block = 0, to, from_address;
  CUmemGenericAllocationHandle handle, spare;
  int fd = -1, pool_fd = -1;
  CUexternalMemory external = nullptr;
  CUmemoryPool exported;
  CUmemPoolPtrExportData pointer{};
  CUarray other, deferred = nullptr, sparse = nullptr;
  CUmipmappedArray sparse_mipmap = nullptr;
  CUarrayMapInfo map{};
  CUDA_MEMCPY2D plane{};
  CUDA_MEMCPY3D_PEER peer{};
  CUmemcpyAttributes how{};
  CUDA_MEMCPY3D_BATCH_OP volume{};
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC levels{};
  CUstreamBatchMemOpParams operation{};
  CUstreamAttrValue setting{};
  CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t bytes = 64, page_bytes = kGranule, first = 0;
  cuuint64_t threshold = 4096;
  unsigned long long out = 0;
  int new_fd = -1;
  alignas(4096) static inline char fresh_page[4096];
};

CUresult RangeAttributes(Shared& a) {
  void* values[] = {&a.out};
  std::size_t size = sizeof(int);
  CUmem_range_attribute wanted = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
  return a.d.MemRangeGetAttributes(values, &size, &wanted, 1, a.managed, 4096);
}

CUresult PointerAttributes(Shared& a) {
  void* values[] = {&a.out};
  CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  return a.d.PointerGetAttributes(1, &wanted, values, a.p);
}

constexpr AwayRow<Shared> kMemory[] = {
    {"fill_16", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemsetD16(a.p, 1, 32); }},
    {"fill_2d_16", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemsetD2D16(a.p, 64, 1, 8, 4); }},
    {"fill_2d_32", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemsetD2D32(a.p, 64, 1, 4, 4); }},
    {"fill_async_2d_16", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemsetD2D16Async(a.p, 64, 1, 8, 4, a.s); }},
    {"copy_2d_unaligned", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.Memcpy2DUnaligned(&a.plane); }},
    {"copy_3d_peer", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.Memcpy3DPeer(&a.peer); }},
    {"copy_3d_peer_async", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.Memcpy3DPeerAsync(&a.peer, a.s); }},
    {"copy_array_to_array", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemcpyAtoA(a.other, 0, a.array, 0, 16); }},
    {"copy_array_to_device", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemcpyAtoD(a.p, a.array, 0, 16); }},
    {"copy_array_to_host", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemcpyAtoH(a.h, a.array, 0, 16); }},
    {"copy_device_to_array", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemcpyDtoA(a.array, 0, a.p, 16); }},
    {"copy_batch", "INVALID_VALUE", "SUCCESS",
     [](Shared& a) { return a.d.MemcpyBatchAsync(&a.to, &a.from_address, &a.bytes, 1, &a.how, &a.first, 1, a.s); }},
    {"copy_batch_3d", "INVALID_VALUE", "SUCCESS", [](Shared& a) { return a.d.Memcpy3DBatchAsync(1, &a.volume, 0, a.s); }},
    {"prefetch_batch", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.MemPrefetchBatchAsync(&a.managed, &a.page_bytes, 1, &a.device, &a.first, 1, 0, a.s); }},
    {"discard_batch", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemDiscardBatchAsync(&a.managed, &a.page_bytes, 1, 0, a.s); }},
    {"discard_and_prefetch", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.MemDiscardAndPrefetchBatchAsync(&a.managed, &a.page_bytes, 1, &a.device, &a.first, 1, 0, a.s); }},
    {"register", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemHostRegister(a.fresh_page, sizeof(a.fresh_page), 0); }},
    {"ipc_close", "INVALID_CONTEXT", "INVALID_VALUE", [](Shared& a) { return a.d.IpcCloseMemHandle(a.p); }},
    {"range_attributes", "INVALID_CONTEXT", "SUCCESS", RangeAttributes},
    {"pointer_attributes", "SUCCESS", "SUCCESS", PointerAttributes},
    {"array_plane", "INVALID_VALUE", "INVALID_VALUE", [](Shared& a) { return a.d.ArrayGetPlane(kIgnored, a.array, 0); }},
    {"array_sparse", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.ArrayGetSparseProperties(kIgnored, a.sparse); }},
    {"array_requirements_of_deferred", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.ArrayGetMemoryRequirements(kIgnored, a.deferred, 0); }},
    {"mipmap_sparse", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MipmappedArrayGetSparseProperties(kIgnored, a.sparse_mipmap); }},
    {"mipmap_requirements", "INVALID_VALUE", "INVALID_VALUE",
     [](Shared& a) { return a.d.MipmappedArrayGetMemoryRequirements(kIgnored, a.sparse_mipmap, 0); }},
    {"array_map", "INVALID_VALUE", "INVALID_VALUE", [](Shared& a) { return a.d.MemMapArrayAsync(&a.map, 1, a.s); }},
};

constexpr AwayRow<Shared> kShared[] = {
    {"physical_create", "SUCCESS", "SUCCESS",
     [](Shared& a) {
       const CUmemAllocationProp properties = MemoryOfDevice();
       return a.d.MemCreate(kIgnored, kGranule, &properties, 0);
     }},
    {"physical_map", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemMap(a.reserved + kGranule, kGranule, 0, a.spare, 0); }},
    {"physical_unmap", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemUnmap(a.reserved, kGranule); }},
    {"physical_release", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemRelease(a.spare); }},
    {"physical_access", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemGetAccess(&a.out, &a.device, a.reserved); }},
    {"physical_set_access", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemSetAccess(a.reserved, kGranule, &kReadWrite, 1); }},
    {"physical_export", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemExportToShareableHandle(&a.new_fd, a.handle, kFd, 0); }},
    {"physical_import", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemImportFromShareableHandle(kIgnored, AsHandle(a.fd), kFd); }},
    {"physical_properties", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemGetAllocationPropertiesFromHandle(kIgnored, a.handle); }},
    {"physical_retain", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.MemRetainAllocationHandle(kIgnored, reinterpret_cast<void*>(a.reserved)); }},
    {"physical_fill", "INVALID_CONTEXT", "SUCCESS", [](Shared& a) { return a.d.MemsetD8(a.reserved, 1, 64); }},
    {"physical_fill_async", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemsetD8Async(a.reserved, 1, 64, a.s); }},
    {"address_reserve", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemAddressReserve(kIgnored, kGranule, 0, 0, 0); }},
    {"address_free", "SUCCESS", "SUCCESS",
     [](Shared& a) {
       a.Prepare(a.d.MemUnmap(a.reserved, kGranule));
       return a.d.MemAddressFree(a.reserved, 2 * kGranule);
     }},
    {"dma_buffer", "INVALID_CONTEXT", "SUCCESS",
     [](Shared& a) { return a.d.MemGetHandleForAddressRange(&a.new_fd, a.reserved, kGranule, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0); }},
    {"pool_attribute", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.MemPoolGetAttribute(a.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &a.out); }},
    {"pool_set_attribute", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.MemPoolSetAttribute(a.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &a.threshold); }},
    {"pool_trim", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemPoolTrimTo(a.pool, 0); }},
    {"pool_access", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemPoolGetAccess(kIgnored, a.pool, &a.device); }},
    {"pool_set_access", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemPoolSetAccess(a.pool, &kReadWrite, 1); }},
    {"pool_export", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemPoolExportToShareableHandle(&a.new_fd, a.exported, kFd, 0); }},
    {"pool_import", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.MemPoolImportFromShareableHandle(kIgnored, AsHandle(a.pool_fd), kFd, 0); }},
    {"pool_export_pointer", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemPoolExportPointer(kIgnored, a.block); }},
    {"pool_import_pointer", "INVALID_VALUE", "INVALID_VALUE",
     [](Shared& a) { return a.d.MemPoolImportPointer(kIgnored, a.exported, &a.pointer); }},
    {"pool_of_device", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.DeviceSetMemPool(0, a.pool); }},
    {"pool_of_location", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.MemSetMemPool(&a.device, CU_MEM_ALLOCATION_TYPE_PINNED, a.pool); }},
    {"pool_free", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemFreeAsync(a.block, a.s); }},
    {"pool_free_plainly", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemFree(a.block); }},
    {"pool_create_and_destroy", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.MemPoolDestroy(a.MemPoolCreate()); }},
    {"external_destroy", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.DestroyExternalMemory(a.external); }},
    {"external_buffer", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.ExternalMemoryGetMappedBuffer(kIgnored, a.external, &a.buffer); }},
    {"external_mipmap", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.ExternalMemoryGetMappedMipmappedArray(kIgnored, a.external, &a.levels); }},
    {"batch_operations", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.StreamBatchMemOp(a.s, 1, &a.operation, 0); }},
    {"write_value_64", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.StreamWriteValue64(a.s, a.p, 1, 0); }},
    {"wait_value_64", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.StreamWaitValue64(a.s, a.p, 0, CU_STREAM_WAIT_VALUE_GEQ); }},
    {"stream_attribute", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.StreamGetAttribute(a.s, CU_STREAM_ATTRIBUTE_PRIORITY, &a.setting); }},
    {"stream_set_attribute", "SUCCESS", "SUCCESS",
     [](Shared& a) { return a.d.StreamSetAttribute(a.s, CU_STREAM_ATTRIBUTE_PRIORITY, &a.setting); }},
    {"stream_device", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.StreamGetDevice(a.s, kIgnored); }},
    {"stream_green_context", "SUCCESS", "SUCCESS", [](Shared& a) { return a.d.StreamGetGreenCtx(a.s, kIgnored); }},
};

}  // namespace

void List(Questions& ask) {
  AskAway(ask, kMemory);
  AskAway(ask, kShared);
}

}  // namespace cuaudit::contract::away_memory_questions
