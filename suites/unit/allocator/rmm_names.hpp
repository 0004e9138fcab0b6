// SPDX-License-Identifier: MIT
// rmm_names.hpp: what rmm_resource.h uses of RMM's headers, written anew from their documentation. CMake lets it answer to their names.
#pragma once

#include <cuda.h>

#include <cstddef>

using cudaStream_t = CUstream;

namespace rmm {

class cuda_stream_view {
 public:
  constexpr cuda_stream_view() = default;
  constexpr cuda_stream_view(cudaStream_t stream) noexcept : stream_(stream) {}  // NOLINT(google-explicit-constructor): as RMM's
  [[nodiscard]] constexpr cudaStream_t value() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

namespace mr {

// do_deallocate is noexcept as in younger versions of RMM, so whoever overrides it must be.
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

}  // namespace mr
}  // namespace rmm
