// SPDX-License-Identifier: MIT
#include "faults/sim/base/arena.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstring>

namespace cuaudit::sim {

char* MapReserve(std::size_t bytes, bool accessible, std::size_t alignment, void* hint) noexcept {
  const std::size_t slack = alignment > 4096 ? alignment : 0;
  if (bytes + slack < bytes) return nullptr;
  void* const mapped =
      mmap(hint, bytes + slack, accessible ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const base = static_cast<char*>(mapped);
  if (slack == 0) return base;
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(base);
  const std::size_t head = static_cast<std::size_t>((alignment - address % alignment) % alignment);
  if (head != 0) munmap(base, head);
  if (slack != head) munmap(base + head + bytes, slack - head);
  return base + head;
}

void MapRelease(void* base, std::size_t bytes) noexcept {
  if (base != nullptr && bytes != 0) munmap(base, bytes);
}

void Arena::Adopt(char* base, std::size_t bytes) noexcept {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(base);
  next_ = base + (16 - address % 16) % 16;
  end_ = base + bytes;
}

std::size_t Arena::ClassOf(std::size_t bytes, std::size_t* rounded) noexcept {
  if (bytes <= kSmallClasses * 16) {
    const std::size_t index = bytes == 0 ? 0 : (bytes - 1) / 16;
    *rounded = (index + 1) * 16;
    return index;
  }
  const std::size_t log = static_cast<std::size_t>(std::bit_width(bytes - 1));
  *rounded = std::size_t{1} << log;
  return kSmallClasses + log - 10 + 1;
}

void* Arena::Allocate(std::size_t bytes) noexcept {
  if (bytes > (std::size_t{1} << 40)) return nullptr;
  std::size_t rounded = 0;
  const std::size_t index = ClassOf(bytes, &rounded);
  if (FreeBlock* const block = free_[index]; block != nullptr) {
    free_[index] = block->next;
    std::memset(static_cast<void*>(block), 0, rounded);
    return block;
  }
  if (rounded > static_cast<std::size_t>(end_ - next_)) return nullptr;
  char* const block = next_;
  next_ += rounded;
  return block;
}

void Arena::Free(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  std::size_t rounded = 0;
  const std::size_t index = ClassOf(bytes, &rounded);
  FreeBlock* const free = static_cast<FreeBlock*>(block);
  free->next = free_[index];
  free_[index] = free;
}

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
