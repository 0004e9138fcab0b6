// SPDX-License-Identifier: MIT
#include "allocator/trace/account.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

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

void Write(const OomAccount& account, Page* page) noexcept {
  page->Add("out of memory on device %d: %s asked for on stream 0x%llx", account.device, Of(account.requested_bytes).text,
            static_cast<unsigned long long>(account.stream));
  page->Add(" (%s pool", account.is_large ? "large" : "small");
  if (account.pool_id[0] != 0 || account.pool_id[1] != 0) {
    page->Add(" %llu.%llu", static_cast<unsigned long long>(account.pool_id[0]), static_cast<unsigned long long>(account.pool_id[1]));
  }
  page->Add(", rounded to %s, segment of %s); the driver's answer is %d\n", Of(account.rounded_bytes).text, Of(account.segment_bytes).text,
            static_cast<int>(account.result));
  if (account.knows_device) {
    page->Add("  device      %s free of %s\n", Of(account.device_free_bytes).text, Of(account.device_total_bytes).text);
  } else {
    page->Add("  device      the driver did not say how much is free\n");
  }
  if (account.limit_bytes != 0) page->Add("  limit       %s for this process (per_process_memory_fraction)\n", Of(account.limit_bytes).text);
  page->Add("  allocator   %s reserved: %s allocated, %s waiting for %llu pending uses, %s cached; largest free block %s\n",
            Of(account.reserved_bytes).text, Of(account.allocated_bytes).text, Of(account.pending_bytes).text,
            static_cast<unsigned long long>(account.pending_uses), Of(account.cached_bytes).text, Of(account.largest_free_bytes).text);
  page->Add("  tried      ");
  if (account.ladder.empty()) page->Add(" nothing");
  for (const LadderStep& step : account.ladder) {
    page->Add("%s %s %llux (%s)", &step == account.ladder.data() ? "" : ",", step.name, static_cast<unsigned long long>(step.tries),
              Of(step.gained_bytes).text);
  }
  page->Add("\n");
}

}  // namespace

std::string FormatBytes(std::size_t bytes) { return Of(bytes).text; }

std::string FormatAccount(const OomAccount& account) {
  Page measured(nullptr, 0);
  Write(account, &measured);
  std::string text(measured.length(), '\0');
  Page page(text.data(), text.size() + 1);
  Write(account, &page);
  return text;
}

std::size_t FormatAccountTo(const OomAccount& account, char* text, std::size_t capacity) noexcept {
  Page page(text, capacity);
  Write(account, &page);
  return capacity == 0 ? 0 : std::min(page.length(), capacity - 1);
}

}  // namespace cuaudit::alloc
