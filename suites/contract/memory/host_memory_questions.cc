// SPDX-License-Identifier: MIT
// Host memory and what pointers tell about it; pitched memory; two-dimensional memsets.
#include <sys/mman.h>

#include <cstring>

#include "suites/contract/question.h"

namespace cuaudit::contract::host_memory_questions {
namespace {

CUdeviceptr Address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

void TellFlags(Asker& a, unsigned asked) {
  void* h = nullptr;
  unsigned flags = 77;
  a.Prepare(a.d.MemHostAlloc(&h, 64, asked));
  a.Values(a.d.MemHostGetFlags(&flags, h), flags);
  (void)a.d.MemFreeHost(h);
}

template <typename T>
void Tell(Asker& a, CUpointer_attribute attribute, CUdeviceptr p) {
  T value{};
  a.Either(a.d.PointerGetAttribute(&value, attribute, p), value);
}

// What every kind of memory answers: type, host pointer, same device pointer, managed, ordinal, bytes of the range, mapped, IPC, handle
// types, access.
void TellPointer(Asker& a, CUdeviceptr p) {
  Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
  void* host = nullptr;
  CUresult result = a.d.PointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p);
  if (result == CUDA_SUCCESS) {
    a.Value(Address(host) == p);
  } else {
    a(result);
  }
  CUdeviceptr device = 0;
  result = a.d.PointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p);
  if (result == CUDA_SUCCESS) {
    a.Value(device == p);
  } else {
    a(result);
  }
  Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
  Tell<int>(a, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
  Tell<std::size_t>(a, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
  Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_MAPPED, p);
  Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
  Tell<unsigned long long>(a, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p);
  Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p);
}

constexpr std::size_t kPages = 1 << 16;

// Registered pages full of 7 that were unmapped, and pages full of 9 in their place.
char* MapAnew(Asker& a) {
  const auto map = [](void* at, int fixed) {
    return static_cast<char*>(mmap(at, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0));
  };
  char* const page = map(nullptr, 0);
  std::memset(page, 7, kPages);
  a.Prepare(a.d.MemHostRegister(page, kPages, 0));
  munmap(page, kPages);
  std::memset(map(page, MAP_FIXED), 9, kPages);
  return page;
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("host.flags", "2 3 2 6 7", [](Ready& a) {
    TellFlags(a, 0);
    TellFlags(a, CU_MEMHOSTALLOC_PORTABLE);
    TellFlags(a, CU_MEMHOSTALLOC_DEVICEMAP);
    TellFlags(a, CU_MEMHOSTALLOC_WRITECOMBINED);
    TellFlags(a, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED);
  });
  ask.Risky("host.flags_of_others", "SUCCESS 2 SUCCESS INVALID_VALUE x4", [](Ready& a) {
    alignas(4096) static char page[4096];
    unsigned flags = 77;
    void* const h = a.MemAllocHost(4096);
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), CU_MEMHOSTREGISTER_DEVICEMAP));
    const CUdeviceptr p = a.MemAlloc(64);
    a(a.d.MemHostGetFlags(&flags, static_cast<char*>(h) + 64), flags);
    a(a.d.MemHostGetFlags(&flags, page));
    a(a.d.MemHostGetFlags(&flags, reinterpret_cast<void*>(p)));
    a(a.d.MemHostGetFlags(&flags, &flags));
    a(a.d.MemHostGetFlags(&flags, nullptr));
    a(a.d.MemHostGetFlags(nullptr, h));
  });
  ask.Risky("host.device_pointer", "SUCCESS 1 SUCCESS 1 INVALID_VALUE x4", [](Ready& a) {
    alignas(4096) static char page[4096];
    CUdeviceptr p = 0, q = 0;
    void* const h = a.MemAllocHost(4096);
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemHostGetDevicePointer(&p, static_cast<char*>(h) + 64, 0));
    a.Value(p == Address(h) + 64);
    a(a.d.MemHostGetDevicePointer(&p, page + 8, 0));
    a.Value(p == Address(page) + 8);
    a(a.d.MemHostGetDevicePointer(&q, h, 1));
    a(a.d.MemHostGetDevicePointer(nullptr, h, 0));
    a(a.d.MemHostGetDevicePointer(&q, nullptr, 0));
    a(a.d.MemHostGetDevicePointer(&q, &q, 0));
  });
  ask.Risky("host.register_overlap", "ALREADY ALREADY SUCCESS ALREADY", [](Ready& a) {
    alignas(4096) static char pages[4 * 4096];
    const auto tell = [&](CUresult result) {
      if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
        a.Text("ALREADY");
      } else {
        a(result);
      }
    };
    a.Prepare(a.d.MemHostRegister(pages, 2 * 4096, 0));
    tell(a.d.MemHostRegister(pages + 4096, 2 * 4096, 0));
    tell(a.d.MemHostRegister(pages, 4 * 4096, 0));
    tell(a.d.MemHostRegister(pages + 2 * 4096, 4096, 0));
    tell(a.d.MemHostRegister(pages + 4096, 64, 0));
  });
  ask.Risky("host.register_same_page", "SUCCESS x4", [](Ready& a) {
    alignas(4096) static char page[4096];
    a(a.d.MemHostRegister(page + 16, 64, 0));
    a(a.d.MemHostRegister(page + 256, 64, 0));
    a(a.d.MemHostUnregister(page + 16));
    a(a.d.MemHostUnregister(page + 256));
  });
  ask.Risky("host.register_driver_memory", "INVALID_VALUE x3", [](Ready& a) {
    void* const h = a.MemAllocHost(4096);
    const CUdeviceptr managed = a.MemAllocManaged(4096), p = a.MemAlloc(4096);
    a(a.d.MemHostRegister(h, 4096, 0));
    a(a.d.MemHostRegister(reinterpret_cast<void*>(managed), 4096, 0));
    a(a.d.MemHostRegister(reinterpret_cast<void*>(p), 4096, 0));
  });
  ask.Risky("host.register_nothing", "INVALID_VALUE x3", [](Ready& a) {
    void* const hole = mmap(nullptr, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char local = 0;
    a(a.d.MemHostRegister(nullptr, 4096, 0));
    a(a.d.MemHostRegister(hole, 1 << 16, 0));
    a(a.d.MemHostRegister(&local, ~std::size_t{0} - 4096, 0));
  });
  ask.Risky("host.unmapped_while_registered", "SUCCESS", [](Ready& a) {
    void* const page = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    a.Prepare(a.d.MemHostRegister(page, 1 << 16, 0));
    munmap(page, 1 << 16);
    a(a.d.MemHostUnregister(page));
  });
  // Other pages come to the address of registered ones: whose bytes does the device read, and where does it write?
  ask.Risky("host.mapped_anew_while_registered", "HOST_MEMORY_ALREADY_REGISTERED SUCCESS", [](Ready& a) {
    char* const page = MapAnew(a);
    a(a.d.MemHostRegister(page, kPages, 0));
    a(a.d.MemHostUnregister(page));
  });
  ask.Risky("host.mapped_anew_and_copied", "SUCCESS 7 SUCCESS 9", [](Ready& a) {
    char* const page = MapAnew(a);
    const CUstream s = a.StreamCreate(CU_STREAM_DEFAULT);
    const CUdeviceptr p = a.MemAlloc(kPages);
    a(a.d.MemcpyHtoDAsync(p, page, kPages, s));
    a.Prepare(a.d.StreamSynchronize(s));
    a.ByteAt(p);
    a.Prepare(a.d.MemsetD8(p, 5, kPages));
    a(a.d.MemcpyDtoHAsync(page, p, kPages, s));
    a.Prepare(a.d.StreamSynchronize(s));
    a.Value(*page);
  });
  ask.Risky("host.register_read_only", "SUCCESS SUCCESS", [](Ready& a) {
    void* const page = mmap(nullptr, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    a(a.d.MemHostRegister(page, 1 << 16, CU_MEMHOSTREGISTER_READ_ONLY));
    a(a.d.MemHostUnregister(page));
  });
  ask.Risky("host.unregister_bad", "INVALID_VALUE HOST_MEMORY_NOT_REGISTERED", [](Ready& a) {
    char local = 0;
    a(a.d.MemHostUnregister(nullptr));
    a(a.d.MemHostUnregister(&local));
  });
  ask.Risky("pointer.of_pinned", "1 1 1 0 0 4096 1 0 0 3", [](Ready& a) {
    void* const h = a.MemAllocHost(4096);
    TellPointer(a, Address(h));
  });
  ask.Risky("pointer.of_registered", "1 1 1 0 0 8192 1 0 0 3", [](Ready& a) {
    alignas(4096) static char pages[8192];
    a.Prepare(a.d.MemHostRegister(pages, sizeof(pages), 0));
    TellPointer(a, Address(pages));
  });
  ask.Risky("pointer.of_registered_part", "1 1 100 0", [](Ready& a) {
    alignas(4096) static char pages[8192];
    CUdeviceptr start = 0;
    unsigned type = 0;
    a.Prepare(a.d.MemHostRegister(pages + 60, 100, 0));
    Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Address(pages + 70));
    a.Prepare(a.d.PointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, Address(pages + 70)));
    a.Value(start == Address(pages + 60));
    Tell<std::size_t>(a, CU_POINTER_ATTRIBUTE_RANGE_SIZE, Address(pages + 70));
    a.Value(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Address(pages + 10)) == CUDA_SUCCESS);
  });
  ask.Risky("pointer.of_managed", "2 1 1 1 0 4096 1 0 0 3", [](Ready& a) {
    const CUdeviceptr p = a.MemAllocManaged(4096);
    TellPointer(a, p);
  });
  ask.Risky("pointer.of_device", "2 INVALID_VALUE 1 0 0 4096 1 1 0 3", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    TellPointer(a, p);
  });
  ask.Risky("pointer.of_ordered", "2 INVALID_VALUE 1 0 0 4096 1 0 0 3", [](Ready& a) {
    const CUdeviceptr p = a.MemAllocAsync(4096, nullptr);
    a.Prepare(a.d.CtxSynchronize(nullptr));
    TellPointer(a, p);
    a.Prepare(a.d.MemFreeAsync(p, nullptr));
    a.Prepare(a.d.CtxSynchronize(nullptr));
  });
  ask.Risky("pointer.mapping", "2097152 1 1 SUCCESS", [](Ready& a) {
    CUdeviceptr base = 0;
    const CUdeviceptr p = a.MemAlloc(std::size_t{2} << 20);
    Tell<std::size_t>(a, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p);
    a.Prepare(a.d.PointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p + 77));
    a.Value(base == p);
    unsigned long long id = 0;
    a.Prepare(a.d.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, p));
    a.Value(id != 0);
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens{};
    a(a.d.PointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, p));
  });
  ask.Risky("pointer.sync_memops", "SUCCESS 1 SUCCESS 0 INVALID_VALUE x3", [](Ready& a) {
    unsigned on = 1;
    const CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 64));
    Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
    on = 0;
    a(a.d.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    Tell<unsigned>(a, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
    a(a.d.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    a(a.d.PointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    a(a.d.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, Address(&on)));
  });
  ask.Risky("pointer.bad_arguments", "INVALID_VALUE x5", [](Ready& a) {
    unsigned value = 0;
    void* out[1] = {&value};
    CUpointer_attribute wanted[1] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    const CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.PointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    a(a.d.PointerGetAttribute(&value, Beyond<CUpointer_attribute>(99), p));
    a(a.d.PointerGetAttributes(0, wanted, out, p));
    a(a.d.PointerGetAttributes(1, nullptr, out, p));
    wanted[0] = Beyond<CUpointer_attribute>(99);
    a(a.d.PointerGetAttributes(1, wanted, out, p));
  });
  ask.Risky("pointer.address_ranges", "1 4096 1 4096 1 4096 SUCCESS SUCCESS", [](Ready& a) {
    alignas(4096) static char page[4096];
    void* const h = a.MemAllocHost(4096);
    const CUdeviceptr managed = a.MemAllocManaged(4096);
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
    for (const CUdeviceptr p : {Address(h), managed, Address(page)}) {
      CUdeviceptr base = 0;
      std::size_t size = 0;
      const CUresult result = a.d.MemGetAddressRange(&base, &size, p + 9);
      if (result == CUDA_SUCCESS) {
        a.Value(base == p);
        a.Value(static_cast<long long>(size));
      } else {
        a(result);
      }
    }
    a(a.d.MemGetAddressRange(nullptr, nullptr, managed));
    a(a.d.MemGetAddressRange(nullptr, nullptr, Address(h)));
  });
  ask.Risky("memory.pitches", "512 512 1024 INVALID_VALUE INVALID_VALUE INVALID_VALUE 1536", [](Ready& a) {
    const auto tell = [&](std::size_t width, std::size_t height, unsigned element) {
      CUdeviceptr p = 0;
      std::size_t pitch = 0;
      const CUresult result = a.d.MemAllocPitch(&p, &pitch, width, height, element);
      if (result == CUDA_SUCCESS) {
        a.Value(static_cast<long long>(pitch));
        (void)a.d.MemFree(p);
      } else {
        a(result);
      }
    };
    tell(1, 1, 4);
    tell(512, 3, 16);
    tell(513, 3, 8);
    tell(64, 4, 1);
    tell(64, 4, 2);
    tell(64, 0, 4);
    tell(1025, 2, 4);
  });
  ask.Plain("memset.plane", "SUCCESS 7 0 SUCCESS INVALID_VALUE x3", [](Ready& a) {
    unsigned char out[32] = {};
    const CUdeviceptr p = a.MemAlloc(4096);
    a.Prepare(a.d.MemsetD8(p, 0, 4096));
    a(a.d.MemsetD2D8(p, 16, 7, 4, 2));
    a.Values(a.d.MemcpyDtoH(out, p, sizeof(out)), out[19], out[20]);
    a(a.d.MemsetD2D8(p, 16, 7, 4, 0));
    a(a.d.MemsetD2D8(p, 2, 7, 4, 2));
    a(a.d.MemsetD2D32(p + 2, 16, 7, 2, 2));
    a(a.d.MemsetD2D32(p, 18, 7, 2, 2));
  });
}

}  // namespace cuaudit::contract::host_memory_questions
