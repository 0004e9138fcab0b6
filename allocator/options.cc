// SPDX-License-Identifier: MIT
#include "allocator/options.h"

#include <bit>

namespace cuaudit::alloc {

const char* Check(const Options& options) noexcept {
  for (const std::uint32_t divisions : options.roundup_power2_divisions) {
    if (divisions != 0 && (divisions > 64 || !std::has_single_bit(divisions)))
      return "roundup_power2_divisions: 0, or a power of two up to 64, for each step";
  }
  if (options.large_segment_size < kMinLargeAlloc || options.large_segment_size > kTooLarge ||
      options.large_segment_size % kRoundLarge != 0)
    return "large_segment_size: a multiple of 2 MiB, 10 MiB or more";
  if (options.max_split_size != 0 && options.max_split_size <= options.large_segment_size)
    return "max_split_size: more than large_segment_size, or 0 for no limit";
  if (options.max_non_split_rounding < kRoundLarge) return "max_non_split_rounding: 2 MiB or more";
  if (!(options.memory_fraction > 0.0) || !(options.memory_fraction <= 1.0)) return "memory_fraction: more than 0, at most 1";
  if (!(options.garbage_collection_threshold >= 0.0) || !(options.garbage_collection_threshold < 1.0))
    return "garbage_collection_threshold: 0 for off, or a fraction less than 1";
  if (options.page_size > kTooLarge || options.page_size % kRoundLarge != 0)
    return "page_size: a multiple of 2 MiB, or 0 for large_segment_size";
  if (!(options.remap_budget >= 0.0) || !(options.remap_budget <= 1.0)) return "remap_budget: 0 for off, or a fraction up to 1";
  if (options.remap_budget > 0.0 && !options.expandable_segments) return "remap_budget: needs expandable_segments";
  if (options.remap_budget > 0.0 && options.deterministic)
    return "deterministic: remap_budget is 0, since moving pages looks at GPU progress";
  if (options.max_stamps_per_stream < 4 || options.max_stamps_per_stream > 1024) return "max_stamps_per_stream: 4 to 1024";
  if (options.capture_check_interval < 1 || options.capture_check_interval > 1048576) return "capture_check_interval: 1 to 1048576";
  if (options.handle_check_interval < 1 || options.handle_check_interval > 1048576) return "handle_check_interval: 1 to 1048576";
  if (options.deterministic && options.reuse != Reuse::Wait) return "deterministic: needs reuse=wait, since polling looks at GPU progress";
  if (options.completion == Completion::StreamWrites && options.reuse == Reuse::Wait)
    return "completion: stream_writes needs reuse=poll, since streams wait for events";
  if (options.cross_stream == CrossStream::Wait && options.reuse != Reuse::Wait) return "cross_stream: wait needs reuse=wait";
  if (options.deterministic && options.cross_stream == CrossStream::Ready)
    return "deterministic: cross_stream is never or wait, since ready looks at GPU progress";
  if (options.thread_cache_bytes > kTooLarge) return "thread_cache_bytes: at most 1 EiB";
  return nullptr;
}

}  // namespace cuaudit::alloc
