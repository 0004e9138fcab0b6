// SPDX-License-Identifier: MIT
#include "faults/cudart/arena.h"

#include <sys/mman.h>

namespace cuaudit::cudart {

void* MapPages(std::size_t bytes) noexcept {
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void UnmapPages(void* pages, std::size_t bytes) noexcept {
  if (pages != nullptr) munmap(pages, bytes);
}

std::size_t PointerMap::HomeOf(const void* key) const noexcept {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(key) * 0x9e3779b97f4a7c15U;
  return static_cast<std::size_t>(mixed >> 32) & (capacity_ - 1);
}

void* PointerMap::Find(const void* key) const noexcept {
  if (capacity_ == 0 || key == nullptr) return nullptr;
  for (std::size_t i = HomeOf(key); entries_[i].key != nullptr; i = (i + 1) & (capacity_ - 1)) {
    if (entries_[i].key == key) return entries_[i].value;
  }
  return nullptr;
}

bool PointerMap::Put(const void* key, void* value) noexcept {
  if (key == nullptr || ((used_ + 1) * 4 > capacity_ * 3 && !Grow())) return false;
  std::size_t i = HomeOf(key);
  while (entries_[i].key != nullptr && entries_[i].key != key) i = (i + 1) & (capacity_ - 1);
  if (entries_[i].key == nullptr) ++used_;
  entries_[i] = {key, value};
  return true;
}

// Entries after the removed one move up. A search then stops at the first empty entry, and no tombstones are needed.
void PointerMap::Remove(const void* key) noexcept {
  if (Find(key) == nullptr) return;
  std::size_t hole = HomeOf(key);
  while (entries_[hole].key != key) hole = (hole + 1) & (capacity_ - 1);
  for (std::size_t i = (hole + 1) & (capacity_ - 1); entries_[i].key != nullptr; i = (i + 1) & (capacity_ - 1)) {
    const std::size_t home = HomeOf(entries_[i].key);
    if (((i - home) & (capacity_ - 1)) < ((i - hole) & (capacity_ - 1))) continue;
    entries_[hole] = entries_[i];
    hole = i;
  }
  entries_[hole] = {nullptr, nullptr};
  --used_;
}

bool PointerMap::Grow() noexcept {
  const std::size_t old_capacity = capacity_;
  Entry* const old = entries_;
  const std::size_t grown = old_capacity == 0 ? 256 : 2 * old_capacity;
  void* const pages = MapPages(grown * sizeof(Entry));
  if (pages == nullptr) return false;
  entries_ = static_cast<Entry*>(pages);
  capacity_ = grown;
  used_ = 0;
  for (std::size_t i = 0; i < old_capacity; ++i) {
    if (old[i].key != nullptr) Put(old[i].key, old[i].value);
  }
  UnmapPages(old, old_capacity * sizeof(Entry));
  return true;
}

}  // namespace cuaudit::cudart
