// SPDX-License-Identifier: MIT
// Hints and moves of managed memory, and copies in batches.
#include "faults/cudart/calls.h"
#include "faults/cudart/twins.h"

namespace cuaudit::cudart {
namespace {

CUdeviceptr* Addresses(void** pointers) noexcept {
  static_assert(sizeof(CUdeviceptr) == sizeof(void*));
  return reinterpret_cast<CUdeviceptr*>(pointers);
}

}  // namespace

cudaError_t MemAdvise(DriverRef driver, const void* devPtr, size_t count, enum cudaMemoryAdvise advice,
                      struct cudaMemLocation location) noexcept {
  return From(driver.MemAdvise(Address(devPtr), count, As(advice), As(location)));
}

cudaError_t MemPrefetchAsync(DriverRef driver, const void* devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                             cudaStream_t stream) noexcept {
  return From(driver.MemPrefetchAsync(Address(devPtr), count, As(location), flags, stream));
}

cudaError_t MemPrefetchBatchAsync(DriverRef driver, void** dptrs, size_t* sizes, size_t count, struct cudaMemLocation* prefetchLocs,
                                  size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream) noexcept {
  return From(
      driver.MemPrefetchBatchAsync(Addresses(dptrs), sizes, count, As(prefetchLocs), prefetchLocIdxs, numPrefetchLocs, flags, stream));
}

cudaError_t MemDiscardBatchAsync(DriverRef driver, void** dptrs, size_t* sizes, size_t count, unsigned long long flags,
                                 cudaStream_t stream) noexcept {
  return From(driver.MemDiscardBatchAsync(Addresses(dptrs), sizes, count, flags, stream));
}

cudaError_t MemDiscardAndPrefetchBatchAsync(DriverRef driver, void** dptrs, size_t* sizes, size_t count,
                                            struct cudaMemLocation* prefetchLocs, size_t* prefetchLocIdxs, size_t numPrefetchLocs,
                                            unsigned long long flags, cudaStream_t stream) noexcept {
  return From(driver.MemDiscardAndPrefetchBatchAsync(Addresses(dptrs), sizes, count, As(prefetchLocs), prefetchLocIdxs, numPrefetchLocs,
                                                     flags, stream));
}

cudaError_t MemRangeGetAttribute(DriverRef driver, void* data, size_t dataSize, enum cudaMemRangeAttribute attribute, const void* devPtr,
                                 size_t count) noexcept {
  return From(driver.MemRangeGetAttribute(data, dataSize, As(attribute), Address(devPtr), count));
}

cudaError_t MemRangeGetAttributes(DriverRef driver, void** data, size_t* dataSizes, enum cudaMemRangeAttribute* attributes,
                                  size_t numAttributes, const void* devPtr, size_t count) noexcept {
  return From(driver.MemRangeGetAttributes(data, dataSizes, As(attributes), numAttributes, Address(devPtr), count));
}

cudaError_t MemcpyBatchAsync(DriverRef driver, void* const* dsts, const void* const* srcs, const size_t* sizes, size_t count,
                             struct cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, cudaStream_t stream) noexcept {
  return From(driver.MemcpyBatchAsync(Addresses(const_cast<void**>(dsts)), Addresses(const_cast<void**>(srcs)), const_cast<size_t*>(sizes),
                                      count, As(attrs), attrsIdxs, numAttrs, stream));
}

cudaError_t Memcpy3DBatchAsync(DriverRef driver, size_t numOps, struct cudaMemcpy3DBatchOp* opList, unsigned long long flags,
                               cudaStream_t stream) noexcept {
  return From(driver.Memcpy3DBatchAsync(numOps, As(opList), flags, stream));
}

}  // namespace cuaudit::cudart
