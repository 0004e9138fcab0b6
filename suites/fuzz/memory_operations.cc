// SPDX-License-Identifier: MIT
// Memory of every family: acquired, used, released. And what other processes and other interfaces share: descriptors, handles of IPC,
// external memory and semaphores, multicast.
#include <unistd.h>

#include <cstdint>

#include "include/cuaudit/semaphore.h"
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

constexpr Operation kMemory[] = {
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

// Closed at the end, unless a driver took it.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void Taken() { fd_ = -1; }

 private:
  int fd_;
};

// The descriptor of an export, -1 when that failed. One that was made all the same (`after`) is closed: the next run begins without it.
int IfExported(CUresult result, int fd) {
  if (result == CUDA_SUCCESS) return fd;
  const Descriptor made(fd);
  return -1;
}

int Exported(Machine& m) {
  int fd = -1;
  const CUresult result = m.d.MemExportToShareableHandle(&fd, m.physical.At(m.input), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  return IfExported(result, fd);
}

CUDA_ARRAY3D_DESCRIPTOR Small() {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 16;
  shape.Height = 4;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  return shape;
}

constexpr Operation kShared[] = {
    [](Machine& m) {
      CUmemAllocationProp properties{};
      properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location = kDevice;
      properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      (void)m.d.MemCreate(&m.physical.At(m.input), kGranule, &properties, 0);
    },
    [](Machine& m) {
      const Descriptor fd(Exported(m));
      (void)m.d.MemImportFromShareableHandle(&m.physical.At(m.input), reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get())),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    },
    [](Machine& m) {
      Descriptor fd(Exported(m));
      CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
      from.type = m.input.Below(8) == 0 ? CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF : CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
      from.handle.fd = fd.get();
      from.size = kGranule;
      if (m.d.ImportExternalMemory(&m.external_memory.At(m.input), &from) == CUDA_SUCCESS) fd.Taken();
    },
    [](Machine& m) {
      CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
      part.offset = m.input.Below(3) * kPage;
      part.size = m.Size();
      m.Call(&DriverRef::ExternalMemoryGetMappedBuffer, {&m.memory.At(m.input), m.external_memory.At(m.input), &part});
    },
    [](Machine& m) {
      CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC part{};
      part.arrayDesc = Small();
      part.numLevels = 1 + m.input.Below(3);
      m.Call(&DriverRef::ExternalMemoryGetMappedMipmappedArray, {&m.mipmapped.At(m.input), m.external_memory.At(m.input), &part});
    },
    [](Machine& m) { (void)m.d.DestroyExternalMemory(m.external_memory.At(m.input)); },
    [](Machine& m) {
      Descriptor fd(cuaudit_semaphore_create(m.input.Below(2)));
      CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC from{};
      from.type =
          m.input.Below(2) == 0 ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
      from.handle.fd = fd.get();
      if (m.d.ImportExternalSemaphore(&m.external_semaphores.At(m.input), &from) == CUDA_SUCCESS) fd.Taken();
    },
    [](Machine& m) {
      CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS value{};
      value.params.fence.value = m.input.Below(4);
      m.Call(&DriverRef::SignalExternalSemaphoresAsync, {&m.external_semaphores.At(m.input), &value, 1, m.Stream()});
    },
    [](Machine& m) {
      CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS value{};
      value.params.fence.value = m.input.Below(4);
      m.Call(&DriverRef::WaitExternalSemaphoresAsync, {&m.external_semaphores.At(m.input), &value, 1, m.Stream()});
    },
    [](Machine& m) { (void)m.d.DestroyExternalSemaphore(m.external_semaphores.At(m.input)); },
    [](Machine& m) { (void)m.d.IpcGetMemHandle(&m.ipc_memory, m.Address()); },
    [](Machine& m) {
      m.Call(&DriverRef::IpcOpenMemHandle,
             {&m.memory.At(m.input), m.ipc_memory, m.input.Below(4) == 0 ? 0 : CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS});
    },
    [](Machine& m) { (void)m.d.IpcCloseMemHandle(m.memory.At(m.input)); },
    [](Machine& m) { (void)m.d.EventCreate(&m.events.At(m.input), CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING); },
    [](Machine& m) { (void)m.d.IpcGetEventHandle(&m.ipc_event, m.events.At(m.input)); },
    [](Machine& m) { (void)m.d.IpcOpenEventHandle(&m.events.At(m.input), m.ipc_event); },
    [](Machine& m) {
      CUmemPoolProps properties{};
      properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      properties.location = kDevice;
      (void)m.d.MemPoolCreate(&m.pools.At(m.input), &properties);
    },
    [](Machine& m) {
      int fd = -1;
      const CUresult result = m.d.MemPoolExportToShareableHandle(&fd, m.pools.At(m.input), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
      fd = IfExported(result, fd);
      if (fd < 0) return;
      const Descriptor descriptor(fd);
      (void)m.d.MemPoolImportFromShareableHandle(&m.pools.At(m.input), reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    },
    [](Machine& m) { (void)m.d.MemPoolExportPointer(&m.pool_pointer, m.memory.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::MemPoolImportPointer, {&m.memory.At(m.input), m.pools.At(m.input), &m.pool_pointer});
    },
    [](Machine& m) {
      CUmulticastObjectProp properties{};
      properties.numDevices = 1 + m.input.Below(2);
      properties.size = kGranule;
      properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      (void)m.d.MulticastCreate(&m.multicast.At(m.input), &properties);
    },
    [](Machine& m) {
      m.Call(&DriverRef::MulticastAddDevice, {m.multicast.At(m.input), static_cast<CUdevice>(m.input.Below(2))});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MulticastBindMem, {m.multicast.At(m.input), 0, m.physical.At(m.input), 0, kGranule, 0});
    },
    [](Machine& m) { (void)m.d.MulticastUnbind(m.multicast.At(m.input), 0, 0, kGranule); },
    [](Machine& m) { (void)m.d.MemRelease(m.multicast.At(m.input)); },
};

}  // namespace

std::span<const Operation> MemoryOperations() { return kMemory; }
std::span<const Operation> ShareOperations() { return kShared; }

}  // namespace cuaudit::fuzz
