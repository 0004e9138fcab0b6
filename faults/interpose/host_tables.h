// SPDX-License-Identifier: MIT
// host_tables.h: heap blocks that are alive, for an audit in this process; and mutexes that were not destroyed.
//
// A fixed table of 8 MiB, of which only used pages are touched. It allocates nothing. It has 1,024 parts of 256 blocks, each behind a
// lock that is held for a few instructions. Each part uses linear probing with backward shift deletion (Knuth, The Art of Computer
// Programming, section 6.4, algorithm R).
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {

struct Block {
  std::uint64_t address = 0;  // 0: none
  std::uint64_t bytes = 0;
  std::uint32_t stack = 0;  // stack of the allocation; 0: not taken
  std::uint32_t span = 0;   // span of the allocation, counted from 1
  std::uint16_t flags = 0;  // flags of its record
};

class BlockTable {
 public:
  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  [[nodiscard]] bool Add(const Block& block) noexcept {
    Part& part = PartOf(block.address);
    const Hold hold(part.lock);
    if (part.count == kSlots - 1) return false;  // full: one slot stays empty, so that every probe ends
    std::size_t at = Home(block.address);
    while (part.block[at].address != 0) at = (at + 1) % kSlots;
    part.block[at] = block;
    ++part.count;
    count_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  // Returns false when the table does not have the address.
  bool Remove(std::uint64_t address, Block* was) noexcept {
    if (empty()) return false;
    Part& part = PartOf(address);
    const Hold hold(part.lock);
    std::size_t at = Home(address);
    for (; part.block[at].address != address; at = (at + 1) % kSlots) {
      if (part.block[at].address == 0) return false;
    }
    *was = part.block[at];
    // Moves up the blocks that are further along because this slot was taken.
    for (std::size_t next = (at + 1) % kSlots; part.block[next].address != 0; next = (next + 1) % kSlots) {
      const std::size_t home = Home(part.block[next].address);
      if ((next - home) % kSlots < (next - at) % kSlots) continue;
      part.block[at] = part.block[next];
      at = next;
    }
    part.block[at] = {};
    --part.count;
    count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  // Returns false when the table does not have the address.
  bool Find(std::uint64_t address, Block* found) noexcept {
    if (empty()) return false;
    Part& part = PartOf(address);
    const Hold hold(part.lock);
    for (std::size_t at = Home(address); part.block[at].address != 0; at = (at + 1) % kSlots) {
      if (part.block[at].address != address) continue;
      *found = part.block[at];
      return true;
    }
    return false;
  }

  void Clear() noexcept {
    for (Part& part : parts_) {
      if (part.count == 0) continue;
      const Hold hold(part.lock);
      for (Block& block : part.block) block = {};
      count_.fetch_sub(part.count, std::memory_order_relaxed);
      part.count = 0;
    }
  }

  // `visit` must not allocate.
  template <typename Visit>
  void ForEach(const Visit& visit) noexcept {
    for (Part& part : parts_) {
      if (part.count == 0) continue;
      const Hold hold(part.lock);
      for (const Block& block : part.block) {
        if (block.address != 0) visit(block);
      }
    }
  }

 private:
  static constexpr std::size_t kParts = 1024;
  static constexpr std::size_t kSlots = 256;
  struct Part {
    std::atomic<std::uint32_t> lock{0};
    std::atomic<std::uint32_t> count{0};
    Block block[kSlots];
  };

  class Hold {
   public:
    explicit Hold(std::atomic<std::uint32_t>& lock) noexcept : lock_(lock) {
      while (lock_.exchange(1, std::memory_order_acquire) != 0) {
        for (int spins = 0; lock_.load(std::memory_order_relaxed) != 0; ++spins) {
          if (spins == kSpins) {
            sched_yield();
            spins = 0;
          }
        }
      }
    }
    ~Hold() { lock_.store(0, std::memory_order_release); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    static constexpr int kSpins = 200;
    std::atomic<std::uint32_t>& lock_;
  };

  static std::uint64_t Mixed(std::uint64_t address) noexcept { return (address >> 4U) * 0x9e3779b97f4a7c15U; }
  static std::size_t Home(std::uint64_t address) noexcept { return Mixed(address) >> 32U & (kSlots - 1); }
  Part& PartOf(std::uint64_t address) noexcept { return parts_[Mixed(address) >> 54U]; }

  Part parts_[kParts];
  std::atomic<std::uint64_t> count_{0};
};

// The mutexes that were initialised and not yet destroyed, so that freeing the memory under one is noticed.
//
// A fixed, lock-free table for 4,096 mutexes. The thread that initialises or destroys a mutex adds or removes it. std::mutex never calls
// pthread_mutex_init, so it is not seen.

class MutexTable {
 public:
  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  static bool Locked(std::uint64_t mutex) noexcept {
    return __atomic_load_n(&reinterpret_cast<const pthread_mutex_t*>(mutex)->__data.__lock, __ATOMIC_RELAXED) != 0;
  }

  // The C library leaves this mark in the memory of a destroyed mutex, and every initialiser removes it.
  static bool Destroyed(std::uint64_t mutex) noexcept {
    return __atomic_load_n(&reinterpret_cast<const pthread_mutex_t*>(mutex)->__data.__kind, __ATOMIC_RELAXED) == -1;
  }

  // Returns false when the table is full; the mutex is then not followed.
  [[nodiscard]] bool Add(std::uint64_t mutex) noexcept {
    Remove(mutex);
    for (std::size_t i = 0; i < kCapacity; ++i) {
      std::uint64_t free = 0;
      if (slots_[i].load(std::memory_order_relaxed) != 0 || !slots_[i].compare_exchange_strong(free, mutex, std::memory_order_relaxed))
        continue;
      std::size_t used = used_.load(std::memory_order_relaxed);
      while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
      }
      count_.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    return false;
  }

  void Clear() noexcept {
    for (std::atomic<std::uint64_t>& slot : slots_) {
      if (slot.exchange(0, std::memory_order_relaxed) != 0) count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  void Remove(std::uint64_t mutex) noexcept {
    RemoveRange(mutex, 1, [](std::uint64_t, bool) {});
  }

  // Removes every mutex inside [start, start + bytes) and calls `visit` for each.
  template <typename Visit>
  void RemoveRange(std::uint64_t start, std::size_t bytes, const Visit& visit) noexcept {
    if (empty()) return;
    const std::size_t used = used_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      std::atomic<std::uint64_t>& slot = slots_[i];
      std::uint64_t mutex = slot.load(std::memory_order_relaxed);
      if (mutex < start || mutex >= start + bytes || mutex == 0) continue;
      if (!slot.compare_exchange_strong(mutex, 0, std::memory_order_relaxed)) continue;
      count_.fetch_sub(1, std::memory_order_relaxed);
      visit(mutex, Locked(mutex));
    }
  }

 private:
  static constexpr std::size_t kCapacity = 4096;

  std::atomic<std::uint64_t> slots_[kCapacity] = {};
  std::atomic<std::size_t> used_{0};  // slots from here on were never taken, so free() only looks at those below
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace cuaudit::faults
