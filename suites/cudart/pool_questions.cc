// SPDX-License-Identifier: MIT
#include <unistd.h>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::pool_questions {
namespace {

cudaMemPoolProps OnDevice(int device = 0) {
  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location = {cudaMemLocationTypeDevice, device};
  return wanted;
}

cudaMemPool_t NewPool(Asker& a, cudaMemPoolProps wanted = OnDevice()) {
  cudaMemPool_t pool = nullptr;
  a.Prepare(cudaMemPoolCreate(&pool, &wanted));
  return pool;
}

constexpr Question kQuestions[] = {
    {"pool.async_round_trip",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       void* block = nullptr;
       a(cudaMallocAsync(&block, 1024, stream));
       a(cudaMemsetAsync(block, 1, 1024, stream));
       a(cudaFreeAsync(block, stream));
       a(cudaStreamSynchronize(stream));
       a(cudaFreeAsync(block, stream));
     }},
    {"pool.async_bad",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       void* block = Invented();
       a(cudaMallocAsync(&block, 0, stream));
       a.Value(block == nullptr);
       a(cudaMallocAsync(nullptr, 1024, stream));
       a(cudaMallocAsync(&block, std::size_t{1} << 50, stream));
       a(cudaFreeAsync(nullptr, stream));
       a(cudaFreeAsync(Invented(), stream));
     }},
    {"pool.free_async_of_malloc",
     [](Asker& a) {
       void* const block = NewBlock(a);
       a(cudaFreeAsync(block, NewStream(a)));
       a(cudaDeviceSynchronize());
     }},
    {"pool.default_streams",
     [](Asker& a) {
       void* block = nullptr;
       a(cudaMallocAsync(&block, 1024, nullptr));
       a(cudaFreeAsync(block, cudaStreamLegacy));
       a(cudaMallocAsync(&block, 1024, cudaStreamPerThread));
       a(cudaFreeAsync(block, cudaStreamPerThread));
     }},
    {"pool.create_destroy",
     [](Asker& a) {
       const cudaMemPoolProps wanted = OnDevice();
       cudaMemPool_t pool = nullptr;
       a(cudaMemPoolCreate(&pool, &wanted));
       a(cudaMemPoolDestroy(pool));
     }},
    {"pool.create_bad",
     [](Asker& a) {
       const cudaMemPoolProps good = OnDevice();
       const cudaMemPoolProps elsewhere = OnDevice(4711);
       const cudaMemPoolProps empty{};
       cudaMemPool_t pool = nullptr;
       a(cudaMemPoolCreate(&pool, nullptr));
       a(cudaMemPoolCreate(nullptr, &good));
       a(cudaMemPoolCreate(&pool, &elsewhere));
       a(cudaMemPoolCreate(&pool, &empty));
     }},
    {"pool.destroy_null", [](Asker& a) { a(cudaMemPoolDestroy(nullptr)); }},
    {"pool.destroy_default",
     [](Asker& a) {
       cudaMemPool_t pool = nullptr;
       a(cudaDeviceGetDefaultMemPool(&pool, 0));
       a(cudaMemPoolDestroy(pool));
     }},
    {"pool.destroy_with_live_block",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       const cudaMemPool_t pool = NewPool(a);
       void* block = nullptr;
       a(cudaMallocFromPoolAsync(&block, 1024, pool, stream));
       a(cudaMemPoolDestroy(pool));
       a(cudaMemsetAsync(block, 0, 1024, stream));
       a(cudaFreeAsync(block, stream));
       a(cudaStreamSynchronize(stream));
     }},
    {"pool.destroy_current",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       a(cudaDeviceSetMemPool(0, pool));
       a(cudaMemPoolDestroy(pool));
       cudaMemPool_t current = nullptr;
       cudaMemPool_t standard = nullptr;
       a(cudaDeviceGetMemPool(&current, 0));
       a(cudaDeviceGetDefaultMemPool(&standard, 0));
       a.Value(current == standard);
     }},
    {"pool.set_current",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       cudaMemPool_t current = nullptr;
       a(cudaDeviceSetMemPool(0, pool));
       a(cudaDeviceGetMemPool(&current, 0));
       a.Value(current == pool);
       a(cudaDeviceSetMemPool(0, nullptr));
       a(cudaDeviceSetMemPool(4711, pool));
       a(cudaDeviceGetMemPool(nullptr, 0));
       a(cudaDeviceGetDefaultMemPool(&current, 4711));
     }},
    {"pool.attributes_at_first",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       for (const cudaMemPoolAttr attribute :
            {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic, cudaMemPoolReuseAllowInternalDependencies}) {
         int value = 77;
         a(cudaMemPoolGetAttribute(pool, attribute, &value));
         a.Value(value);
       }
       for (const cudaMemPoolAttr attribute : {cudaMemPoolAttrReleaseThreshold, cudaMemPoolAttrReservedMemCurrent,
                                               cudaMemPoolAttrReservedMemHigh, cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh}) {
         unsigned long long value = 77;
         a(cudaMemPoolGetAttribute(pool, attribute, &value));
         a.Value(static_cast<long long>(value));
       }
     }},
    {"pool.attributes_in_use",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       const cudaMemPool_t pool = NewPool(a);
       unsigned long long value = 77;
       void* block = nullptr;
       a(cudaMallocFromPoolAsync(&block, 1000, pool, stream));
       a(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
       a.Value(static_cast<long long>(value));
       a(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
       a.Value(static_cast<long long>(value));
       a(cudaFreeAsync(block, stream));
       a(cudaStreamSynchronize(stream));
       a(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
       a.Value(static_cast<long long>(value));
       a(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
       a.Value(static_cast<long long>(value));
     }},
    {"pool.attributes_set",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       unsigned long long threshold = 1 << 20;
       a(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
       threshold = 0;
       a(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
       a.Value(static_cast<long long>(threshold));
       unsigned long long high = 0;
       a(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
       high = 1;
       a(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
       a(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &high));
       a(cudaMemPoolSetAttribute(pool, Beyond<cudaMemPoolAttr>(77), &high));
       a(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, nullptr));
     }},
    {"pool.trim",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       const cudaMemPool_t pool = NewPool(a);
       unsigned long long threshold = ~0ULL;
       a.Prepare(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
       void* block = nullptr;
       a.Prepare(cudaMallocFromPoolAsync(&block, 1024, pool, stream));
       a.Prepare(cudaFreeAsync(block, stream));
       a.Prepare(cudaStreamSynchronize(stream));
       unsigned long long reserved = 0;
       a.Prepare(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
       a.Value(static_cast<long long>(reserved));
       a(cudaMemPoolTrimTo(pool, 0));
       a.Prepare(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
       a.Value(static_cast<long long>(reserved));
       a(cudaMemPoolTrimTo(nullptr, 0));
     }},
    {"pool.access",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       cudaMemLocation here{cudaMemLocationTypeDevice, 0};
       cudaMemAccessFlags flags{};
       a(cudaMemPoolGetAccess(&flags, pool, &here));
       a.Value(flags);
       cudaMemAccessDesc wanted{here, cudaMemAccessFlagsProtReadWrite};
       a(cudaMemPoolSetAccess(pool, &wanted, 1));
     }},
    {"pool.access_taken_away",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       const cudaMemAccessDesc wanted{{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtNone};
       a(cudaMemPoolSetAccess(pool, &wanted, 1));
     }},
    {"pool.access_of_no_device",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       const cudaMemAccessDesc wanted{{cudaMemLocationTypeDevice, 4711}, cudaMemAccessFlagsProtReadWrite};
       a(cudaMemPoolSetAccess(pool, &wanted, 1));
     }},
    {"pool.access_from_nothing", [](Asker& a) { a(cudaMemPoolSetAccess(NewPool(a), nullptr, 1)); }},
    {"pool.access_into_nothing",
     [](Asker& a) {
       cudaMemLocation here{cudaMemLocationTypeDevice, 0};
       a(cudaMemPoolGetAccess(nullptr, NewPool(a), &here));
     }},
    {"pool.export",
     [](Asker& a) {
       cudaMemPoolProps shareable = OnDevice();
       shareable.handleTypes = cudaMemHandleTypePosixFileDescriptor;
       const cudaMemPool_t pool = NewPool(a, shareable);
       int descriptor = -1;
       a(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
       a.Value(descriptor >= 0);
       cudaMemPool_t imported = nullptr;
       a(cudaMemPoolImportFromShareableHandle(&imported, std::bit_cast<void*>(std::intptr_t{descriptor}),
                                              cudaMemHandleTypePosixFileDescriptor, 0));
       void* block = nullptr;
       a(cudaMallocFromPoolAsync(&block, 1024, pool, nullptr));
       cudaMemPoolPtrExportData data{};
       a(cudaMemPoolExportPointer(&data, block));
       void* same = nullptr;
       a(cudaMemPoolImportPointer(&same, imported, &data));
       a(cudaMallocFromPoolAsync(&block, 1024, imported, nullptr));
       close(descriptor);
     }},
    {"pool.export_unshareable",
     [](Asker& a) {
       const cudaMemPool_t pool = NewPool(a);
       int descriptor = -1;
       a(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
       cudaMemPool_t imported = nullptr;
       a(cudaMemPoolImportFromShareableHandle(&imported, std::bit_cast<void*>(std::intptr_t{-1}), cudaMemHandleTypePosixFileDescriptor, 0));
       void* block = nullptr;
       a(cudaMallocFromPoolAsync(&block, 1024, pool, nullptr));
       cudaMemPoolPtrExportData data{};
       a(cudaMemPoolExportPointer(&data, block));
     }},
    {"pool.by_location",
     [](Asker& a) {
       cudaMemLocation here{cudaMemLocationTypeDevice, 0};
       cudaMemPool_t by_location = nullptr;
       cudaMemPool_t standard = nullptr;
       a(cudaMemGetDefaultMemPool(&by_location, &here, cudaMemAllocationTypePinned));
       a(cudaDeviceGetDefaultMemPool(&standard, 0));
       a.Value(by_location == standard);
       a(cudaMemGetMemPool(&by_location, &here, cudaMemAllocationTypePinned));
       a(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, NewPool(a)));
       a(cudaMemGetDefaultMemPool(nullptr, &here, cudaMemAllocationTypePinned));
       a(cudaMemGetDefaultMemPool(&by_location, nullptr, cudaMemAllocationTypePinned));
       a(cudaMemGetDefaultMemPool(&by_location, &here, cudaMemAllocationTypeInvalid));
     }},
    {"pool.from_null_pool",
     [](Asker& a) {
       void* block = nullptr;
       a(cudaMallocFromPoolAsync(&block, 1024, nullptr, NewStream(a)));
       a(cudaMallocFromPoolAsync(nullptr, 1024, NewPool(a), NewStream(a)));
     }},
    {"pool.of_graphs",
     [](Asker& a) {
       unsigned long long value = 77;
       a(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value));
       a.Value(static_cast<long long>(value));
       a(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &value));
       a.Value(static_cast<long long>(value));
       value = 0;
       a(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &value));
       a(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value));
       a(cudaDeviceGetGraphMemAttribute(0, Beyond<cudaGraphMemAttributeType>(77), &value));
       a(cudaDeviceGraphMemTrim(0));
       a(cudaDeviceGraphMemTrim(4711));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::pool_questions

namespace cuaudit::cudart {
std::span<const Question> PoolQuestions() { return pool_questions::kQuestions; }
}  // namespace cuaudit::cudart
