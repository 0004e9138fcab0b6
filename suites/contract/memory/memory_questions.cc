// SPDX-License-Identifier: MIT
// Memory of the device: allocated, and put together of addresses and physical handles.
#include "suites/contract/question.h"

namespace cuaudit::contract::memory_questions {

void List(Questions& ask) {
  ask.Plain("memory.alloc_free", "SUCCESS SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    a(a.d.MemAlloc(&p, 1));
    a(a.d.MemFree(p));
  });
  ask.Plain("memory.alloc_zero", "INVALID_VALUE", [](Ready& a) { a(a.d.MemAlloc(kIgnored, 0)); });
  ask.Risky("memory.alloc_null", "INVALID_VALUE", [](Ready& a) { a(a.d.MemAlloc(nullptr, 16)); });
  ask.Plain("memory.alloc_too_much", "OUT_OF_MEMORY", [](Ready& a) { a(a.d.MemAlloc(kIgnored, std::size_t{1} << 50)); });
  ask.Plain("memory.alignment", "0", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(3);
    a.Value(static_cast<long long>(p % 256));
  });
  ask.Plain("memory.free_null", "SUCCESS", [](Ready& a) { a(a.d.MemFree(0)); });
  ask.Plain("memory.free_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemAlloc(&p, 4096));
    a(a.d.MemFree(p));
    a(a.d.MemFree(p));
  });
  ask.Plain("memory.free_inside", "INVALID_VALUE SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemAlloc(&p, 4096));
    a(a.d.MemFree(p + 256));
    a(a.d.MemFree(p));
  });
  ask.Plain("memory.free_garbage", "INVALID_VALUE", [](Ready& a) { a(a.d.MemFree(0x1234567800)); });
  ask.Plain("memory.pitch", "SUCCESS 1 1 INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    std::size_t pitch = 0;
    a(a.d.MemAllocPitch(&p, &pitch, 100, 4, 4));
    a.Value(pitch >= 100);
    a.Value(pitch % 32 == 0);
    (void)a.d.MemFree(p);
    a(a.d.MemAllocPitch(&p, &pitch, 100, 4, 3));
    a(a.d.MemAllocPitch(&p, &pitch, 0, 4, 4));
  });
  ask.Plain("memory.address_range", "SUCCESS 1 4096 NOT_FOUND", [](Ready& a) {
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemAlloc(&p, 4096));
    CUdeviceptr base = 0;
    std::size_t size = 0;
    a(a.d.MemGetAddressRange(&base, &size, p + 17));
    a.Value(base == p);
    a.Value(static_cast<long long>(size));
    (void)a.d.MemFree(p);
    a(a.d.MemGetAddressRange(&base, &size, 0x1234567800));
  });
  ask.Plain("memory.info", "SUCCESS 1", [](Ready& a) {
    std::size_t free = 0, total = 0;
    a(a.d.MemGetInfo(&free, &total));
    a.Value(free <= total && total > 0);
  });
  ask.Plain("memory.managed", "SUCCESS 7 SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    a(a.d.MemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    int* const values = reinterpret_cast<int*>(p);
    values[3] = 7;
    a.Value(values[3]);
    a(a.d.MemFree(p));
  });
  ask.Plain("memory.managed_flags", "INVALID_VALUE", [](Ready& a) { a(a.d.MemAllocManaged(kIgnored, 64, CU_MEM_ATTACH_SINGLE)); });
  ask.Plain("memory.pinned", "SUCCESS SUCCESS 1 SUCCESS", [](Ready& a) {
    void* h = nullptr;
    CUdeviceptr p = 0;
    a(a.d.MemHostAlloc(&h, 64, 0));
    a(a.d.MemHostGetDevicePointer(&p, h, 0));
    a.Value(p == reinterpret_cast<CUdeviceptr>(h));
    a(a.d.MemFreeHost(h));
  });
  ask.Plain("memory.pinned_flags", "SUCCESS 3", [](Ready& a) {
    void* h = nullptr;
    unsigned flags = 0;
    a.Prepare(a.d.MemHostAlloc(&h, 64, CU_MEMHOSTALLOC_PORTABLE));
    a(a.d.MemHostGetFlags(&flags, h), flags);
    (void)a.d.MemFreeHost(h);
  });
  ask.Plain("memory.pinned_bad_flags", "INVALID_VALUE", [](Ready& a) { a(a.d.MemHostAlloc(kIgnored, 64, 0x100)); });
  ask.Plain("memory.pinned_free_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    void* h = nullptr;
    a.Prepare(a.d.MemAllocHost(&h, 64));
    a(a.d.MemFreeHost(h));
    a(a.d.MemFreeHost(h));
  });
  ask.Plain("memory.pinned_free_foreign", "INVALID_VALUE", [](Ready& a) {
    int local = 0;
    a(a.d.MemFreeHost(&local));
  });
  ask.Plain("memory.pinned_free_as_device", "INVALID_VALUE SUCCESS", [](Ready& a) {
    void* h = nullptr;
    a.Prepare(a.d.MemAllocHost(&h, 64));
    a(a.d.MemFree(reinterpret_cast<CUdeviceptr>(h)));
    a(a.d.MemFreeHost(h));
  });
  ask.Plain("memory.register", "SUCCESS HOST_MEMORY_ALREADY_REGISTERED SUCCESS HOST_MEMORY_NOT_REGISTERED", [](Ready& a) {
    alignas(4096) static char page[8192];
    a(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemHostUnregister(page));
    a(a.d.MemHostUnregister(page));
  });
  ask.Plain("memory.register_bad", "INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    static char page[64];
    a(a.d.MemHostRegister(page, 0, 0));
    a(a.d.MemHostRegister(page, sizeof(page), 0x1000));
  });
  ask.Plain("copy.round_trip", "SUCCESS SUCCESS 42", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    int in = 42, out = 0;
    a(a.d.MemcpyHtoD(p, &in, sizeof(in)));
    a(a.d.MemcpyDtoH(&out, p, sizeof(out)), out);
  });
  ask.Plain("copy.beyond_end", "INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    static char big[1 << 16];
    a(a.d.MemcpyHtoD(p + (std::size_t{1} << 32), big, sizeof(big)));
  });
  ask.Plain("copy.null_target", "INVALID_VALUE", [](Ready& a) {
    int in = 1;
    a(a.d.MemcpyHtoD(0, &in, sizeof(in)));
  });
  ask.Plain("copy.zero_bytes", "SUCCESS", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.MemcpyDtoD(p, p, 0));
  });
  ask.Plain("copy.unified", "SUCCESS 5", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    int in = 5, out = 0;
    a.Prepare(a.d.Memcpy(p, reinterpret_cast<CUdeviceptr>(&in), sizeof(in)));
    a(a.d.Memcpy(reinterpret_cast<CUdeviceptr>(&out), p, sizeof(out)), out);
  });
  ask.Plain("copy.freed", "INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    a.Prepare(a.d.MemAlloc(&p, 4096));
    int out = 0;
    a.Prepare(a.d.MemFree(p));
    a(a.d.MemcpyDtoH(&out, p, sizeof(out)));
  });
  ask.Plain("copy.two_dimensions", "SUCCESS 6", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    unsigned char in[12] = {1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0};
    unsigned char out[9] = {};
    CUDA_MEMCPY2D up{};
    up.srcMemoryType = CU_MEMORYTYPE_HOST;
    up.srcHost = in;
    up.srcPitch = 4;
    up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    up.dstDevice = p;
    up.dstPitch = 16;
    up.WidthInBytes = 3;
    up.Height = 3;
    a(a.d.Memcpy2D(&up));
    a.Values(a.d.MemcpyDtoH(out, p + 16, 3), out[2]);
  });
  ask.Plain("copy.pitch_too_small", "INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    unsigned char in[12] = {};
    CUDA_MEMCPY2D up{};
    up.srcMemoryType = CU_MEMORYTYPE_HOST;
    up.srcHost = in;
    up.srcPitch = 2;
    up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    up.dstDevice = p;
    up.dstPitch = 16;
    up.WidthInBytes = 3;
    up.Height = 3;
    a(a.d.Memcpy2D(&up));
  });
  ask.Plain("memset.words", "SUCCESS SUCCESS 287454020", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    unsigned out = 0;
    a(a.d.MemsetD32(p, 0x11223344U, 8));
    a(a.d.MemcpyDtoH(&out, p + 28, sizeof(out)), out);
  });
  ask.Plain("memset.misaligned", "INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.MemsetD32(p + 1, 0, 1));
  });
  ask.Plain("memset.null", "INVALID_VALUE", [](Ready& a) { a(a.d.MemsetD8(0, 0, 1)); });
  ask.Plain("pointer.device", "SUCCESS 2 SUCCESS 1 SUCCESS 0", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    unsigned type = 0;
    CUcontext c = nullptr;
    unsigned managed = 9;
    a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), type);
    a(a.d.PointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    a.Value(c == a.context);
    a(a.d.PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p), managed);
  });
  // Whether it is live, beyond its end, freed; and whether the next owner of the same address has another one.
  ask.Plain("pointer.buffer_id", "SUCCESS 1 SUCCESS 1 INVALID_VALUE SUCCESS 1", [](Ready& a) {
    CUdeviceptr p = 0;
    unsigned long long first = 0, inside = 0, later = 0;
    a.Prepare(a.d.MemAlloc(&p, 4096));
    a(a.d.PointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    a.Value(first != 0);
    a(a.d.PointerGetAttribute(&inside, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 100));
    a.Value(inside == first);
    a.Prepare(a.d.MemFree(p));
    a(a.d.PointerGetAttribute(&later, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    const CUdeviceptr next = a.MemAlloc(4096);
    a(a.d.PointerGetAttribute(&later, CU_POINTER_ATTRIBUTE_BUFFER_ID, next));
    a.Value(later != first);
  });
  ask.Plain("pointer.unknown", "INVALID_VALUE", [](Ready& a) {
    int local = 0;
    unsigned type = 0;
    a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)));
  });
  ask.Plain("pointer.plural_unknown", "SUCCESS 0", [](Ready& a) {
    int local = 0;
    unsigned type = 7;
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void* out = &type;
    a(a.d.PointerGetAttributes(1, &wanted, &out, reinterpret_cast<CUdeviceptr>(&local)));
    a.Value(type);
  });

  ask.Plain("vmm.granularity", "SUCCESS 2097152", [](Ready& a) {
    const CUmemAllocationProp properties = MemoryOfDevice();
    std::size_t bytes = 0;
    a(a.d.MemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), bytes);
  });
  ask.Plain("vmm.life", "SUCCESS x4", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    a(a.d.MemsetD8(p, 1, kGranule));
    a(a.d.MemUnmap(p, kGranule));
    (void)a.d.MemUnmap(p, kGranule);
  });
  ask.Plain("vmm.odd_size", "INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    const CUmemAllocationProp properties = MemoryOfDevice();
    a(a.d.MemAddressReserve(kIgnored, 1000, 0, 0, 0));
    a(a.d.MemCreate(kIgnored, 1000, &properties, 0));
  });
  ask.Plain("vmm.map_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemMap(p, kGranule, 0, h, 0));
    (void)a.d.MemUnmap(p, kGranule);
  });
  ask.Plain("vmm.map_unreserved", "INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a(a.d.MemMap(0x200000, kGranule, 0, h, 0));
    (void)a.d.MemUnmap(p, kGranule);
  });
  ask.Plain("vmm.release_while_mapped", "SUCCESS SUCCESS", [](Ready& a) {
    const CUmemAllocationProp properties = MemoryOfDevice();
    CUmemGenericAllocationHandle h = 0;
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    a.Prepare(a.d.MemCreate(&h, kGranule, &properties, 0));
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemRelease(h));
    a(a.d.MemUnmap(p, kGranule));
  });
  // The mapping goes on, the handle that the program had is nobody's, and the mapping hands out one again.
  ask.Risky("vmm.released_while_mapped", "SUCCESS SUCCESS INVALID_VALUE SUCCESS x3 INVALID_VALUE", [](Ready& a) {
    CUmemGenericAllocationHandle again = 0;
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a.Prepare(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    a(a.d.MemRelease(h));
    a(a.d.MemsetD8(p, 1, 16));
    a(a.d.MemRelease(h));
    a(a.d.MemRetainAllocationHandle(&again, reinterpret_cast<void*>(p)));
    a(a.d.MemUnmap(p, kGranule));
    a(a.d.MemRelease(again));
    a(a.d.MemRelease(again));
  });
  ask.Risky("vmm.release_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a(a.d.MemRelease(h));
    a(a.d.MemRelease(h));
  });
  ask.Plain("vmm.free_while_mapped", "INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemAddressFree(p, kGranule));
    (void)a.d.MemUnmap(p, kGranule);
  });
  ask.Plain("vmm.unmap_unmapped", "SUCCESS", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    a.MemCreate(kGranule);
    a(a.d.MemUnmap(p, kGranule));
    (void)a.d.MemUnmap(p, kGranule);
  });
  ask.Plain("vmm.retain", "SUCCESS 1", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    CUmemGenericAllocationHandle again = 0;
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemRetainAllocationHandle(&again, reinterpret_cast<void*>(p)));
    a.Value(again == h);
    (void)a.d.MemRelease(again);
    (void)a.d.MemUnmap(p, kGranule);
  });
  ask.Risky("vmm.no_access", "INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemsetD8(p, 1, 16));
  });
  ask.Plain("vmm.access_unmapped", "INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    a.MemCreate(kGranule);
    a(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    (void)a.d.MemUnmap(p, kGranule);
  });
}

}  // namespace cuaudit::contract::memory_questions
