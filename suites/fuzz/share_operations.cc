// SPDX-License-Identifier: MIT
// What other processes and other interfaces share: descriptors, handles of IPC, external memory and semaphores, multicast.
#include <unistd.h>

#include <cstdint>

#include "include/cuaudit/semaphore.h"
#include "suites/fuzz/machine.h"

namespace cuaudit::fuzz {
namespace {

using driver::DriverRef;

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

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

int Exported(Machine& m) {
  int fd = -1;
  if (m.d.MemExportToShareableHandle(&fd, m.physical.At(m.input), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS) return -1;
  return fd;
}

CUDA_ARRAY3D_DESCRIPTOR Small() {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 16;
  shape.Height = 4;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  return shape;
}

constexpr Operation kOperations[] = {
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
      if (m.d.MemPoolExportToShareableHandle(&fd, m.pools.At(m.input), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS) return;
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

std::span<const Operation> ShareOperations() { return kOperations; }

}  // namespace cuaudit::fuzz
