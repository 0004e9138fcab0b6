// SPDX-License-Identifier: MIT
#include "faults/sim/base/shell.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "faults/sim/base/arena.h"

namespace cuaudit::sim {
namespace {

constexpr std::size_t kSpares = 4;
constexpr std::size_t kAlignment = std::size_t{2} << 20;
constexpr std::size_t kKeep = std::size_t{64} << 10;
constexpr std::size_t kMostBooks = std::size_t{1} << 30;
constexpr std::size_t kLeastBooks = std::size_t{4} << 20;

// Each names a shell by its books; the shell's description stands in their second page.
std::atomic<char*> spares[kSpares];

Shell* Description(char* books) { return reinterpret_cast<Shell*>(books + kPage); }

bool Keep(char* books) {
  for (std::atomic<char*>& spare : spares) {
    char* empty = nullptr;
    if (spare.compare_exchange_strong(empty, books, std::memory_order_acq_rel)) return true;
  }
  return false;
}

bool MapShell(std::size_t region_bytes, Shell* shell) {
  Shell made;
  made.region_bytes = region_bytes;
  for (std::size_t bytes = kMostBooks; made.books == nullptr && bytes >= kLeastBooks; bytes /= 4) {
    made.books = MapReserve(bytes, true);
    made.book_bytes = bytes;
  }
  if (made.books != nullptr) made.device = MapReserve(region_bytes, false, kAlignment);
  if (made.device != nullptr) made.device_bytes = MapReserve(region_bytes, true, kAlignment);
  if (made.device_bytes != nullptr) made.host = MapReserve(region_bytes, true, kAlignment);
  if (made.host == nullptr) {
    UnmapShell(made);
    return false;
  }
  madvise(made.books, kPage, MADV_WIPEONFORK);
  *Description(made.books) = made;
  *shell = made;
  return true;
}

}  // namespace

bool TakeShell(std::size_t region_bytes, Shell* shell) noexcept {
  for (std::atomic<char*>& spare : spares) {
    char* const books = spare.exchange(nullptr, std::memory_order_acq_rel);
    if (books == nullptr) continue;
    *shell = *Description(books);
    if (shell->region_bytes >= region_bytes) return true;
    if (!Keep(books)) UnmapShell(*shell);
  }
  if (MapShell(region_bytes, shell)) return true;
  DropSpareShells();
  return MapShell(region_bytes, shell);
}

void ClearUsed(char* p, std::size_t used) noexcept {
  const std::size_t keep = used < kKeep ? used : kKeep;
  std::memset(p, 0, keep);
  if (used == keep) return;
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p) + keep;
  const std::size_t head = (kPage - address % kPage) % kPage;
  const std::size_t rest = used - keep;
  std::memset(p + keep, 0, head < rest ? head : rest);
  if (rest > head) madvise(p + keep + head, rest - head, MADV_DONTNEED);
}

void LeaveShell(const Shell& shell) noexcept {
  *Description(shell.books) = shell;
  if (!Keep(shell.books)) UnmapShell(shell);
}

void UnmapShell(const Shell& shell) noexcept {
  MapRelease(shell.host, shell.region_bytes);
  MapRelease(shell.device_bytes, shell.region_bytes);
  MapRelease(shell.device, shell.region_bytes);
  MapRelease(shell.books, shell.book_bytes);
}

void DropSpareShells() noexcept {
  for (std::atomic<char*>& spare : spares) {
    if (char* const books = spare.exchange(nullptr, std::memory_order_acq_rel); books != nullptr) {
      const Shell shell = *Description(books);
      UnmapShell(shell);
    }
  }
}

}  // namespace cuaudit::sim
