// SPDX-License-Identifier: MIT
// Virtual memory beyond a first mapping: shareable handles, parts and seams, hints, access rights, counts.
#include <fcntl.h>
#include <unistd.h>

#include "suites/contract/question.h"

namespace cuaudit::contract::virtual_export_questions {
namespace {

void* AsHandle(int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); }

// `pages` pages of address space and one handle of `size` pages; what is still mapped at the end goes too.
struct Virtual {
  explicit Virtual(Asker& a, std::size_t pages = 1, CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_NONE, std::size_t size = 1)
      : asker(a), bytes(pages * kGranule) {
    const CUmemAllocationProp properties = MemoryOfDevice(type);
    a.Prepare(a.d.MemAddressReserve(&p, bytes, 0, 0, 0));
    a.Prepare(a.d.MemCreate(&h, size * kGranule, &properties, 0));
  }
  ~Virtual() {
    (void)asker.d.MemUnmap(p, bytes);
    if (h != 0) (void)asker.d.MemRelease(h);
    (void)asker.d.MemAddressFree(p, bytes);
  }
  Virtual(const Virtual&) = delete;
  Virtual& operator=(const Virtual&) = delete;
  CUresult Open(std::size_t at, std::size_t size, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) const {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
    return asker.d.MemSetAccess(p + at * kGranule, size * kGranule, &access, 1);
  }
  Asker& asker;
  std::size_t bytes;
  CUdeviceptr p = 0;
  CUmemGenericAllocationHandle h = 0;
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("export.fd", "SUCCESS 1 SUCCESS 1 1", [](Ready& a) {
    const Virtual memory(a, 1, kFd);
    int fd = -1, other = -1;
    a(a.d.MemExportToShareableHandle(&fd, memory.h, kFd, 0));
    a.Value(fd >= 0);
    a(a.d.MemExportToShareableHandle(&other, memory.h, kFd, 0));
    a.Value(other >= 0 && other != fd);
    a.Value((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
    close(other);
  });
  ask.Risky("export.bad", "INVALID_VALUE x5", [](Ready& a, const Virtual& plain) {
    const Virtual memory(a, 1, kFd);
    int fd = -1;
    a(a.d.MemExportToShareableHandle(&fd, plain.h, kFd, 0));
    a(a.d.MemExportToShareableHandle(&fd, memory.h, kFd, 1));
    a(a.d.MemExportToShareableHandle(&fd, memory.h, CU_MEM_HANDLE_TYPE_WIN32, 0));
    a(a.d.MemExportToShareableHandle(nullptr, memory.h, kFd, 0));
    a(a.d.MemExportToShareableHandle(&fd, 0, kFd, 0));
  });
  ask.Risky("export.import_here", "SUCCESS 0 SUCCESS SUCCESS 66", [](Ready& a) {
    const Virtual memory(a, 2, kFd);
    CUmemGenericAllocationHandle again = 0;
    int fd = -1;
    unsigned char out = 0;
    a.Prepare(a.d.MemExportToShareableHandle(&fd, memory.h, kFd, 0));
    a(a.d.MemImportFromShareableHandle(&again, AsHandle(fd), kFd));
    a.Value(again == memory.h);
    a(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    a(a.d.MemMap(memory.p + kGranule, kGranule, 0, again, 0));
    a.Prepare(memory.Open(0, 2));
    a.Prepare(a.d.MemsetD8(memory.p, 66, 16));
    a.Values(a.d.MemcpyDtoH(&out, memory.p + kGranule + 3, 1), out);
  });
  ask.Risky("export.import_bad", "UNKNOWN x3 NOT_SUPPORTED", [](Ready& a) {
    CUmemGenericAllocationHandle h = 0;
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    a(a.d.MemImportFromShareableHandle(&h, AsHandle(-1), kFd));
    a(a.d.MemImportFromShareableHandle(&h, AsHandle(ends[0]), kFd));
    a(a.d.MemImportFromShareableHandle(&h, AsHandle(1000), kFd));
    a(a.d.MemImportFromShareableHandle(&h, AsHandle(ends[0]), CU_MEM_HANDLE_TYPE_WIN32));
  });
  ask.Risky("export.fd_keeps", "SUCCESS SUCCESS 1 0 5", [](Ready& a) {
    Virtual memory(a, 1, kFd);
    CUmemGenericAllocationHandle again = 0;
    CUmemAllocationProp properties{};
    int fd = -1;
    unsigned char out = 0;
    a.Prepare(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    a.Prepare(memory.Open(0, 1));
    a.Prepare(a.d.MemsetD8(memory.p, 5, 16));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.MemExportToShareableHandle(&fd, memory.h, kFd, 0));
    a.Prepare(a.d.MemUnmap(memory.p, kGranule));
    a.Prepare(a.d.MemRelease(memory.h));
    memory.h = 0;
    a(a.d.MemImportFromShareableHandle(&again, AsHandle(fd), kFd));
    close(fd);
    a(a.d.MemGetAllocationPropertiesFromHandle(&properties, again), properties.type, properties.requestedHandleTypes);
    a.Prepare(a.d.MemMap(memory.p, kGranule, 0, again, 0));
    a.Prepare(memory.Open(0, 1));
    a.Values(a.d.MemcpyDtoH(&out, memory.p + 7, 1), out);
  });
  ask.Risky("vmm.reserve_bad", "INVALID_VALUE x4 SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    a(a.d.MemAddressReserve(&p, 0, 0, 0, 0));
    a(a.d.MemAddressReserve(&p, kGranule, 3, 0, 0));
    a(a.d.MemAddressReserve(&p, kGranule, 0, 0, 1));
    a(a.d.MemAddressReserve(nullptr, kGranule, 0, 0, 0));
    a(a.d.MemAddressReserve(&p, kGranule, 4096, 0, 0));
  });
  ask.Plain("vmm.reserve_aligned", "SUCCESS 0", [](Ready& a) {
    CUdeviceptr p = 0;
    a(a.d.MemAddressReserve(&p, kGranule, std::size_t{1} << 26, 0, 0));
    a.Value(static_cast<long long>(p % (std::size_t{1} << 26)));
    (void)a.d.MemAddressFree(p, kGranule);
  });
  ask.Plain("vmm.hint", "SUCCESS 1 SUCCESS 0", [](Ready& a) {
    CUdeviceptr p = 0, q = 0, r = 0;
    a.Prepare(a.d.MemAddressReserve(&p, 2 * kGranule, 0, 0, 0));
    a.Prepare(a.d.MemAddressFree(p, 2 * kGranule));
    a(a.d.MemAddressReserve(&q, 2 * kGranule, 0, p, 0));
    a.Value(q == p);
    a(a.d.MemAddressReserve(&r, 2 * kGranule, 0, q, 0));
    a.Value(r == q);
    (void)a.d.MemAddressFree(q, 2 * kGranule);
    (void)a.d.MemAddressFree(r, 2 * kGranule);
  });
  ask.Risky("vmm.free_part", "INVALID_VALUE INVALID_VALUE SUCCESS", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(2 * kGranule);
    a(a.d.MemAddressFree(p, kGranule));
    a(a.d.MemAddressFree(p + kGranule, kGranule));
    a(a.d.MemAddressFree(p, 2 * kGranule));
  });
  ask.Risky("vmm.map_part", "NOT_SUPPORTED x3 INVALID_VALUE SUCCESS", [](Ready& a) {
    const Virtual memory(a, 2, CU_MEM_HANDLE_TYPE_NONE, 2);
    const auto map = [&](std::size_t at, std::size_t bytes, std::size_t offset, unsigned flags) {
      a(a.d.MemMap(memory.p + at, bytes, offset, memory.h, flags));
      (void)a.d.MemUnmap(memory.p + at, bytes);
    };
    map(0, kGranule, 0, 0);
    map(0, kGranule, kGranule, 0);
    map(4096, kGranule, 0, 0);
    map(0, 2 * kGranule, 0, 1);
    map(kGranule, 2 * kGranule, 0, 0);
  });
  // How far beyond one reserved page a mapping is still accepted.
  ask.Risky("vmm.map_beyond", "INVALID_VALUE x8", [](Ready& a) {
    const Virtual memory(a);
    for (const std::size_t at : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 512U}) {
      if (a(a.d.MemMap(memory.p + at * kGranule, kGranule, 0, memory.h, 0)) == CUDA_SUCCESS) {
        a.Prepare(a.d.MemUnmap(memory.p + at * kGranule, kGranule));
      }
    }
  });
  ask.Risky("vmm.unmap_part", "INVALID_VALUE SUCCESS", [](Ready& a) {
    const Virtual memory(a, 2, CU_MEM_HANDLE_TYPE_NONE, 2);
    a.Prepare(a.d.MemMap(memory.p, 2 * kGranule, 0, memory.h, 0));
    a(a.d.MemUnmap(memory.p, kGranule));
    a(a.d.MemUnmap(memory.p, 2 * kGranule));
  });
  ask.Plain("vmm.across_seam", "SUCCESS x3 9 SUCCESS", [](Ready& a) {
    const Virtual memory(a, 2);
    unsigned char out[16] = {};
    const CUmemGenericAllocationHandle second = a.MemCreate(kGranule);
    a.Prepare(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    a.Prepare(a.d.MemMap(memory.p + kGranule, kGranule, 0, second, 0));
    a(memory.Open(0, 2));
    a(a.d.MemsetD8(memory.p + kGranule - 8, 9, 16));
    a(a.d.MemcpyDtoH(out, memory.p + kGranule - 8, 16), out[15]);
    a(a.d.MemUnmap(memory.p, 2 * kGranule));
  });
  ask.Plain("vmm.map_at_two_places", "SUCCESS SUCCESS 4", [](Ready& a) {
    const Virtual memory(a, 2);
    unsigned char out = 0;
    a(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    a(a.d.MemMap(memory.p + kGranule, kGranule, 0, memory.h, 0));
    a.Prepare(memory.Open(0, 2));
    a.Prepare(a.d.MemsetD8(memory.p, 4, 16));
    a.Values(a.d.MemcpyDtoH(&out, memory.p + kGranule, 1), out);
  });
  ask.Risky("vmm.access_rights", "SUCCESS 0 SUCCESS 3 SUCCESS 1 SUCCESS 0", [](Ready& a, const Virtual& memory) {
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    unsigned long long flags = 77;
    a.Prepare(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    const auto tell = [&] { a(a.d.MemGetAccess(&flags, &here, memory.p), flags); };
    tell();
    a.Prepare(memory.Open(0, 1));
    tell();
    a.Prepare(memory.Open(0, 1, CU_MEM_ACCESS_FLAGS_PROT_READ));
    tell();
    a.Prepare(memory.Open(0, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    tell();
  });
  ask.Risky("vmm.access_bad", "INVALID_VALUE x6", [](Ready& a, const Virtual& memory) {
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, Beyond<CUmemAccess_flags>(2)};
    unsigned long long flags = 0;
    a.Prepare(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    a(a.d.MemSetAccess(memory.p, kGranule, &access, 1));
    access = {{CU_MEM_LOCATION_TYPE_DEVICE, 99}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    a(a.d.MemSetAccess(memory.p, kGranule, &access, 1));
    access.location.id = 0;
    a(a.d.MemSetAccess(memory.p, kGranule, &access, 0));
    a(a.d.MemSetAccess(memory.p, 4096, &access, 1));
    a(a.d.MemSetAccess(memory.p + 4096, kGranule, &access, 1));
    a(a.d.MemGetAccess(&flags, nullptr, memory.p));
  });
  ask.Risky("vmm.access_of_unmapped", "INVALID_VALUE SUCCESS", [](Ready& a, const Virtual& memory) {
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    unsigned long long flags = 0;
    const CUdeviceptr plain = a.MemAlloc(4096);
    a(a.d.MemGetAccess(&flags, &here, memory.p));
    a(a.d.MemGetAccess(&flags, &here, plain));
  });
  ask.Risky("vmm.bad_properties", "INVALID_VALUE INVALID_VALUE INVALID_DEVICE INVALID_VALUE x4", [](Ready& a) {
    CUmemGenericAllocationHandle h = 0;
    CUmemAllocationProp properties = MemoryOfDevice();
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    a(a.d.MemCreate(&h, kGranule, &properties, 0));
    properties = MemoryOfDevice();
    properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    a(a.d.MemCreate(&h, kGranule, &properties, 0));
    properties = MemoryOfDevice();
    properties.location.id = 99;
    a(a.d.MemCreate(&h, kGranule, &properties, 0));
    properties = MemoryOfDevice();
    a(a.d.MemCreate(&h, kGranule, &properties, 1));
    a(a.d.MemCreate(&h, 0, &properties, 0));
    a(a.d.MemCreate(nullptr, kGranule, &properties, 0));
    properties = MemoryOfDevice(CU_MEM_HANDLE_TYPE_WIN32);
    a(a.d.MemCreate(&h, kGranule, &properties, 0));
  });
  ask.Risky("vmm.granularities", "SUCCESS 2097152 SUCCESS 2097152 INVALID_VALUE INVALID_VALUE SUCCESS 2097152", [](Ready& a) {
    CUmemAllocationProp properties = MemoryOfDevice(kFd);
    std::size_t bytes = 0;
    a(a.d.MemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), bytes);
    a(a.d.MemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), bytes);
    a(a.d.MemGetAllocationGranularity(&bytes, &properties, Beyond<CUmemAllocationGranularity_flags>(9)));
    a(a.d.MemGetAllocationGranularity(nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    properties = MemoryOfDevice();
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    a(a.d.MemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), bytes);
  });
  ask.Fresh("vmm.on_host", "SUCCESS x3 3 8 SUCCESS 8", [](Ready& a) {
    CUmemAllocationProp properties = MemoryOfDevice();
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CUmemGenericAllocationHandle h = 0;
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    if (a(a.d.MemCreate(&h, kGranule, &properties, 0)) != CUDA_SUCCESS) return;
    if (a(a.d.MemMap(p, kGranule, 0, h, 0)) != CUDA_SUCCESS) return;
    const CUmemAccessDesc access[2] = {{{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                       {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    if (a(a.d.MemSetAccess(p, kGranule, access, 2)) != CUDA_SUCCESS) return;
    unsigned long long flags = 0;
    a.Values(a.d.MemGetAccess(&flags, &access[0].location, p), flags);
    unsigned char* const bytes = reinterpret_cast<unsigned char*>(p);
    unsigned char out = 0;
    bytes[100] = 8;
    a.Value(bytes[100]);
    a(a.d.MemcpyDtoH(&out, p + 100, 1), out);
  });
  ask.Risky("vmm.retain_counts", "INVALID_VALUE SUCCESS x3 INVALID_VALUE", [](Ready& a, Virtual& memory) {
    CUmemGenericAllocationHandle again = 0;
    a(a.d.MemRetainAllocationHandle(&again, reinterpret_cast<void*>(memory.p)));
    a.Prepare(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    a(a.d.MemRetainAllocationHandle(&again, reinterpret_cast<void*>(memory.p + 100)));
    a.Prepare(a.d.MemUnmap(memory.p, kGranule));
    a(a.d.MemRelease(memory.h));
    a(a.d.MemRelease(again));
    a(a.d.MemRelease(again));
    memory.h = 0;
  });
  ask.Risky("vmm.pointer", "SUCCESS 2 SUCCESS 1 0 1 2097152 1 3 SUCCESS 1 2097152", [](Ready& a) {
    const Virtual memory(a, 2, kFd);
    unsigned value = 77;
    CUcontext context = nullptr;
    CUdeviceptr base = 0;
    std::size_t size = 0;
    a.Prepare(a.d.MemMap(memory.p, kGranule, 0, memory.h, 0));
    a.Prepare(memory.Open(0, 1));
    a(a.d.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory.p + 5), value);
    a(a.d.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory.p));
    a.Value(context == nullptr);
    a.Values(a.d.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory.p), value);
    a.Prepare(a.d.PointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory.p + 5));
    a.Value(base == memory.p);
    a.Values(a.d.PointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, memory.p), size);
    unsigned long long types = 77;
    a.Values(a.d.PointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, memory.p), types);
    a.Values(a.d.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, memory.p), value);
    a(a.d.MemGetAddressRange(&base, &size, memory.p + 5));
    a.Value(base == memory.p);
    a.Value(static_cast<long long>(size));
  });
  ask.Risky("vmm.pointer_unmapped", "INVALID_VALUE NOT_FOUND INVALID_VALUE", [](Ready& a, const Virtual& memory) {
    unsigned value = 0;
    a(a.d.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory.p));
    a(a.d.MemGetAddressRange(kIgnored, kIgnored, memory.p));
    a(a.d.MemcpyDtoH(&value, memory.p, 4));
  });
}

}  // namespace cuaudit::contract::virtual_export_questions
