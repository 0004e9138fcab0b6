// SPDX-License-Identifier: MIT
// Memory of every family: acquired, used, released.
#include "suites/fuzz/machine.h"

namespace cuaudit::fuzz {
namespace {

using driver::DriverRef;

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

CUmemAllocationProp OnDevice() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = kDevice;
  return properties;
}

constexpr Operation kOperations[] = {
    [](Machine& m) {
      m.Call(&DriverRef::MemAlloc, {&m.memory.At(m.input), m.Size()});
    },
    [](Machine& m) {
      std::size_t pitch = 0;
      m.Call(&DriverRef::MemAllocPitch, {&m.memory.At(m.input), &pitch, m.input.Byte(), m.input.Below(16), 4});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemAllocManaged, {&m.memory.At(m.input), m.Size(), 1 + m.input.Below(2)});
    },
    [](Machine& m) { (void)m.d.MemFree(m.Address()); },
    [](Machine& m) { (void)m.d.MemFree(m.memory.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::MemAllocHost, {&m.pinned.At(m.input), m.Size()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemHostAlloc, {&m.pinned.At(m.input), m.Size(), m.input.Below(8)});
    },
    [](Machine& m) { (void)m.d.MemFreeHost(m.pinned.At(m.input)); },
    [](Machine& m) {
      char* const at = m.Host() + m.input.Below(4) * kPage;
      m.Call(&DriverRef::MemHostRegister, {at, (1 + m.input.Below(3)) * kPage, m.input.Below(4)});
    },
    [](Machine& m) { (void)m.d.MemHostUnregister(m.Host() + m.input.Below(4) * kPage); },
    [](Machine& m) {
      m.Call(&DriverRef::MemHostGetDevicePointer, {&m.memory.At(m.input), m.pinned.At(m.input), 0});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemAllocAsync, {&m.memory.At(m.input), m.Size(), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemAllocFromPoolAsync, {&m.memory.At(m.input), m.Size(), m.pools.At(m.input), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemFreeAsync, {m.memory.At(m.input), m.Stream()});
    },
    [](Machine& m) {
      CUmemPoolProps properties{};
      properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location = kDevice;
      (void)m.d.MemPoolCreate(&m.pools.At(m.input), &properties);
    },
    [](Machine& m) { (void)m.d.MemPoolDestroy(m.pools.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::MemPoolTrimTo, {m.pools.At(m.input), m.Size()});
    },
    [](Machine& m) { (void)m.d.DeviceGetDefaultMemPool(&m.pools.At(m.input), 0); },
    [](Machine& m) { (void)m.d.DeviceSetMemPool(0, m.pools.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::MemAddressReserve, {&m.reservations.At(m.input), (1 + m.input.Below(2)) * kGranule, 0, 0, 0});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemAddressFree, {m.reservations.At(m.input), (1 + m.input.Below(2)) * kGranule});
    },
    [](Machine& m) {
      const CUmemAllocationProp properties = OnDevice();
      (void)m.d.MemCreate(&m.physical.At(m.input), kGranule, &properties, 0);
    },
    [](Machine& m) { (void)m.d.MemRelease(m.physical.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::MemMap, {m.Reserved(), kGranule, 0, m.physical.At(m.input), 0});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemUnmap, {m.Reserved(), (1 + m.input.Below(2)) * kGranule});
    },
    [](Machine& m) {
      const CUmemAccessDesc access{kDevice, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      const CUdeviceptr at = m.reservations.At(m.input);
      if (m.d.MemSetAccess(at, kGranule, &access, 1) == CUDA_SUCCESS) m.memory.At(m.input) = at;
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemRetainAllocationHandle, {&m.physical.At(m.input), reinterpret_cast<void*>(m.reservations.At(m.input))});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyHtoD, {m.Address(), m.Host(), m.Size()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyDtoH, {m.Host(), m.Address(), m.Size()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyDtoD, {m.Address(), m.Address(), m.Size()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemsetD8, {m.Address(), m.input.Byte(), m.Size()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemsetD2D32, {m.Address(), m.input.Byte(), 7, m.input.Below(16), m.input.Below(4)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyHtoDAsync, {m.Address(), m.Host(), m.Size(), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyDtoHAsync, {m.Host(), m.Address(), m.Size(), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyDtoDAsync, {m.Address(), m.Address(), m.Size(), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemsetD8Async, {m.Address(), m.input.Byte(), m.Size(), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemsetD16Async, {m.Address(), 9, m.Size() / 2, m.Stream()});
    },
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
    [](Machine& m) {
      m.Call(&DriverRef::StreamAttachMemAsync, {m.Stream(), m.memory.At(m.input), 0, 1U << m.input.Below(3)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemAdvise, {m.Address(), m.Size(), CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemPrefetchAsync, {m.Address(), m.Size(), kDevice, 0, m.Stream()});
    },
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
