// SPDX-License-Identifier: MIT
// cuda_stream_view.hpp: what rmm_resource.h uses of RMM's header of that name, written anew from its documentation.
#pragma once

#include <cuda.h>

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

}  // namespace rmm
