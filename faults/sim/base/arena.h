// SPDX-License-Identifier: MIT
// arena.h: the memory of the simulator's own records: one mapping with bump allocation and free lists by size, a vector on top of it, and
// the mappings that a world lives in.
//
//   Owns      nothing; the mapping belongs to whoever calls Adopt. A freed block is reused, never returned to the system.
//   Threads   not thread-safe; the caller holds the world's lock.
//   Units     bytes; blocks are zeroed and aligned to 16.
//   Errors    nullptr or false when the mapping is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

namespace cuaudit::sim {

// Reserves address space without committing memory; nullptr when the system refuses. `alignment` is 0 or a power of two of at least a page.
char* MapReserve(std::size_t bytes, bool accessible, std::size_t alignment = 0, void* hint = nullptr) noexcept;
void MapRelease(void* base, std::size_t bytes) noexcept;

class Arena {
 public:
  // Allocates from [base, base + bytes), which must be zeroed.
  void Adopt(char* base, std::size_t bytes) noexcept;
  void* Allocate(std::size_t bytes) noexcept;
  // Memory from here on was never handed out.
  char* end_of_used() const noexcept { return next_; }
  void Free(void* block, std::size_t bytes) noexcept;

  template <typename T>
  T* New() noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    void* const block = Allocate(sizeof(T));
    return block == nullptr ? nullptr : ::new (block) T();
  }
  template <typename T>
  void Delete(T* object) noexcept {
    Free(object, sizeof(T));
  }

 private:
  static constexpr std::size_t kSmallClasses = 32;  // multiples of 16 up to 512
  static constexpr std::size_t kLargeClasses = 40;  // powers of two above
  struct FreeBlock {
    FreeBlock* next;
  };
  static std::size_t ClassOf(std::size_t bytes, std::size_t* rounded) noexcept;

  char* next_ = nullptr;
  char* end_ = nullptr;
  FreeBlock* free_[kSmallClasses + kLargeClasses] = {};
};

// A vector of trivially copyable elements. It has no destructor: its owner must call Clear.
template <typename T>
class Vector {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  bool Push(Arena& arena, const T& value) noexcept {
    if (size_ == capacity_ && !Grow(arena, capacity_ == 0 ? 4 : capacity_ * 2)) return false;
    data_[size_++] = value;
    return true;
  }
  bool Assign(Arena& arena, const T* from, std::size_t count) noexcept {
    if (count > capacity_ && !Grow(arena, count)) return false;
    if (count != 0 && from != data_) std::memmove(data_, from, count * sizeof(T));
    size_ = count;
    return true;
  }
  void Clear(Arena& arena) noexcept {
    if (data_ != nullptr) arena.Free(data_, capacity_ * sizeof(T));
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  void Erase(std::size_t at) noexcept {
    if (at + 1 < size_) std::memmove(data_ + at, data_ + at + 1, (size_ - at - 1) * sizeof(T));
    --size_;
  }
  bool EraseValue(const T& value) noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      if (data_[i] == value) {
        Erase(i);
        return true;
      }
    }
    return false;
  }
  bool Contains(const T& value) const noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      if (data_[i] == value) return true;
    }
    return false;
  }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  void Truncate(std::size_t size) noexcept { size_ = size < size_ ? size : size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T* data() noexcept { return data_; }

 private:
  bool Grow(Arena& arena, std::size_t capacity) noexcept {
    T* const grown = static_cast<T*>(arena.Allocate(capacity * sizeof(T)));
    if (grown == nullptr) return false;
    if (data_ != nullptr) {
      std::memcpy(static_cast<void*>(grown), data_, size_ * sizeof(T));
      arena.Free(data_, capacity_ * sizeof(T));
    }
    data_ = grown;
    capacity_ = capacity;
    return true;
  }
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// The mappings that a world lives in. A destroyed world's mappings are cleared and kept for the next world, because mapping and
// unmapping cost several times what a small world does.
//
//   Owns      its mappings. At most kSpares shells wait in the process; each holds address space but almost no memory.
//   Threads   any thread; shells change hands by an atomic exchange, without a lock.
//   Units     bytes.
//   Errors    false when the system refuses the address space even after the spare shells were released.

struct Shell {
  char* books = nullptr;  // the world's records; the first page holds only the mark that a fork wipes
  std::size_t book_bytes = 0;
  char* device = nullptr;  // device addresses that clients see
  char* device_bytes = nullptr;
  char* host = nullptr;
  std::size_t region_bytes = 0;  // size of each of the three
};

inline constexpr std::size_t kPage = 4096;

// All memory is zero; the regions have at least `region_bytes`.
bool TakeShell(std::size_t region_bytes, Shell* shell) noexcept;
// Clears [p, p + used). The first part stays committed, so that a small world is cheap; the rest is returned to the system.
void ClearUsed(char* p, std::size_t used) noexcept;
// Keeps a cleared shell for the next world, or unmaps it.
void LeaveShell(const Shell& shell) noexcept;
void UnmapShell(const Shell& shell) noexcept;
void DropSpareShells() noexcept;

}  // namespace cuaudit::sim
