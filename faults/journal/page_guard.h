// SPDX-License-Identifier: MIT
// page_guard.h: makes sure that a page of the journal has storage before anyone touches it. Without storage, touching the page would
// raise SIGBUS in the audited program.
//
// Safe from all threads; a page may be asked for twice. Uses MADV_POPULATE_WRITE of Linux 5.14. Older kernels answer EINVAL: there pages
// get storage on first use, and the program does not survive a full disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {

// Allocates storage for [address, address + bytes), extended to whole pages. False when the file system cannot supply it.
[[nodiscard]] bool Populate(void* address, std::size_t bytes) noexcept;

// For tables whose rows are touched in no particular order. Keeps a bit per page.
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
