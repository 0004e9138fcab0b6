// SPDX-License-Identifier: MIT
#include "faults/sim/base/arena.h"

#include <sys/mman.h>

#include <bit>

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

}  // namespace cuaudit::sim
