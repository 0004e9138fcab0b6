// SPDX-License-Identifier: MIT
// thread_cache.h: the cache of a thread, and those of all threads for one allocator.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/blocks/block.h"
#include "allocator/tables/counters.h"
#include "allocator/tables/device.h"
#include "allocator/tables/environment.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cuaudit::alloc {

// Blocks that one thread freed, of exactly the sizes it asked for, for the next such request of the same stream.
//
//   Owns      its magazines; the blocks are the arena's. A cache belongs to its allocator and its thread, and goes with the last of them.
//   Threads   Put, Take, Heed, ExchangeForGood, `latest`, the names and the counters by the owning thread alone, and EmptyOwn, unless
//             IsExchanged; BeginEmptying and EndEmptying by anybody else at any time.
//   Units     keys are rounded sizes in units of 512 bytes.
//   Errors    none; a magazine that host memory cannot make is done without.
//   Faults    makes no driver calls.

inline constexpr std::size_t kSlots = 16;

// A magazine that keeps missing is passed by: blocks go to and from the arena at once, and the magazine only remembers what it would have
// had. When that would have served several requests in a row, it keeps blocks again.
class alignas(64) Magazine {
 public:
  // `is_exchanged`: no barrier runs in other threads, so each slot is taken by a locked instruction.
  explicit Magazine(bool is_exchanged) noexcept : is_exchanged_(is_exchanged), emptying_(is_exchanged ? kForGood : 0) {}
  bool is_passed_by() const noexcept { return is_passed_by_; }  // then neither Take nor Put may be called

  // The stream has been asked whether it is being captured, and need not be for so many requests less one.
  void NoteAsked(std::uint32_t interval) noexcept { unasked_left_ = static_cast<std::int64_t>(interval) - 1; }
  bool MayServeUnasked() noexcept { return --unasked_left_ >= 0; }

  // From the slot that was used last, and only where no capture check is due; nullptr: Take knows more. What was put last is mostly asked
  // for next, and one key is read sooner than sixteen just after one of them was written.
  Block* TakeLatestUnasked(std::uint32_t key) noexcept {
    const unsigned latest = last_;
    if (key_[latest] != key || !MayServeUnasked()) [[unlikely]]
      return nullptr;
    return TakeAt(latest);
  }
  Block* Take(std::uint32_t key) noexcept {
    for (unsigned hits = Match(key); hits != 0; hits &= hits - 1) {
      Block* const block = TakeAt(static_cast<unsigned>(__builtin_ctz(hits)));
      if (block != nullptr) return block;
    }
    ++misses_;
    return nullptr;
  }
  // After a miss, when all that was kept has gone back.
  void NoteEmptied() noexcept {
    if (misses_ < kMostMisses) return;
    is_passed_by_ = true;
    key_.fill(0);
    misses_ = would_hit_ = 0;
  }
  // Records a request while the magazine is passed by. Returns true when it keeps blocks again.
  bool NoteRequest(std::uint32_t key) noexcept {
    const unsigned hits = Match(key);
    if (hits == 0) {
      key_.fill(0);
      would_hit_ = 0;
      return false;
    }
    key_[static_cast<unsigned>(__builtin_ctz(hits))] = 0;
    if (++would_hit_ < kHitsToReturn) return false;
    is_passed_by_ = false;
    key_.fill(0);
    bytes_ = 0;
    return true;
  }
  void NoteFreed(std::uint32_t key) noexcept {
    key_[last_] = key;
    last_ = (last_ + 1) % kSlots;
  }

  // Puts a block into the slot used last. Returns false if it is taken or the limit is exceeded; call Put then.
  bool PutAtOnce(Block* block, std::size_t limit) noexcept {
    const std::size_t bytes = bytes_ + block->size;
    const unsigned latest = last_;
    if (key_[latest] != 0 || bytes > limit) [[unlikely]]
      return false;
    key_[latest] = block->key;
    bytes_ = bytes;
    size_[latest] = block->size;
    slot_[latest].store(block, std::memory_order_release);
    return true;
  }
  bool Put(Block* block, std::size_t limit) noexcept {
    if (PutAtOnce(block, limit)) return true;
    const unsigned room = Match(0);
    if (room != 0) last_ = static_cast<unsigned>(__builtin_ctz(room));
    if ((room == 0 || bytes_ + block->size > limit) && !Sweep(block->size, limit)) return false;
    return PutAtOnce(block, limit);
  }

  bool IsEmpty() const noexcept {
    for (const std::atomic<Block*>& slot : slot_) {
      if (slot.load(std::memory_order_relaxed) != nullptr) return false;
    }
    return true;
  }
  // Another thread's is emptied between a BeginEmptying, a barrier in all threads (RunBarrier) and an EndEmptying. After the barrier
  // whoever takes a block sees that it must exchange the slot; and who did not see it yet has shown that it is taking one, and is waited
  // for: for that take and those that follow it without a pause. False: without a barrier the owner may be at any point of its take,
  // unseen. It keeps what it has, and exchanges from now on; once it has seen so (Heed), nobody needs a barrier.
  void BeginEmptying() noexcept { emptying_.fetch_add(1); }
  template <typename Visit>
  bool EndEmptying(bool had_barrier, Visit visit) noexcept {
    if (had_barrier) {
      for (Waiter waiter; is_taking_.load(std::memory_order_acquire);) waiter.Pause();
      EmptyOwn(visit);
    } else {
      emptying_.fetch_or(kForGood);
    }
    emptying_.fetch_sub(1, std::memory_order_release);
    return had_barrier;
  }
  // All takes without an exchange are over and seen, and there will be none: so anybody may EmptyOwn.
  bool IsExchanged() const noexcept { return is_exchanged_.load(std::memory_order_acquire); }
  // Not in a take. The owner has read kForGood, which nobody takes away, so it reads it ever after.
  void Heed() noexcept {
    if ((emptying_.load(std::memory_order_relaxed) & kForGood) != 0) is_exchanged_.store(true, std::memory_order_release);
  }
  void ExchangeForGood() noexcept {  // likewise
    emptying_.fetch_or(kForGood);
    is_exchanged_.store(true, std::memory_order_release);
  }
  template <typename Visit>
  void EmptyOwn(Visit visit) noexcept {
    for (std::atomic<Block*>& slot : slot_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      Block* const block = slot.exchange(nullptr, std::memory_order_acquire);
      if (block != nullptr) visit(block);
    }
  }

 private:
  static constexpr std::uint32_t kForGood = std::uint32_t{1} << 31;
  static constexpr unsigned kMostMisses = 8;    // in a row; a request that misses asks twice
  static constexpr unsigned kHitsToReturn = 8;  // likewise

  // One bit for each slot with that key.
  unsigned Match(std::uint32_t key) const noexcept {
#if defined(__SSE2__)
    static_assert(kSlots == 16);
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(key));
    const auto equal = [&](std::size_t i) {
      return _mm_cmpeq_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(key_.data() + i)), wanted);
    };
    const __m128i all = _mm_packs_epi16(_mm_packs_epi32(equal(0), equal(4)), _mm_packs_epi32(equal(8), equal(12)));
    return static_cast<unsigned>(_mm_movemask_epi8(all));
#else
    unsigned hits = 0;
    for (unsigned i = 0; i < kSlots; ++i) hits |= static_cast<unsigned>(key_[i] == key) << i;
    return hits;
#endif
  }
  // nullptr: somebody emptied it.
  Block* TakeAt(unsigned i) noexcept {
    last_ = i;
    key_[i] = 0;
    Block* block = nullptr;
    is_taking_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the processor is kept to that order by the barrier of who empties
    const bool is_alone = emptying_.load(std::memory_order_acquire) == 0;
    if (is_alone) [[likely]] {
      block = slot_[i].load(std::memory_order_acquire);
      slot_[i].store(nullptr, std::memory_order_relaxed);
    }
    is_taking_.store(false, std::memory_order_release);
    if (!is_alone) [[unlikely]] {
      block = slot_[i].exchange(nullptr, std::memory_order_acquire);
      Heed();
    }
    if (block == nullptr) [[unlikely]]
      return nullptr;
    bytes_ -= block->size;
    misses_ = 0;
    return block;
  }
  // Forgets what others have taken. True: that made room for so many bytes more.
  bool Sweep(std::size_t bytes, std::size_t limit) noexcept {
    bytes_ = 0;
    bool any = false;
    for (unsigned i = 0; i < kSlots; ++i) {
      if (slot_[i].load(std::memory_order_relaxed) == nullptr) key_[i] = 0;
      if (key_[i] != 0) {
        bytes_ += size_[i];
      } else {
        any = true;
        last_ = i;
      }
    }
    return any && bytes_ + bytes <= limit;
  }

  alignas(16) std::array<std::uint32_t, kSlots> key_{};  // 0: empty; by the owner alone
  std::array<std::atomic<Block*>, kSlots> slot_{};
  std::size_t bytes_ = 0;
  std::int64_t unasked_left_ = 0;
  unsigned last_ = 0;  // the slot that was last used
  unsigned misses_ = 0, would_hit_ = 0;
  bool is_passed_by_ = false;
  std::atomic<bool> is_taking_{false};   // the owner is between asking whether it must exchange a slot and having emptied it
  std::atomic<bool> is_exchanged_;       // the owner knows of kForGood
  std::atomic<std::uint32_t> emptying_;  // threads that empty it, and kForGood; unless it is 0 each slot is exchanged
  std::array<std::size_t, kSlots> size_{};
};

class ThreadCache {
 public:
  static constexpr std::size_t kPageBits = 6;
  static constexpr std::size_t kPages = 64;  // 4096 arenas; more go without

  ThreadCache(std::uint64_t allocator, bool is_exchanged) noexcept : serial(allocator), is_exchanged_(is_exchanged) {}
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;
  ~ThreadCache();

  Magazine* Find(std::uint32_t arena) const noexcept {
    const std::size_t page = arena >> kPageBits;
    if (page >= kPages) return nullptr;
    const Page* const found = pages_[page].load(std::memory_order_acquire);
    return found == nullptr ? nullptr : found->magazine[arena & (kPerPage - 1)].load(std::memory_order_acquire);
  }
  Magazine* FindOrMake(std::uint32_t arena) noexcept;
  Counters* CountersOf(int device) noexcept;  // nullptr: no host memory
  Counters* counters(int device) const noexcept { return counters_[static_cast<std::size_t>(device)].load(std::memory_order_acquire); }

  // The thread's parts for the arena that it last used, and the block that it was last given: what saves the way there.
  struct Latest {
    Arena* arena = nullptr;      // if its magazine keeps blocks
    Arena* passed_by = nullptr;  // if its magazine is passed by
    Magazine* magazine = nullptr;
    Counters* counters = nullptr;
    Block* block = nullptr;
  };
  Latest latest;                       // by the owner alone
  bool TurnTo(Arena* arena) noexcept;  // false: the thread has no magazine or no counters for it, which a slower call makes
  // By the owner, in a slower call: another thread was refused a barrier, so from now on all that this one keeps is to be had without.
  void Heed() noexcept {
    if (was_refused.load(std::memory_order_relaxed)) [[unlikely]]
      ExchangeForGood();
  }
  // After a magazine began to be passed by, or to keep blocks.
  void TurnToNone() noexcept { latest.arena = latest.passed_by = nullptr; }

  // Which streams handles were, when they were last asked about, and for how many calls that is believed.
  struct Named {
    CUstream handle = nullptr;
    StreamRecord* record = nullptr;  // null: none
    int device = 0;
    std::uint32_t left = 0;
  };
  Named& NamedAt(CUstream handle) noexcept { return named_[(reinterpret_cast<std::uintptr_t>(handle) * 0x9E3779B97F4A7C15U) >> 61]; }
  // Another thread takes it over, to whom a thread's default stream is another.
  void ForgetNames() noexcept { named_.fill(Named()); }

  const std::uint64_t serial;             // the allocator's; survives it
  ThreadCache* next = nullptr;            // the allocator's list
  ThreadCache* next_of_thread = nullptr;  // the thread's
  std::atomic<bool> abandoned{false};     // its thread has ended
  std::atomic<int> owners{2};
  std::atomic<bool> was_refused{false};  // a barrier, to who would have emptied a magazine; until the owner heeds it
  // Of RecordUse, by the owner alone, read by anybody: that recorded; on the block's own stream; of a stream that had used the block
  // before.
  std::atomic<std::uint64_t> uses_recorded{0};
  std::atomic<std::uint64_t> uses_own{0};
  std::atomic<std::uint64_t> uses_merged{0};

 private:
  void ExchangeForGood() noexcept;
  bool is_exchanged_;  // see Magazine; by the owner alone
  static constexpr std::size_t kPerPage = std::size_t{1} << kPageBits;
  struct Page {
    std::array<std::atomic<Magazine*>, kPerPage> magazine{};
  };
  std::array<std::atomic<Page*>, kPages> pages_{};
  std::array<std::atomic<Counters*>, kMaxDevices> counters_{};
  std::array<Named, 8> named_{};
};

// The thread's cache for the allocator that it last called. A forked child and a new allocator never match it: serials are not given out
// twice, and the child finds the allocator's own wiped, which nobody's does not match either.
struct KnownCache {
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  std::uint64_t serial = kNobody;
  ThreadCache* cache = nullptr;
};
// The initial-exec model spares a call for each access. All thread storage of a library, some 400 bytes of this one, then comes out of what
// the loader keeps for libraries opened later; that is enough for three copies of it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local KnownCache known_cache;

// The caches of all threads for one allocator, and what their threads counted.
//
//   Owns      each cache together with its thread; the cache of a thread that ended goes to the next one.
//   Threads   any thread; Mine is the calling thread's. Caches are added at the head and stay until the allocator is destroyed.
//   Errors    Mine answers nullptr when host memory ran out, with `thread_cache` off, or at the thread's very end.
//   Faults    makes no driver calls.
class ThreadCaches {
 public:
  explicit ThreadCaches(const Environment& environment) noexcept : env_(environment) {}
  ~ThreadCaches();

  ThreadCache* Mine() noexcept { return known_cache.serial == env_.serial ? known_cache.cache : FindOrMake(); }
  // The calling thread's last call was for another allocator: from now on it is for this one. False: it was not, or it must not take the
  // path without locks.
  bool TurnTo() noexcept;
  ThreadCache* First() const noexcept { return first_.load(std::memory_order_acquire); }
  // What all threads keep of this arena goes back to it; but where the barrier is refused, not what a thread keeps that has not called
  // since.
  void Empty(Arena* arena) noexcept;
  void CountAllocated(Device* device, const Block* block, std::size_t requested) noexcept;
  void CountFreed(Device* device, const Block* block, std::size_t requested) noexcept;
  // By the thread whose counters they are.
  static void FoldIfFarOff(Device* device, Counters* counters) noexcept {
    if (counters->IsFarOff()) [[unlikely]]
      Fold(device, counters);
  }
  void FoldAll(Device* device) noexcept;

 private:
  ThreadCache* FindOrMake() noexcept;
  static void Fold(Device* device, Counters* counters) noexcept;
  const Environment& env_;
  std::atomic<bool> is_refused_{false};  // the barrier
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
