// SPDX-License-Identifier: MIT
// Memory of the device and of the host, and what is said of pointers into it.
#include <cstdlib>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::memory_questions {
namespace {

void* NewManaged(Asker& a) {
  void* block = nullptr;
  a.Prepare(cudaMallocManaged(&block, 1 << 16, cudaMemAttachGlobal));
  return block;
}

constexpr cudaMemLocation kDevice{cudaMemLocationTypeDevice, 0};
constexpr cudaMemLocation kHost{cudaMemLocationTypeHost, 0};

void Describe(Asker& a, const void* pointer) {
  cudaPointerAttributes attributes{};
  attributes.device = 77;
  attributes.devicePointer = Invented();
  attributes.hostPointer = Invented();
  a(cudaPointerGetAttributes(&attributes, pointer));
  a.Value(attributes.type);
  a.Value(attributes.device);
  for (const void* const seen : {attributes.devicePointer, attributes.hostPointer}) {
    a.Text(seen == pointer ? "same" : seen == nullptr ? "null" : seen == Invented() ? "untouched" : "other");
  }
}

constexpr Question kQuestions[] = {
    {"memory.malloc_zero",
     [](Asker& a) {
       void* block = Invented();
       a(cudaMalloc(&block, 0));
       a.Value(block == nullptr);
       a(cudaFree(block));
     }},
    {"memory.malloc_too_much",
     [](Asker& a) {
       void* block = Invented();
       a(cudaMalloc(&block, std::size_t{1} << 50));
       a.Value(block == Invented());
       a(cudaMalloc(&block, ~std::size_t{0}));
     }},
    {"memory.free_twice",
     [](Asker& a) {
       void* const block = NewBlock(a);
       a(cudaFree(block));
       a(cudaFree(block));
     }},
    {"memory.free_inside",
     [](Asker& a) {
       char* const block = NewBlock(a);
       a(cudaFree(block + 16));
       a(cudaFree(block));
     }},
    {"memory.free_invented", [](Asker& a) { a(cudaFree(Invented())); }},
    {"memory.free_host_pointer",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaMallocHost(&host, 4096));
       a(cudaFree(host));
       a(cudaFreeHost(host));
     }},
    {"memory.free_host_of_device_pointer",
     [](Asker& a) {
       void* const block = NewBlock(a);
       a(cudaFreeHost(block));
       a(cudaFree(block));
     }},
    {"memory.free_host_null", [](Asker& a) { a(cudaFreeHost(nullptr)); }},
    {"memory.free_host_invented", [](Asker& a) { a(cudaFreeHost(Invented())); }},
    {"memory.free_host_twice",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaMallocHost(&host, 4096));
       a(cudaFreeHost(host));
       a(cudaFreeHost(host));
     }},
    {"memory.free_managed_twice",
     [](Asker& a) {
       void* const block = NewManaged(a);
       a(cudaFree(block));
       a(cudaFree(block));
     }},
    {"memory.free_of_async",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       void* block = nullptr;
       a(cudaMallocAsync(&block, 1024, stream));
       a(cudaFree(block));
       a(cudaStreamSynchronize(stream));
     }},
    {"memory.malloc_host_zero",
     [](Asker& a) {
       void* host = Invented();
       a(cudaMallocHost(&host, 0));
       a.Value(host == nullptr);
       a(cudaMallocHost(nullptr, 16));
     }},
    {"memory.host_alloc_flags",
     [](Asker& a) {
       for (const unsigned wanted : {0U, 1U, 2U, 4U, 7U, 8U, 0x100U}) {
         void* host = nullptr;
         if (a(cudaHostAlloc(&host, 4096, wanted)) != cudaSuccess) continue;
         unsigned flags = 77;
         a(cudaHostGetFlags(&flags, host));
         a.Value(flags);
       }
     }},
    {"memory.host_get_flags_bad",
     [](Asker& a) {
       unsigned flags = 77;
       a(cudaHostGetFlags(&flags, Invented()));
       a(cudaHostGetFlags(&flags, nullptr));
       a(cudaHostGetFlags(nullptr, Invented()));
       a(cudaHostGetFlags(&flags, NewBlock(a)));
     }},
    {"memory.host_device_pointer",
     [](Asker& a) {
       void* host = nullptr;
       void* device = nullptr;
       a.Prepare(cudaHostAlloc(&host, 4096, cudaHostAllocMapped));
       a(cudaHostGetDevicePointer(&device, host, 0));
       a.Value(device == host);
       a(cudaHostGetDevicePointer(&device, static_cast<char*>(host) + 64, 0));
       a.Value(device == static_cast<char*>(host) + 64);
       a(cudaHostGetDevicePointer(&device, host, 77));
       a(cudaHostGetDevicePointer(nullptr, host, 0));
       a(cudaHostGetDevicePointer(&device, nullptr, 0));
       a(cudaHostGetDevicePointer(&device, Invented(), 0));
     }},
    {"memory.register",
     [](Asker& a) {
       void* const host = std::aligned_alloc(4096, 8192);
       a(cudaHostRegister(host, 8192, cudaHostRegisterDefault));
       a(cudaHostRegister(host, 8192, cudaHostRegisterDefault));
       a(cudaHostRegister(static_cast<char*>(host) + 4096, 4096, cudaHostRegisterDefault));
       unsigned flags = 77;
       a(cudaHostGetFlags(&flags, host));
       a.Value(flags);
       a(cudaFreeHost(host));
       a(cudaHostUnregister(static_cast<char*>(host) + 64));
       a(cudaHostUnregister(host));
       a(cudaHostUnregister(host));
     }},
    {"memory.register_bad",
     [](Asker& a) {
       void* const host = std::aligned_alloc(4096, 8192);
       a(cudaHostRegister(nullptr, 8192, 0));
       a(cudaHostRegister(host, 0, 0));
       a(cudaHostRegister(host, 4096, 0x1000));
       a(cudaHostUnregister(nullptr));
       a(cudaHostUnregister(Invented()));
     }},
    {"memory.unregister_of_malloc_host",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaMallocHost(&host, 4096));
       a(cudaHostUnregister(host));
       a(cudaHostRegister(host, 4096, 0));
     }},
    {"memory.managed",
     [](Asker& a) {
       void* block = nullptr;
       a(cudaMallocManaged(&block, 0, cudaMemAttachGlobal));
       a(cudaMallocManaged(&block, 64, cudaMemAttachSingle));
       a(cudaMallocManaged(&block, 64, 0));
       a(cudaMallocManaged(nullptr, 64, cudaMemAttachGlobal));
       a(cudaMallocManaged(&block, 64, cudaMemAttachHost));
       a(cudaFree(block));
     }},
    {"memory.managed_is_host_memory",
     [](Asker& a) {
       int* const block = static_cast<int*>(NewManaged(a));
       *block = 42;
       int seen = 0;
       a(cudaMemcpy(&seen, block, sizeof(seen), cudaMemcpyDefault));
       a.Value(seen);
       a(cudaMemset(block, 0, 64));
       a(cudaDeviceSynchronize());
       a.Value(*block);
     }},
    {"memory.advise",
     [](Asker& a) {
       void* const block = NewManaged(a);
       a(cudaMemAdvise(block, 1 << 16, cudaMemAdviseSetReadMostly, kDevice));
       a(cudaMemAdvise(block, 1 << 16, cudaMemAdviseSetPreferredLocation, kHost));
       a(cudaMemAdvise(block, 1 << 16, cudaMemAdviseSetAccessedBy, kDevice));
       a(cudaMemAdvise(block, 1 << 16, Beyond<cudaMemoryAdvise>(77), kDevice));
       a(cudaMemAdvise(block, 0, cudaMemAdviseSetReadMostly, kDevice));
       a(cudaMemAdvise(nullptr, 4096, cudaMemAdviseSetReadMostly, kDevice));
       a(cudaMemAdvise(NewBlock(a), 4096, cudaMemAdviseSetReadMostly, kDevice));
       a(cudaMemAdvise(block, 4096, cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeDevice, 4711}));
     }},
    {"memory.range_attributes",
     [](Asker& a) {
       void* const block = NewManaged(a);
       int value = 77;
       a(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, block, 1 << 16));
       a.Value(value);
       a.Prepare(cudaMemAdvise(block, 1 << 16, cudaMemAdviseSetReadMostly, kDevice));
       a(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, block, 1 << 16));
       a.Value(value);
       a(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributePreferredLocation, block, 1 << 16));
       a.Value(value);
       a(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeLastPrefetchLocation, block, 1 << 16));
       a.Value(value);
       a(cudaMemRangeGetAttribute(&value, 3, cudaMemRangeAttributeReadMostly, block, 1 << 16));
       a(cudaMemRangeGetAttribute(&value, 4, Beyond<cudaMemRangeAttribute>(77), block, 1 << 16));
       a(cudaMemRangeGetAttribute(nullptr, 4, cudaMemRangeAttributeReadMostly, block, 1 << 16));
     }},
    {"memory.prefetch",
     [](Asker& a) {
       void* const block = NewManaged(a);
       a(cudaMemPrefetchAsync(block, 1 << 16, kDevice, 0, nullptr));
       a(cudaDeviceSynchronize());
       a(cudaMemPrefetchAsync(block, 1 << 16, kHost, 0, nullptr));
       a(cudaMemPrefetchAsync(block, 1 << 16, kDevice, 77, nullptr));
       a(cudaMemPrefetchAsync(block, 0, kDevice, 0, nullptr));
       a(cudaMemPrefetchAsync(block, 1 << 16, {cudaMemLocationTypeDevice, 4711}, 0, nullptr));
       a(cudaMemPrefetchAsync(NewBlock(a), 4096, kDevice, 0, nullptr));
     }},
    {"memory.pitch",
     [](Asker& a) {
       void* block = nullptr;
       std::size_t pitch = 0;
       a(cudaMallocPitch(&block, &pitch, 100, 4));
       a.Value(static_cast<long long>(pitch));
       a(cudaFree(block));
       a(cudaMallocPitch(&block, &pitch, 0, 4));
       a(cudaMallocPitch(&block, &pitch, 100, 0));
       a(cudaMallocPitch(nullptr, &pitch, 100, 4));
       a(cudaMallocPitch(&block, nullptr, 100, 4));
     }},
    {"memory.malloc_3d",
     [](Asker& a) {
       cudaPitchedPtr pitched{};
       a(cudaMalloc3D(&pitched, cudaExtent{100, 4, 2}));
       a.Value(static_cast<long long>(pitched.pitch));
       a.Value(static_cast<long long>(pitched.xsize));
       a.Value(static_cast<long long>(pitched.ysize));
       a(cudaFree(pitched.ptr));
       a(cudaMalloc3D(&pitched, cudaExtent{0, 4, 2}));
       a.Value(pitched.ptr == nullptr);
       a(cudaMalloc3D(nullptr, cudaExtent{100, 4, 2}));
     }},
    {"pointer.device", [](Asker& a) { Describe(a, NewBlock(a)); }},
    {"pointer.inside_device", [](Asker& a) { Describe(a, NewBlock(a) + 100); }},
    {"pointer.host",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaMallocHost(&host, 4096));
       Describe(a, host);
       Describe(a, static_cast<char*>(host) + 100);
     }},
    {"pointer.host_mapped",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaHostAlloc(&host, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
       Describe(a, host);
     }},
    {"pointer.registered",
     [](Asker& a) {
       void* const host = std::aligned_alloc(4096, 8192);
       a.Prepare(cudaHostRegister(host, 4096, cudaHostRegisterDefault));
       Describe(a, host);
       a(cudaHostUnregister(host));
       Describe(a, host);
     }},
    {"pointer.managed",
     [](Asker& a) {
       void* block = nullptr;
       a.Prepare(cudaMallocManaged(&block, 4096, cudaMemAttachGlobal));
       Describe(a, block);
     }},
    {"pointer.async",
     [](Asker& a) {
       void* block = nullptr;
       a.Prepare(cudaMallocAsync(&block, 4096, nullptr));
       Describe(a, block);
     }},
    {"pointer.ordinary_heap", [](Asker& a) { Describe(a, std::aligned_alloc(64, 4096)); }},
    {"pointer.null", [](Asker& a) { Describe(a, nullptr); }},
    {"pointer.unmapped", [](Asker& a) { Describe(a, std::bit_cast<void*>(std::uintptr_t{0x10})); }},
    {"pointer.freed",
     [](Asker& a) {
       void* const block = NewBlock(a);
       a.Prepare(cudaFree(block));
       Describe(a, block);
     }},
    {"pointer.symbolless_query",
     [](Asker& a) {
       a(cudaPointerGetAttributes(nullptr, NewBlock(a)));
       a(cudaGetLastError());
     }},
    {"pointer.before_any_context",
     [](Asker& a) {
       int local = 0;
       Describe(a, &local);
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::memory_questions

namespace cuaudit::cudart {
std::span<const Question> MemoryQuestions() { return memory_questions::kQuestions; }
}  // namespace cuaudit::cudart
