// SPDX-License-Identifier: MIT
#include "allocator/observe/account.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "faults/driver/result.h"

namespace cuaudit::alloc {
namespace {

struct Amount {
  char text[24];
};

Amount Of(std::size_t bytes) noexcept {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  Amount amount;
  if (bytes < 1024) {
    std::snprintf(amount.text, sizeof(amount.text), "%zu B", bytes);
    return amount;
  }
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  std::snprintf(amount.text, sizeof(amount.text), "%.2f %s", value, kUnits[unit]);
  return amount;
}

class Page {
 public:
  Page(char* text, std::size_t capacity) noexcept : text_(text), capacity_(capacity) {
    if (capacity_ > 0) text_[0] = '\0';
  }
  [[gnu::format(printf, 2, 3)]] void Add(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    const std::size_t left = length_ < capacity_ ? capacity_ - length_ : 0;
    const int added = std::vsnprintf(left > 0 ? text_ + length_ : nullptr, left, format, arguments);
    va_end(arguments);
    if (added > 0) length_ += static_cast<std::size_t>(added);
  }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }

 private:
  char* text_;
  std::size_t capacity_;
  std::size_t length_ = 0;
};

unsigned long long Count(std::int64_t value) noexcept { return value < 0 ? 0 : static_cast<unsigned long long>(value); }

void WriteDevice(const OutOfMemory& account, Page* page) noexcept {
  if (account.device_total != 0) {
    page->Add("  device     %s free of %s\n", Of(account.device_free).text, Of(account.device_total).text);
  } else {
    page->Add("  device     the driver did not say how much is free\n");
  }
}

void Write(const OutOfMemory& account, const Statistics& statistics, Page* page) noexcept {
  page->Add("out of memory on device %d: %s asked for on stream %llu", account.device, Of(account.requested).text,
            static_cast<unsigned long long>(account.stream));
  if (account.pool != PoolId{}) {
    page->Add(" in pool %llu.%llu", static_cast<unsigned long long>(account.pool.first),
              static_cast<unsigned long long>(account.pool.second));
  }
  page->Add(", which needs a segment of %s; ", Of(account.rounded).text);
  const std::string_view name = driver::ShortResultName(account.driver_result);
  if (account.driver_result == CUDA_SUCCESS) {
    page->Add("refused by the limit, the driver was not asked\n");
  } else {
    page->Add("the driver answered %.*s (%d)\n", static_cast<int>(name.size()), name.data(), static_cast<int>(account.driver_result));
  }
  WriteDevice(account, page);
  if (account.limit != SIZE_MAX) page->Add("  limit      %s for this process\n", Of(account.limit).text);
  const std::size_t held = account.allocated + account.pending;
  page->Add(
      "  allocator  %s reserved: %s allocated, %s freed with uses that are not over (%llu blocks), %s cached; largest free block %s\n",
      Of(account.reserved).text, Of(account.allocated).text, Of(account.pending).text,
      static_cast<unsigned long long>(statistics.blocks_pending), Of(account.reserved > held ? account.reserved - held : 0).text,
      Of(account.largest_free).text);
  page->Add("  so far     %llu out of memory, %llu retries after cached memory was released, %llu times all uses were waited for\n",
            Count(statistics.num_ooms), Count(statistics.num_alloc_retries), Count(statistics.num_sync_all_streams));
  page->Add(
      "  served by  thread cache %llu, own stream %llu, other streams %llu, pending memory %llu, capture order %llu, growth %llu, "
      "borrowed pools %llu\n",
      static_cast<unsigned long long>(statistics.served_thread_cache), static_cast<unsigned long long>(statistics.served_own_ready),
      static_cast<unsigned long long>(statistics.served_other_ready), static_cast<unsigned long long>(statistics.served_pending),
      static_cast<unsigned long long>(statistics.served_capture_order), static_cast<unsigned long long>(statistics.served_grown),
      static_cast<unsigned long long>(statistics.served_shared_pool));
}

}  // namespace

std::string FormatBytes(std::size_t bytes) { return Of(bytes).text; }

std::string FormatDriverOutOfMemory(const OutOfMemory& account, const Statistics& statistics, const char* call) {
  char text[512];
  Page page(text, sizeof(text));
  const std::string_view name = driver::ShortResultName(account.driver_result);
  page.Add("out of memory on device %d: %s asked for; %s answered %.*s (%d)\n", account.device, Of(account.requested).text, call,
           static_cast<int>(name.size()), name.data(), static_cast<int>(account.driver_result));
  WriteDevice(account, &page);
  page.Add("  allocator  %s reserved: %s allocated in %llu blocks\n", Of(Count(statistics.reserved_bytes[0].current)).text,
           Of(Count(statistics.allocated_bytes[0].current)).text, Count(statistics.allocation[0].current));
  page.Add("  so far     %llu out of memory\n", Count(statistics.num_ooms));
  return text;
}

std::string FormatOutOfMemory(const OutOfMemory& account, const Statistics& statistics) {
  Page measured(nullptr, 0);
  Write(account, statistics, &measured);
  std::string text(measured.length(), '\0');
  Page page(text.data(), text.size() + 1);
  Write(account, statistics, &page);
  return text;
}

std::size_t FormatOutOfMemory(const OutOfMemory& account, const Statistics& statistics, char* text, std::size_t capacity) noexcept {
  Page page(text, capacity);
  Write(account, statistics, &page);
  return capacity == 0 ? 0 : std::min(page.length(), capacity - 1);
}

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
