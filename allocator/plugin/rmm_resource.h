// SPDX-License-Identifier: MIT
// rmm_resource.h: a backend as a device_memory_resource of RMM.
//
//     #include <rmm/mr/device/device_memory_resource.hpp>
//     #include <cuaudit/rmm_resource.h>
//     cuaudit::alloc::RmmResource resource(allocator.get(), driver, 0);
//     rmm::mr::set_current_device_resource(&resource);
//
//   Owns      nothing; borrows the backend, which must outlive it. Two are equal when they have the same backend and device.
//   Threads   as the backend.
//   Streams   memory is allocated in the order of the stream; given back on another one, a block gets a RecordUse of that stream first.
//   Units     bytes; every block is aligned to 256, as RMM promises. None are asked for 0 bytes: the answer is a null pointer.
//   Errors    throws std::bad_alloc when memory ran out, std::runtime_error with the backend's words else. Deallocation never throws.
//   Faults    as the backend's; StreamSynchronize where a use cannot be recorded.
//   Source    RMM's documentation of device_memory_resource. RMM's later resources are those of CCCL: memory_resource.h.
//   Needs     RMM's header before it, whose place depends on RMM's version.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <new>
#include <stdexcept>

#include "allocator/backend.h"
#include "allocator/owned_block.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

class RmmResource final : public rmm::mr::device_memory_resource {
 public:
  RmmResource(Backend* backend, driver::DriverRef driver, int device) noexcept : backend_(backend), driver_(driver), device_(device) {}

 private:
  static CUstream Handle(rmm::cuda_stream_view stream) noexcept { return reinterpret_cast<CUstream>(stream.value()); }

  void* do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override {
    CUdeviceptr address = 0;
    const CUresult result = backend_->Allocate(device_, bytes, Handle(stream), &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw std::bad_alloc();
    if (result != CUDA_SUCCESS) throw std::runtime_error(backend_->LastErrorText());
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): a device address is both
  }
  void do_deallocate(void* pointer, std::size_t, rmm::cuda_stream_view stream) noexcept override {
    if (pointer != nullptr) FreeBehind(backend_, driver_, pointer, Handle(stream));
  }
  [[nodiscard]] bool do_is_equal(const rmm::mr::device_memory_resource& other) const noexcept override {
    const auto* const same = dynamic_cast<const RmmResource*>(&other);
    return same != nullptr && same->backend_ == backend_ && same->device_ == device_;
  }

  Backend* backend_;
  driver::DriverRef driver_;
  int device_;
};

}  // namespace cuaudit::alloc
