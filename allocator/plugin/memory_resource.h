// SPDX-License-Identifier: MIT
// memory_resource.h: a backend as a memory resource of CCCL, of both its generations.
//
//   Owns      nothing; borrows the backend, which must outlive every copy. Two are equal when they have the same backend and device.
//   Threads   as the backend.
//   Streams   allocate_async and allocate(stream, …): in the order of that stream. Given back on another stream than it was allocated
//             for, a block gets a RecordUse of that stream first. Without a stream, allocate waits until the memory is free of earlier
//             work.
//   Units     bytes; alignment up to 256, which every block has.
//   Errors    throws, as CCCL's resources do: std::bad_alloc when memory ran out, std::invalid_argument for an alignment that is no
//             power of two or more than 256, std::runtime_error with the backend's words else. Deallocation never throws.
//   Faults    as the backend's; the forms without a stream also StreamSynchronize.
//   Source    CCCL 3.0 (resource: allocate; async_resource: allocate_async) and from 3.1 on (synchronous_resource: allocate_sync; resource:
//             allocate with the stream first). One class has both, so it compiles with either; what a toolkit calls it is a test's
//             business.
//   Needs     LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE before the first CUDA header, with CCCL before 3.2.
#pragma once

#include <cuda.h>

#include <bit>
#include <cstddef>
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <new>
#include <stdexcept>

#include "allocator/backend.h"
#include "allocator/owned_block.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

class MemoryResource {
 public:
  static constexpr std::size_t kAlignment = 256;

  MemoryResource(Backend* backend, driver::DriverRef driver, int device) noexcept : backend_(backend), driver_(driver), device_(device) {}

  // CCCL 3.0.
  void* allocate_async(std::size_t bytes, std::size_t alignment, ::cuda::stream_ref stream) {
    return Get(bytes, alignment, Handle(stream));
  }
  void* allocate_async(std::size_t bytes, ::cuda::stream_ref stream) { return Get(bytes, kAlignment, Handle(stream)); }
  void deallocate_async(void* pointer, std::size_t, std::size_t, ::cuda::stream_ref stream) noexcept { Put(pointer, Handle(stream)); }
  void deallocate_async(void* pointer, std::size_t, ::cuda::stream_ref stream) noexcept { Put(pointer, Handle(stream)); }
  void* allocate(std::size_t bytes, std::size_t alignment = kAlignment) { return GetAndWait(bytes, alignment); }
  void deallocate(void* pointer, std::size_t, std::size_t = kAlignment) noexcept { PutDone(pointer); }

  // CCCL 3.1 and newer.
  void* allocate(::cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = kAlignment) {
    return Get(bytes, alignment, Handle(stream));
  }
  void deallocate(::cuda::stream_ref stream, void* pointer, std::size_t, std::size_t = kAlignment) noexcept {
    Put(pointer, Handle(stream));
  }
  void* allocate_sync(std::size_t bytes, std::size_t alignment = kAlignment) { return GetAndWait(bytes, alignment); }
  void deallocate_sync(void* pointer, std::size_t, std::size_t = kAlignment) noexcept { PutDone(pointer); }

  bool operator==(const MemoryResource& other) const noexcept { return backend_ == other.backend_ && device_ == other.device_; }
  friend void get_property(const MemoryResource&, ::cuda::mr::device_accessible) noexcept {}

 private:
  static CUstream Handle(::cuda::stream_ref stream) noexcept { return reinterpret_cast<CUstream>(stream.get()); }

  void* Get(std::size_t bytes, std::size_t alignment, CUstream stream) {
    if (!std::has_single_bit(alignment) || alignment > kAlignment) {
      throw std::invalid_argument("MemoryResource: alignment is a power of two up to 256");
    }
    CUdeviceptr address = 0;
    const CUresult result = backend_->Allocate(device_, bytes, stream, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw std::bad_alloc();
    if (result != CUDA_SUCCESS) throw std::runtime_error(backend_->LastErrorText());
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): a device address is both
  }

  // On the default stream, and then for whoever wants it.
  void* GetAndWait(std::size_t bytes, std::size_t alignment) {
    void* const pointer = Get(bytes, alignment, nullptr);
    if (pointer == nullptr) return pointer;
    const CUresult result = driver_.StreamSynchronize(nullptr);
    if (result == CUDA_SUCCESS) return pointer;
    PutDone(pointer);
    throw std::runtime_error("MemoryResource: the default stream could not be waited for");
  }

  void Put(void* pointer, CUstream stream) noexcept { FreeBehind(backend_, driver_, pointer, stream); }
  void PutDone(void* pointer) noexcept { (void)backend_->Free(reinterpret_cast<CUdeviceptr>(pointer)); }

  Backend* backend_;
  driver::DriverRef driver_;
  int device_;
};

}  // namespace cuaudit::alloc
