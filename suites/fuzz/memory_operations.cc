// SPDX-License-Identifier: MIT
// Memory of every family: acquired, used, released.
#include "suites/fuzz/machine.h"

namespace cuaudit::fuzz {
namespace {

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

CUmemAllocationProp OnDevice() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = kDevice;
  return properties;
}

constexpr Operation kOperations[] = {
    [](Machine& m) { (void)m.d.MemAlloc(&m.memory.At(m.input), m.Size()); },
    [](Machine& m) {
      std::size_t pitch = 0;
      (void)m.d.MemAllocPitch(&m.memory.At(m.input), &pitch, m.input.Byte(), m.input.Below(16), 4);
    },
    [](Machine& m) { (void)m.d.MemAllocManaged(&m.memory.At(m.input), m.Size(), 1 + m.input.Below(2)); },
    [](Machine& m) { (void)m.d.MemFree(m.Address()); },
    [](Machine& m) { (void)m.d.MemFree(m.memory.At(m.input)); },
    [](Machine& m) { (void)m.d.MemAllocHost(&m.pinned.At(m.input), m.Size()); },
    [](Machine& m) { (void)m.d.MemHostAlloc(&m.pinned.At(m.input), m.Size(), m.input.Below(8)); },
    [](Machine& m) { (void)m.d.MemFreeHost(m.pinned.At(m.input)); },
    [](Machine& m) {
      char* const at = m.Host() + m.input.Below(4) * kPage;
      (void)m.d.MemHostRegister(at, (1 + m.input.Below(3)) * kPage, m.input.Below(4));
    },
    [](Machine& m) { (void)m.d.MemHostUnregister(m.Host() + m.input.Below(4) * kPage); },
    [](Machine& m) { (void)m.d.MemHostGetDevicePointer(&m.memory.At(m.input), m.pinned.At(m.input), 0); },
    [](Machine& m) { (void)m.d.MemAllocAsync(&m.memory.At(m.input), m.Size(), m.Stream()); },
    [](Machine& m) { (void)m.d.MemAllocFromPoolAsync(&m.memory.At(m.input), m.Size(), m.pools.At(m.input), m.Stream()); },
    [](Machine& m) { (void)m.d.MemFreeAsync(m.memory.At(m.input), m.Stream()); },
    [](Machine& m) {
      CUmemPoolProps properties{};
      properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location = kDevice;
      (void)m.d.MemPoolCreate(&m.pools.At(m.input), &properties);
    },
    [](Machine& m) { (void)m.d.MemPoolDestroy(m.pools.At(m.input)); },
    [](Machine& m) { (void)m.d.MemPoolTrimTo(m.pools.At(m.input), m.Size()); },
    [](Machine& m) { (void)m.d.DeviceGetDefaultMemPool(&m.pools.At(m.input), 0); },
    [](Machine& m) { (void)m.d.DeviceSetMemPool(0, m.pools.At(m.input)); },
    [](Machine& m) { (void)m.d.MemAddressReserve(&m.reservations.At(m.input), (1 + m.input.Below(2)) * kGranule, 0, 0, 0); },
    [](Machine& m) { (void)m.d.MemAddressFree(m.reservations.At(m.input), (1 + m.input.Below(2)) * kGranule); },
    [](Machine& m) {
      const CUmemAllocationProp properties = OnDevice();
      (void)m.d.MemCreate(&m.physical.At(m.input), kGranule, &properties, 0);
    },
    [](Machine& m) { (void)m.d.MemRelease(m.physical.At(m.input)); },
    [](Machine& m) { (void)m.d.MemMap(m.reservations.At(m.input) + m.input.Below(2) * kGranule, kGranule, 0, m.physical.At(m.input), 0); },
    [](Machine& m) { (void)m.d.MemUnmap(m.reservations.At(m.input) + m.input.Below(2) * kGranule, (1 + m.input.Below(2)) * kGranule); },
    [](Machine& m) {
      const CUmemAccessDesc access{kDevice, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      const CUdeviceptr at = m.reservations.At(m.input);
      if (m.d.MemSetAccess(at, kGranule, &access, 1) == CUDA_SUCCESS) m.memory.At(m.input) = at;
    },
    [](Machine& m) { (void)m.d.MemRetainAllocationHandle(&m.physical.At(m.input), reinterpret_cast<void*>(m.reservations.At(m.input))); },
    [](Machine& m) { (void)m.d.MemcpyHtoD(m.Address(), m.Host(), m.Size()); },
    [](Machine& m) { (void)m.d.MemcpyDtoH(m.Host(), m.Address(), m.Size()); },
    [](Machine& m) { (void)m.d.MemcpyDtoD(m.Address(), m.Address(), m.Size()); },
    [](Machine& m) { (void)m.d.MemsetD8(m.Address(), m.input.Byte(), m.Size()); },
    [](Machine& m) { (void)m.d.MemsetD2D32(m.Address(), m.input.Byte(), 7, m.input.Below(16), m.input.Below(4)); },
    [](Machine& m) { (void)m.d.MemcpyHtoDAsync(m.Address(), m.Host(), m.Size(), m.Stream()); },
    [](Machine& m) { (void)m.d.MemcpyDtoHAsync(m.Host(), m.Address(), m.Size(), m.Stream()); },
    [](Machine& m) { (void)m.d.MemcpyDtoDAsync(m.Address(), m.Address(), m.Size(), m.Stream()); },
    [](Machine& m) { (void)m.d.MemsetD8Async(m.Address(), m.input.Byte(), m.Size(), m.Stream()); },
    [](Machine& m) { (void)m.d.MemsetD16Async(m.Address(), 9, m.Size() / 2, m.Stream()); },
    [](Machine& m) {
      CUDA_MEMCPY2D copy{};
      copy.srcMemoryType = CU_MEMORYTYPE_HOST;
      copy.srcHost = m.Host();
      copy.srcPitch = 64;
      copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      copy.dstDevice = m.Address();
      copy.dstPitch = m.input.Byte();
      copy.WidthInBytes = m.input.Below(65);
      copy.Height = m.input.Below(8);
      (void)m.d.Memcpy2DAsync(&copy, m.Stream());
    },
    [](Machine& m) { (void)m.d.StreamAttachMemAsync(m.Stream(), m.memory.At(m.input), 0, 1U << m.input.Below(3)); },
    [](Machine& m) { (void)m.d.MemAdvise(m.Address(), m.Size(), CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice); },
    [](Machine& m) { (void)m.d.MemPrefetchAsync(m.Address(), m.Size(), kDevice, 0, m.Stream()); },
    [](Machine& m) {
      CUdeviceptr base = 0;
      std::size_t bytes = 0;
      (void)m.d.MemGetAddressRange(&base, &bytes, m.Address());
    },
    [](Machine& m) {
      std::size_t available = 0;
      std::size_t total = 0;
      (void)m.d.MemGetInfo(&available, &total);
    },
    [](Machine& m) {
      CUmemorytype type{};
      (void)m.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m.Address());
    },
};

}  // namespace

std::span<const Operation> MemoryOperations() { return kOperations; }

}  // namespace cuaudit::fuzz
