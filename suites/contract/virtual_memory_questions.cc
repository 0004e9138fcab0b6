// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::virtual_memory_questions {
namespace {

constexpr Question kQuestions[] = {
    {"vmm.granularity", "SUCCESS 2097152", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       std::size_t bytes = 0;
       a(a.d.MemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
       a.Value(static_cast<long long>(bytes));
     }},
    {"vmm.life", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Plain,
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
       CUmemAccessDesc access{};
       access.location = properties.location;
       access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
       a(a.d.MemMap(p, kBytes, 0, h, 0));
       a(a.d.MemSetAccess(p, kBytes, &access, 1));
       a(a.d.MemsetD8(p, 1, kBytes));
       a(a.d.MemUnmap(p, kBytes));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.odd_size", "INVALID_VALUE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUdeviceptr p = 0;
       CUmemGenericAllocationHandle h = 0;
       a(a.d.MemAddressReserve(&p, 1000, 0, 0, 0));
       a(a.d.MemCreate(&h, 1000, &properties, 0));
     }},
    {"vmm.map_twice", "SUCCESS INVALID_VALUE", Manner::Plain,
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
       a(a.d.MemMap(p, kBytes, 0, h, 0));
       a(a.d.MemMap(p, kBytes, 0, h, 0));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.map_unreserved", "INVALID_VALUE", Manner::Plain,
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
       a(a.d.MemMap(0x200000, kBytes, 0, h, 0));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.release_while_mapped", "SUCCESS SUCCESS", Manner::Plain,
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
       a(a.d.MemRelease(h));
       a(a.d.MemUnmap(p, kBytes));
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    // The mapping goes on, the handle that the program had is nobody's, and the mapping hands out one again.
    {"vmm.released_while_mapped", "SUCCESS SUCCESS INVALID_VALUE SUCCESS SUCCESS SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       constexpr std::size_t kBytes = std::size_t{2} << 20;
       const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
       CUdeviceptr p = 0;
       CUmemGenericAllocationHandle h = 0;
       CUmemGenericAllocationHandle again = 0;
       a.Prepare(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
       a.Prepare(a.d.MemCreate(&h, kBytes, &properties, 0));
       a.Prepare(a.d.MemMap(p, kBytes, 0, h, 0));
       a.Prepare(a.d.MemSetAccess(p, kBytes, &access, 1));
       a(a.d.MemRelease(h));
       a(a.d.MemsetD8(p, 1, 16));
       a(a.d.MemRelease(h));
       a(a.d.MemRetainAllocationHandle(&again, reinterpret_cast<void*>(p)));
       a(a.d.MemUnmap(p, kBytes));
       a(a.d.MemRelease(again));
       a(a.d.MemRelease(again));
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.release_twice", "SUCCESS INVALID_VALUE", Manner::Risky,
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
       a(a.d.MemRelease(h));
       a(a.d.MemRelease(h));
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.free_while_mapped", "INVALID_VALUE", Manner::Plain,
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
       a(a.d.MemAddressFree(p, kBytes));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.unmap_unmapped", "SUCCESS", Manner::Plain,
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
       a(a.d.MemUnmap(p, kBytes));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.retain", "SUCCESS 1", Manner::Plain,
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
       CUmemGenericAllocationHandle again = 0;
       a.Prepare(a.d.MemMap(p, kBytes, 0, h, 0));
       a(a.d.MemRetainAllocationHandle(&again, reinterpret_cast<void*>(p)));
       a.Value(again == h);
       (void)a.d.MemRelease(again);
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.no_access", "INVALID_VALUE", Manner::Risky,
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
       a(a.d.MemsetD8(p, 1, 16));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"vmm.access_unmapped", "INVALID_VALUE", Manner::Plain,
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
       CUmemAccessDesc access{};
       access.location = properties.location;
       access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
       a(a.d.MemSetAccess(p, kBytes, &access, 1));
       (void)a.d.MemUnmap(p, kBytes);
       (void)a.d.MemRelease(h);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::virtual_memory_questions

namespace cuaudit::contract {
std::span<const Question> VirtualMemoryQuestions() { return virtual_memory_questions::kQuestions; }
}  // namespace cuaudit::contract
