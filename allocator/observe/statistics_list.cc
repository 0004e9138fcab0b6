// SPDX-License-Identifier: MIT
#include "allocator/observe/statistics_list.h"

#include <string_view>

namespace cuaudit::alloc {
namespace {

using List = std::vector<std::pair<std::string, std::int64_t>>;

void Add(const std::string& name, const Stat& stat, List* list) {
  list->emplace_back(name + ".current", stat.current);
  list->emplace_back(name + ".peak", stat.peak);
  list->emplace_back(name + ".allocated", stat.allocated);
  list->emplace_back(name + ".freed", stat.freed);
}

void Add(const std::string& name, const StatArray& stats, List* list) {
  constexpr std::string_view kPools[kPoolKinds] = {".all", ".small_pool", ".large_pool"};
  for (std::size_t kind = 0; kind < kPoolKinds; ++kind) Add(name + std::string(kPools[kind]), stats[kind], list);
}

template <class Integer>
void Add(const std::string& name, Integer value, List* list) {
  list->emplace_back(name, static_cast<std::int64_t>(value));
}

}  // namespace

// A counter that statistics.h has and this does not is found by a test, which compares sizes.
List ListStatistics(const Statistics& statistics) {
  List list;
#define CUAUDIT_LIST(name) Add(#name, statistics.name, &list);
  CUAUDIT_LIST(allocation)
  CUAUDIT_LIST(segment)
  CUAUDIT_LIST(active)
  CUAUDIT_LIST(inactive_split)
  CUAUDIT_LIST(allocated_bytes)
  CUAUDIT_LIST(reserved_bytes)
  CUAUDIT_LIST(active_bytes)
  CUAUDIT_LIST(inactive_split_bytes)
  CUAUDIT_LIST(requested_bytes)
  CUAUDIT_LIST(oversize_allocations)
  CUAUDIT_LIST(oversize_segments)
  CUAUDIT_LIST(num_alloc_retries)
  CUAUDIT_LIST(num_ooms)
  CUAUDIT_LIST(num_sync_all_streams)
  CUAUDIT_LIST(num_device_alloc)
  CUAUDIT_LIST(num_device_free)
  CUAUDIT_LIST(max_split_size)
  CUAUDIT_LIST(served_thread_cache)
  CUAUDIT_LIST(served_own_ready)
  CUAUDIT_LIST(served_other_ready)
  CUAUDIT_LIST(served_pending)
  CUAUDIT_LIST(served_capture_order)
  CUAUDIT_LIST(served_grown)
  CUAUDIT_LIST(served_shared_pool)
  CUAUDIT_LIST(uses_recorded)
  CUAUDIT_LIST(uses_own_stream)
  CUAUDIT_LIST(uses_merged)
  CUAUDIT_LIST(uses_captured)
  CUAUDIT_LIST(stamps_shared)
  CUAUDIT_LIST(waits_issued)
  CUAUDIT_LIST(waits_elided)
  CUAUDIT_LIST(uses_degraded)
  CUAUDIT_LIST(polls)
  CUAUDIT_LIST(blocks_pending)
  CUAUDIT_LIST(bytes_pending)
  CUAUDIT_LIST(events_created)
  CUAUDIT_LIST(events_live)
  CUAUDIT_LIST(double_frees)
  CUAUDIT_LIST(foreign_pointers)
  CUAUDIT_LIST(pages_moved)
  CUAUDIT_LIST(bytes_moved)
  CUAUDIT_LIST(fallbacks)
  CUAUDIT_LIST(releases_refused)
  CUAUDIT_LIST(bytes_unusable)
  CUAUDIT_LIST(streams_in_capture)
  CUAUDIT_LIST(left_for_captures)
  CUAUDIT_LIST(thread_caches)
#undef CUAUDIT_LIST
  return list;
}

}  // namespace cuaudit::alloc
