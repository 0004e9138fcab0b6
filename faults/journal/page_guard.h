// SPDX-License-Identifier: MIT
// page_guard.h: makes sure that a page of the journal has storage before anyone touches it.
//
//   Owns      a bit per page of one table.
//   Threads   safe; asking twice is harmless.
//   Units     bytes.
//   Errors    false when the file system cannot supply the page: touching it would be SIGBUS in somebody else's program.
//   Faults    makes no driver calls.
//   Source    MADV_POPULATE_WRITE, Linux 5.14. Older kernels answer EINVAL; there pages come on demand and a full disk is not survived.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {

// Storage for [address, address + bytes), rounded out to pages.
[[nodiscard]] bool Populate(void* address, std::size_t bytes) noexcept;

// For tables whose rows are touched in no particular order.
template <std::size_t table_bytes>
class PageGuard {
 public:
  [[nodiscard]] bool Ensure(char* table, std::size_t offset, std::size_t bytes) noexcept {
    for (std::size_t page = offset / kPage; page <= (offset + bytes - 1) / kPage; ++page) {
      std::atomic<std::uint64_t>& word = done_[page / 64];
      const std::uint64_t bit = std::uint64_t{1} << page % 64;
      if ((word.load(std::memory_order_relaxed) & bit) != 0) continue;
      if (!Populate(table + page * kPage, kPage)) return false;
      word.fetch_or(bit, std::memory_order_relaxed);
    }
    return true;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::atomic<std::uint64_t> done_[(table_bytes + kPage - 1) / kPage / 64 + 1] = {};
};

}  // namespace cuaudit::faults
