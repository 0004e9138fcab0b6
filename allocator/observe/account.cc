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

}  // namespace cuaudit::alloc
