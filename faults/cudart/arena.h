// SPDX-License-Identifier: MIT
// arena.h: memory for the runtime's own records. It does not come from malloc, so that host leak checkers count only the program's blocks.
//
//   Slots<T>   fixed-size records with a free list. Addresses never change, and pages are never returned to the system.
//   PointerMap a hash map from address to record (open addressing). It doubles when it is three quarters full.
//   Owns       its mappings, until the process ends.
//   Threads    not thread-safe; every caller holds the lock of the owning table.
//   Errors     nullptr or false when mmap fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace cuaudit::cudart {

// Maps zeroed pages. Returns nullptr when mmap fails.
void* MapPages(std::size_t bytes) noexcept;
void UnmapPages(void* pages, std::size_t bytes) noexcept;

template <typename T>
class Slots {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  T* New() noexcept {
    if (free_ == nullptr && !Grow()) return nullptr;
    Slot* const slot = free_;
    free_ = slot->next;
    return ::new (static_cast<void*>(slot->bytes)) T();
  }
  void Delete(T* record) noexcept {
    Slot* const slot = reinterpret_cast<Slot*>(record);
    slot->next = free_;
    free_ = slot;
  }

 private:
  union Slot {
    Slot* next;
    alignas(T) unsigned char bytes[sizeof(T)];
  };
  static constexpr std::size_t kChunk = std::size_t{64} << 10;
  bool Grow() noexcept {
    void* const pages = MapPages(kChunk);
    if (pages == nullptr) return false;
    Slot* const slots = static_cast<Slot*>(pages);
    for (std::size_t i = kChunk / sizeof(Slot); i-- > 0;) {
      slots[i].next = free_;
      free_ = &slots[i];
    }
    return true;
  }
  Slot* free_ = nullptr;
};

class PointerMap {
 public:
  void* Find(const void* key) const noexcept;
  // Replaces an existing entry. Returns false, and changes nothing, when there is no memory.
  bool Put(const void* key, void* value) noexcept;
  void Remove(const void* key) noexcept;

 private:
  struct Entry {
    const void* key;
    void* value;
  };
  bool Grow() noexcept;
  std::size_t HomeOf(const void* key) const noexcept;
  Entry* entries_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
};

}  // namespace cuaudit::cudart
