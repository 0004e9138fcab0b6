// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::virtual_memory_questions {

void List(Questions& ask) {
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

}  // namespace cuaudit::contract::virtual_memory_questions
