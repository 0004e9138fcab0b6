// SPDX-License-Identifier: MIT
// Descriptors and threads: which of them are the program's to close, which go with a context, which stay.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "suites/contract/context/away.h"

namespace cuaudit::contract::opened_questions {
namespace {

// Entries of a directory of /proc/self; the descriptor that reads it is counted each time.
int Count(const char* directory) {
  DIR* const listing = opendir(directory);
  if (listing == nullptr) return -1;
  int count = 0;
  while (readdir(listing) != nullptr) ++count;
  closedir(listing);
  return count;
}
int Descriptors() { return Count("/proc/self/fd"); }
int Threads() { return Count("/proc/self/task"); }

int IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0 ? 1 : 0; }
void* AsHandle(int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); }

CUexternalMemory Import(Asker& a, int fd) {
  CUexternalMemory memory = nullptr;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.handle.fd = fd;
  from.size = kGranule;
  a(a.d.ImportExternalMemory(&memory, &from));
  return memory;
}

// A handle of physical memory and a descriptor that was exported from it.
struct Exported {
  explicit Exported(Asker& a) : h(a.MemCreate(kGranule, MemoryOfDevice(kFd))) { a.Prepare(a.d.MemExportToShareableHandle(&fd, h, kFd, 0)); }
  const CUmemGenericAllocationHandle h;
  int fd = -1;
};

// A pool and a descriptor that was exported from it.
struct ExportedPool {
  explicit ExportedPool(Asker& a) : pool(a.MemPoolCreate(PoolOfDevice(kFd))) {
    a.Prepare(a.d.MemPoolExportToShareableHandle(&fd, pool, kFd, 0));
  }
  const CUmemoryPool pool;
  int fd = -1;
};

void Retain(Asker& a) { a.Prepare(a.d.CtxSetCurrent(a.DevicePrimaryCtxRetain())); }
void Release(Asker& a) { a.Prepare(a.d.DevicePrimaryCtxRelease(0)); }

}  // namespace

void List(Questions& ask) {
  ask.Risky("opened.export_is_one_descriptor", "SUCCESS 1 1 0 0", [](Ready& a) {
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule, MemoryOfDevice(kFd));
    const int before = Descriptors();
    int fd = -1;
    a(a.d.MemExportToShareableHandle(&fd, h, kFd, 0));
    a.Value(Descriptors() - before);
    a.Value(IsOpen(fd));
    a.Value(close(fd));
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.export_outlives_its_handle", "SUCCESS 1 0", [](Ready& a, const Exported& exported) {
    a(a.d.MemRelease(exported.h));
    a.Value(IsOpen(exported.fd));
    a.Value(close(exported.fd));
  });
  ask.Risky("opened.export_outlives_its_context", "SUCCESS 1 0", [](Initialised& a) {
    Retain(a);
    const Exported exported(a);
    a.Prepare(a.d.MemRelease(exported.h));
    a(a.d.DevicePrimaryCtxRelease(0));
    a.Value(IsOpen(exported.fd));
    a.Value(close(exported.fd));
  });
  ask.Risky("opened.import_leaves_the_descriptor", "SUCCESS 1 0 SUCCESS 1 0", [](Ready& a, const Exported& exported) {
    CUmemGenericAllocationHandle again = 0;
    const int before = Descriptors();
    a(a.d.MemImportFromShareableHandle(&again, AsHandle(exported.fd), kFd));
    a.Value(IsOpen(exported.fd));
    a.Value(Descriptors() - before);
    a(a.d.MemRelease(again));
    a.Value(IsOpen(exported.fd));
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.refused_export", "INVALID_VALUE -1 0", [](Ready& a) {
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule);
    const int before = Descriptors();
    int fd = -1;
    a(a.d.MemExportToShareableHandle(&fd, h, kFd, 0));
    a.Value(fd);
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.pool_export_is_one_descriptor", "SUCCESS 2 SUCCESS 3 1 1 0 0 1", [](Ready& a) {
    const CUmemoryPool pool = a.MemPoolCreate(PoolOfDevice(kFd));
    const int before = Descriptors();
    int fd = -1, other = -1;
    a(a.d.MemPoolExportToShareableHandle(&fd, pool, kFd, 0));
    a.Value(Descriptors() - before);
    a(a.d.MemPoolExportToShareableHandle(&other, pool, kFd, 0));
    a.Value(Descriptors() - before);
    a.Value(fd != other);
    a.Value(IsOpen(fd));
    a.Value(close(fd));
    a.Value(close(other));
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.pool_export_outlives_its_pool", "SUCCESS 1 0", [](Ready& a, const ExportedPool& exported) {
    a(a.d.MemPoolDestroy(exported.pool));
    a.Value(IsOpen(exported.fd));
    a.Value(close(exported.fd));
  });
  ask.Risky("opened.pool_import_leaves_the_descriptor", "SUCCESS 1 1 SUCCESS 1 0", [](Ready& a, const ExportedPool& exported) {
    CUmemoryPool again = nullptr;
    const int before = Descriptors();
    a(a.d.MemPoolImportFromShareableHandle(&again, AsHandle(exported.fd), kFd, 0));
    a.Value(IsOpen(exported.fd));
    a.Value(Descriptors() - before);
    a(a.d.MemPoolDestroy(again));
    a.Value(IsOpen(exported.fd));
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.pool_and_its_memory", "SUCCESS x4 0", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const int before = Descriptors();
    const CUmemoryPool pool = a.MemPoolCreate(PoolOfDevice(kFd));
    CUdeviceptr p = 0;
    a(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.StreamSynchronize(s));
    a(a.d.MemPoolDestroy(pool));
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.dma_buffer", "1 x3 0", [](Ready& a, const Exported& exported) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, exported.h, 0));
    a.Prepare(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    int can = 0, fd = -1;
    a.Prepare(a.d.DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    const int before = Descriptors();
    const CUresult result = a.d.MemGetHandleForAddressRange(&fd, p, kGranule, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    a.Value((result == CUDA_SUCCESS) == (can != 0));
    a.Value(Descriptors() - before == (can != 0 ? 1 : 0));
    a.Value(IsOpen(fd) == (can != 0 ? 1 : 0));
    if (fd >= 0) close(fd);
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.external_import_takes_the_descriptor", "SUCCESS 0 -1 SUCCESS 0 -1", [](Ready& a, const Exported& exported) {
    const int before = Descriptors();
    const CUexternalMemory memory = Import(a, exported.fd);
    a.Value(IsOpen(exported.fd));
    a.Value(Descriptors() - before);
    a(a.d.DestroyExternalMemory(memory));
    a.Value(IsOpen(exported.fd));
    a.Value(Descriptors() - before);
  });
  ask.Risky("opened.external_import_refused", "UNKNOWN 0", [](Ready& a) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    Import(a, ends[0]);
    a.Value(IsOpen(ends[0]));
  });
  ask.Risky("opened.external_import_closed_by_the_program", "SUCCESS x3", [](Ready& a, const Exported& exported) {
    const CUexternalMemory memory = Import(a, exported.fd);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
    part.size = kGranule;
    CUdeviceptr p = 0;
    (void)close(exported.fd);
    a(a.d.ExternalMemoryGetMappedBuffer(&p, memory, &part));
    a(a.d.DestroyExternalMemory(memory));
  });
  ask.Risky("opened.external_memory_never_destroyed", "SUCCESS SUCCESS 0", [](Initialised& a) {
    Retain(a);
    const Exported exported(a);
    Import(a, exported.fd);
    a(a.d.DevicePrimaryCtxRelease(0));
    a.Value(IsOpen(exported.fd));
  });
  ask.Risky("opened.context_again", "0 0", [](Initialised& a) {
    Retain(a);
    Release(a);
    const int descriptors = Descriptors(), threads = Threads();
    for (int i = 0; i < 3; ++i) {
      Retain(a);
      Release(a);
    }
    a.Value(Descriptors() - descriptors);
    a.Value(Threads() - threads);
  });
  ask.Risky("opened.context_created_again", "0 0", [](Initialised& a) {
    a.Prepare(a.d.CtxDestroy(a.CtxCreate()));
    const int descriptors = Descriptors(), threads = Threads();
    for (int i = 0; i < 3; ++i) a.Prepare(a.d.CtxDestroy(a.CtxCreate()));
    a.Value(Descriptors() - descriptors);
    a.Value(Threads() - threads);
  });
  // Whether a context has descriptors and threads of its own while it lives.
  ask.Risky("opened.by_a_primary_context", "1 1", [](Initialised& a) {
    Retain(a);
    Release(a);
    const int descriptors = Descriptors(), threads = Threads();
    Retain(a);
    a.Value(Descriptors() > descriptors);
    a.Value(Threads() > threads);
  });
  ask.Risky("opened.by_a_context", "1 1", [](Ready& a) {
    a.Prepare(a.d.CtxDestroy(a.CtxCreate()));
    const int descriptors = Descriptors(), threads = Threads();
    a.CtxCreate();
    a.Value(Descriptors() > descriptors);
    a.Value(Threads() > threads);
  });
  // Whether the context's descriptors and threads are gone when its release has returned.
  ask.Risky("opened.gone_with_a_primary_context", "1 1", [](Initialised& a) {
    Retain(a);
    const int descriptors = Descriptors(), threads = Threads();
    Release(a);
    a.Value(Descriptors() <= descriptors);
    a.Value(Threads() <= threads);
  });
  ask.Risky("opened.by_streams_and_events", "0 x4", [](Ready& a) {
    a.Prepare(a.d.StreamDestroy(a.StreamCreate()));
    const int descriptors = Descriptors(), threads = Threads();
    CUstream s = a.StreamCreate();
    CUevent e = a.EventCreate(), blocking = a.EventCreate(CU_EVENT_BLOCKING_SYNC);
    a.Value(Descriptors() - descriptors);
    a.Value(Threads() - threads);
    a.Prepare(a.d.EventDestroy(blocking));
    a.Prepare(a.d.EventDestroy(e));
    a.Prepare(a.d.StreamDestroy(s));
    a.Value(Descriptors() - descriptors);
    a.Value(Threads() - threads);
  });
  ask.Risky("opened.by_an_interprocess_event", "0", [](Ready& a) {
    CUevent e = a.EventCreate(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.IpcGetEventHandle(kIgnored, e));
    a.Prepare(a.d.EventDestroy(e));
    const int descriptors = Descriptors();
    e = a.EventCreate(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.IpcGetEventHandle(kIgnored, e));
    a.Prepare(a.d.EventDestroy(e));
    a.Value(Descriptors() - descriptors);
  });
  ask.Risky("opened.by_an_interprocess_handle", "0 1", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(kGranule);
    a.Prepare(a.d.IpcGetMemHandle(kIgnored, p));
    const int before = Descriptors();
    a.Prepare(a.d.IpcGetMemHandle(kIgnored, p));
    a.Value(Descriptors() - before);
    a.Prepare(a.d.MemFree(p));
    a.Value(Descriptors() <= before);
  });
  // A host function makes the driver start a thread; it is the context's.
  ask.Risky("opened.by_a_host_function", "0", [](Initialised& a) {
    for (int i = 0; i < 2; ++i) {
      Retain(a);
      a.Prepare(a.d.LaunchHostFunc(nullptr, Nothing, nullptr));
      a.Prepare(a.d.StreamSynchronize(nullptr));
      Release(a);
    }
    const int threads = Threads();
    Retain(a);
    a.Prepare(a.d.LaunchHostFunc(nullptr, Nothing, nullptr));
    a.Prepare(a.d.StreamSynchronize(nullptr));
    Release(a);
    a.Value(Threads() - threads);
  });
  ask.Risky("opened.by_a_green_context", "0 0", [](Ready& a) {
    a.Prepare(a.d.GreenCtxDestroy(Green(a)));
    const int descriptors = Descriptors(), threads = Threads();
    a.Prepare(a.d.GreenCtxDestroy(Green(a)));
    a.Value(Descriptors() - descriptors);
    a.Value(Threads() - threads);
  });
  ask.Risky("opened.by_pinned_and_registered_memory", "0 0", [](Ready& a) {
    alignas(4096) static char page[4096];
    a.Prepare(a.d.MemFreeHost(a.MemAllocHost(4096)));
    const int before = Descriptors();
    void* const h = a.MemAllocHost(4096);
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
    a.Value(Descriptors() - before);
    a.Prepare(a.d.MemHostUnregister(page));
    a.Prepare(a.d.MemFreeHost(h));
    a.Value(Descriptors() - before);
  });
}

}  // namespace cuaudit::contract::opened_questions
