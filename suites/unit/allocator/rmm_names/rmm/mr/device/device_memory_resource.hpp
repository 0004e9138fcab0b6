// SPDX-License-Identifier: MIT
// device_memory_resource.hpp: what rmm_resource.h uses of RMM's header of that name, written anew from its documentation. The younger one's
// do_deallocate is noexcept, so whoever overrides it must be.
#pragma once

#include <cstddef>

#include "rmm/cuda_stream_view.hpp"

namespace rmm::mr {

class device_memory_resource {
 public:
  device_memory_resource() = default;
  virtual ~device_memory_resource() = default;
  void* allocate(std::size_t bytes, cuda_stream_view stream = {}) { return do_allocate(bytes, stream); }
  void deallocate(void* pointer, std::size_t bytes, cuda_stream_view stream = {}) noexcept { do_deallocate(pointer, bytes, stream); }
  [[nodiscard]] bool is_equal(const device_memory_resource& other) const noexcept { return do_is_equal(other); }

 protected:
  device_memory_resource(const device_memory_resource&) = default;
  device_memory_resource& operator=(const device_memory_resource&) = default;

 private:
  virtual void* do_allocate(std::size_t bytes, cuda_stream_view stream) = 0;
  virtual void do_deallocate(void* pointer, std::size_t bytes, cuda_stream_view stream) noexcept = 0;
  [[nodiscard]] virtual bool do_is_equal(const device_memory_resource& other) const noexcept { return this == &other; }
};

}  // namespace rmm::mr
