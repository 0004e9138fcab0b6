// SPDX-License-Identifier: MIT
// moving.h: options with which pages move whenever that spares new memory, and a block of twenty of them.
#pragma once

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc {

inline Options Moving(Reuse reuse = Reuse::Poll) {
  Options options;
  options.expandable_segments = true;
  options.page_size = 2 * kMiB;
  options.remap_budget = 1.0;
  options.trust_stream_handles = true;
  options.reuse = reuse;
  return options;
}

inline constexpr std::int64_t kRowBytes = 40 * std::int64_t{kMiB};
inline constexpr std::uint64_t kRowPages = 20;

}  // namespace cuaudit::alloc
