// SPDX-License-Identifier: MIT
// thread_caches.h: the caches of all threads for one allocator, and what their threads counted.
//
//   Owns      each cache together with its thread; the cache of a thread that ended goes to the next one.
//   Threads   any thread; Mine is the calling thread's. Caches are added at the head and stay until the allocator is destroyed.
//   Errors    Mine answers nullptr when host memory ran out, with `thread_cache` off, or at the thread's very end.
//   Faults    makes no driver calls.
#pragma once

#include "allocator/tables/device.h"
#include "allocator/tables/environment.h"
#include "allocator/tables/thread_cache.h"

namespace cuaudit::alloc {

class ThreadCaches {
 public:
  explicit ThreadCaches(const Environment& environment) noexcept : env_(environment) {}
  ~ThreadCaches();

  ThreadCache* Mine() noexcept {
    const KnownCache& known = known_caches[env_.serial % kKnownCaches];
    return known.serial == env_.serial ? known.cache : FindOrMake();
  }
  ThreadCache* First() const noexcept { return first_.load(std::memory_order_acquire); }
  void Empty(Arena* arena) noexcept;  // what all threads keep of this arena goes back to it
  void CountAllocated(Device* device, const Block* block, std::size_t requested) noexcept;
  void CountFreed(Device* device, bool large, std::size_t size, std::size_t requested) noexcept;
  // By the thread whose counters they are.
  static void FoldIfFarOff(Device* device, Counters* counters) noexcept;
  void FoldAll(Device* device) noexcept;

 private:
  ThreadCache* FindOrMake() noexcept;
  const Environment& env_;
  std::atomic<ThreadCache*> first_{nullptr};
  Lock lock_;  // one is made, or taken over, at a time
};

// Without a locked instruction, where the thread has a cache.
[[gnu::always_inline]] inline void CountUse(ThreadCache* cache, std::atomic<std::uint64_t> ThreadCache::*mine,
                                            std::atomic<std::uint64_t>* everybodys) noexcept {
  if (cache == nullptr) {
    everybodys->fetch_add(1, std::memory_order_relaxed);
  } else {
    (cache->*mine).store((cache->*mine).load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

}  // namespace cuaudit::alloc
