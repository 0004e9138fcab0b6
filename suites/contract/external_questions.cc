// SPDX-License-Identifier: MIT
// Memory and semaphores of other interfaces, and what is left of graphics without a display.
#include <unistd.h>

#include "suites/contract/question.h"

namespace cuaudit::contract::external_questions {
namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// Physical memory exported as a file descriptor, mapped and filled with 42.
struct Exported {
  explicit Exported(Asker& a) : asker(a) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = kFd;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    a.Prepare(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
    a.Prepare(a.d.MemCreate(&h, kBytes, &properties, 0));
    a.Prepare(a.d.MemMap(p, kBytes, 0, h, 0));
    a.Prepare(a.d.MemSetAccess(p, kBytes, &access, 1));
    a.Prepare(a.d.MemsetD8(p, 42, kBytes));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.MemExportToShareableHandle(&fd, h, kFd, 0));
  }
  ~Exported() {
    (void)asker.d.MemUnmap(p, kBytes);
    (void)asker.d.MemRelease(h);
    (void)asker.d.MemAddressFree(p, kBytes);
  }
  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;
  // On success the descriptor is the driver's.
  CUresult Import(CUexternalMemory* out, unsigned flags = 0, unsigned long long size = kBytes) const {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
    from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    from.handle.fd = fd;
    from.size = size;
    from.flags = flags;
    return asker.d.ImportExternalMemory(out, &from);
  }
  Asker& asker;
  CUdeviceptr p = 0;
  CUmemGenericAllocationHandle h = 0;
  int fd = -1;
};

void TryImport(Asker& a, CUexternalMemoryHandleType type, int fd, unsigned long long size, unsigned flags) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
  CUexternalMemory memory = nullptr;
  from.type = type;
  from.handle.fd = fd;
  from.size = size;
  from.flags = flags;
  if (a(a.d.ImportExternalMemory(&memory, &from)) == CUDA_SUCCESS) (void)a.d.DestroyExternalMemory(memory);
}

void TrySemaphore(Asker& a, CUexternalSemaphoreHandleType type, int fd, unsigned flags) {
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC from{};
  CUexternalSemaphore semaphore = nullptr;
  from.type = type;
  from.handle.fd = fd;
  from.flags = flags;
  if (a(a.d.ImportExternalSemaphore(&semaphore, &from)) == CUDA_SUCCESS) (void)a.d.DestroyExternalSemaphore(semaphore);
}

constexpr Question kQuestions[] = {
    {"external.import", "SUCCESS SUCCESS 42 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Exported exported(a);
       CUexternalMemory memory = nullptr;
       CUdeviceptr p = 0;
       unsigned char out = 0;
       if (a(exported.Import(&memory)) != CUDA_SUCCESS) {
         close(exported.fd);
         return;
       }
       CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
       part.size = kBytes;
       if (a(a.d.ExternalMemoryGetMappedBuffer(&p, memory, &part)) == CUDA_SUCCESS) {
         a.Prepare(a.d.MemcpyDtoH(&out, p + 5, 1));
         a.Value(out);
         a(a.d.MemFree(p));
       }
       a(a.d.DestroyExternalMemory(memory));
     }},
    {"external.import_dedicated", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Exported exported(a);
       CUexternalMemory memory = nullptr;
       if (a(exported.Import(&memory, CUDA_EXTERNAL_MEMORY_DEDICATED)) != CUDA_SUCCESS) {
         close(exported.fd);
         return;
       }
       a(a.d.DestroyExternalMemory(memory));
     }},
    {"external.import_bad_size", "INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Exported exported(a);
       CUexternalMemory memory = nullptr;
       if (a(exported.Import(&memory, 0, 0)) != CUDA_SUCCESS) a(exported.Import(&memory, 0, 16 * kBytes));
     }},
    {"external.buffer_bounds", "INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Exported exported(a);
       CUexternalMemory memory = nullptr;
       if (!a.Prepare(exported.Import(&memory))) return;
       const auto map = [&](unsigned long long offset, unsigned long long size, unsigned flags) {
         CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
         part.offset = offset;
         part.size = size;
         part.flags = flags;
         CUdeviceptr p = 0;
         if (a(a.d.ExternalMemoryGetMappedBuffer(&p, memory, &part)) == CUDA_SUCCESS) (void)a.d.MemFree(p);
       };
       map(0, 2 * kBytes, 0);
       map(kBytes, 4096, 0);
       map(0, kBytes, 1);
       map(4096, 8192, 0);
       (void)a.d.DestroyExternalMemory(memory);
     }},
    {"external.destroy_while_mapped", "SUCCESS SUCCESS 42 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Exported exported(a);
       CUexternalMemory memory = nullptr;
       CUdeviceptr p = 0;
       unsigned char out = 0;
       CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
       part.size = kBytes;
       if (!a.Prepare(exported.Import(&memory))) return;
       if (!a.Prepare(a.d.ExternalMemoryGetMappedBuffer(&p, memory, &part))) return;
       a(a.d.DestroyExternalMemory(memory));
       a(a.d.MemcpyDtoH(&out, p, 1));
       a.Value(out);
       a(a.d.MemFree(p));
     }},
    {"external.mipmap", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Exported exported(a);
       CUexternalMemory memory = nullptr;
       CUmipmappedArray array = nullptr;
       CUarray level = nullptr;
       CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC part{};
       part.arrayDesc = {64, 64, 0, CU_AD_FORMAT_FLOAT, 4, 0};
       part.numLevels = 1;
       if (!a.Prepare(exported.Import(&memory))) return;
       if (a(a.d.ExternalMemoryGetMappedMipmappedArray(&array, memory, &part)) == CUDA_SUCCESS) {
         a(a.d.MipmappedArrayGetLevel(&level, array, 0));
         a(a.d.MipmappedArrayDestroy(array));
       }
       a(a.d.DestroyExternalMemory(memory));
     }},
    {"external.bad_imports", "UNKNOWN UNKNOWN INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       int ends[2] = {-1, -1};
       if (pipe(ends) != 0) return;
       CUexternalMemory memory = nullptr;
       TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, -1, kBytes, 0);
       TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, ends[0], kBytes, 0);
       TryImport(a, Beyond<CUexternalMemoryHandleType>(99), ends[1], kBytes, 0);
       TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, ends[1], kBytes, 8);
       a(a.d.ImportExternalMemory(&memory, nullptr));
     }},
    {"external.windows", "NOT_SUPPORTED NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       TryImport(a, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32, 5, kBytes, 0);
       TrySemaphore(a, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32, 5, 0);
     }},
    {"external.destroy_null", "INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.DestroyExternalMemory(nullptr));
       a(a.d.DestroyExternalSemaphore(nullptr));
     }},
    {"external.bad_semaphores", "UNKNOWN UNKNOWN INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       int ends[2] = {-1, -1};
       if (pipe(ends) != 0) return;
       CUexternalSemaphore semaphore = nullptr;
       TrySemaphore(a, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, -1, 0);
       TrySemaphore(a, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, ends[0], 0);
       TrySemaphore(a, Beyond<CUexternalSemaphoreHandleType>(99), ends[1], 0);
       a(a.d.ImportExternalSemaphore(&semaphore, nullptr));
     }},
    {"external.no_semaphores", "INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal{};
       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait{};
       CUexternalSemaphore none[1] = {nullptr};
       a(a.d.SignalExternalSemaphoresAsync(none, &signal, 0, nullptr));
       a(a.d.WaitExternalSemaphoresAsync(none, &wait, 0, nullptr));
     }},
    {"graphics.nothing", "INVALID_HANDLE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.GraphicsUnregisterResource(nullptr));
       CUgraphicsResource none[1] = {nullptr};
       a(a.d.GraphicsMapResources(0, none, nullptr));
     }},
    {"vmm.dma_buf_as_told", "1 INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       int can = 0;
       int fd = -1;
       a.Prepare(a.d.MemAlloc(&p, kBytes));
       a.Prepare(a.d.DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
       const CUresult result = a.d.MemGetHandleForAddressRange(&fd, p, kBytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
       a.Value((result == CUDA_SUCCESS) == (can != 0));
       if (fd >= 0) close(fd);
       a(a.d.MemGetHandleForAddressRange(&fd, p, kBytes, Beyond<CUmemRangeHandleType>(9), 0));
       a(a.d.MemGetHandleForAddressRange(nullptr, p, kBytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
       (void)a.d.MemFree(p);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::external_questions

namespace cuaudit::contract {
std::span<const Question> ExternalQuestions() { return external_questions::kQuestions; }
}  // namespace cuaudit::contract
