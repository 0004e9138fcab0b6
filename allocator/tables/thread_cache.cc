// SPDX-License-Identifier: MIT
#include "allocator/tables/thread_cache.h"

#include <array>
#include <new>
#include <utility>

namespace cuaudit::alloc {

ThreadCache::~ThreadCache() {
  for (std::atomic<Page*>& slot : pages_) {
    Page* const page = slot.load(std::memory_order_relaxed);
    if (page == nullptr) continue;
    for (std::atomic<Magazine*>& magazine : page->magazine) delete magazine.load(std::memory_order_relaxed);
    delete page;
  }
  for (std::atomic<Counters*>& counters : counters_) delete counters.load(std::memory_order_relaxed);
}

Magazine* ThreadCache::FindOrMake(std::uint32_t arena) noexcept {
  const std::size_t at = arena >> kPageBits;
  if (at >= kPages) return nullptr;
  Page* page = pages_[at].load(std::memory_order_relaxed);
  if (page == nullptr) {
    page = new (std::nothrow) Page;
    if (page == nullptr) return nullptr;
    pages_[at].store(page, std::memory_order_release);
  }
  std::atomic<Magazine*>& slot = page->magazine[arena & (kPerPage - 1)];
  Magazine* magazine = slot.load(std::memory_order_relaxed);
  if (magazine == nullptr) {
    magazine = new (std::nothrow) Magazine(is_exchanged_);
    if (magazine != nullptr) slot.store(magazine, std::memory_order_release);
  }
  return magazine;
}

Counters* ThreadCache::CountersOf(int device) noexcept {
  std::atomic<Counters*>& slot = counters_[static_cast<std::size_t>(device)];
  Counters* counters = slot.load(std::memory_order_relaxed);
  if (counters == nullptr) {
    counters = new (std::nothrow) Counters;
    if (counters != nullptr) slot.store(counters, std::memory_order_release);
  }
  return counters;
}

bool ThreadCache::TurnTo(Arena* arena) noexcept {
  TurnToNone();
  if (arena == nullptr) return false;
  Counters* const counters = this->counters(arena->device->index);
  Magazine* const magazine = Find(arena->index);
  if (counters == nullptr || magazine == nullptr) return false;
  (magazine->is_passed_by() ? latest.passed_by : latest.arena) = arena;
  latest.counters = counters;
  latest.magazine = magazine;
  return true;
}

void ThreadCache::ExchangeForGood() noexcept {
  is_exchanged_ = true;
  was_refused.store(false, std::memory_order_relaxed);
  for (const std::atomic<Page*>& slot : pages_) {
    Page* const page = slot.load(std::memory_order_relaxed);
    if (page == nullptr) continue;
    for (std::atomic<Magazine*>& of_page : page->magazine) {
      if (Magazine* const magazine = of_page.load(std::memory_order_relaxed); magazine != nullptr) magazine->ExchangeForGood();
    }
  }
}

void Totals::Fold(Counters* counters) noexcept {
  for (std::size_t m = 0; m < kMeasures; ++m) {
    for (std::size_t k = 0; k < kPoolKinds; ++k) {
      Line& line = counters->line[m];
      const std::int64_t net = k == 0 ? line.Net(0) + line.Net(1) : line.Net(k - 1);
      const std::int64_t high = line.high[k].load(std::memory_order_relaxed);
      const std::int64_t others = current[m][k] - line.folded[k];
      const std::int64_t reached = others + (high > net ? high : net);
      if (reached > peak[m][k]) peak[m][k] = reached;
      if (m != kRequested && reached + pending[m][k].current > active_peak[m][k]) active_peak[m][k] = reached + pending[m][k].current;
      current[m][k] = others + net;
      line.folded[k] = net;
      line.high[k].store(net, std::memory_order_relaxed);
    }
  }
  counters->just_freed.store(nullptr, std::memory_order_relaxed);  // behind the reading of what was taken
  counters->folded_bytes.store(counters->line[kBytes].folded[0], std::memory_order_relaxed);
}

[[gnu::tls_model("initial-exec")]] constinit thread_local KnownCache known_cache = {};

namespace {

void DropOwner(ThreadCache* cache) noexcept {
  if (cache->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete cache;
}

// Set when the thread's caches have been left behind: thread-local destructors that run later do without one. Not a member of what is
// destroyed then: a compiler may drop stores to an object whose lifetime ends with them.
constinit thread_local bool has_left_caches = false;

// What the thread owns; the fast path does not touch it, so it pays for no guard.
struct OwnedByThread {
  ThreadCache* first = nullptr;
  ~OwnedByThread() {
    known_cache = KnownCache{};
    while (first != nullptr) {
      ThreadCache* const cache = first;
      first = cache->next_of_thread;
      cache->next_of_thread = nullptr;
      cache->abandoned.store(true, std::memory_order_release);
      DropOwner(cache);
    }
    has_left_caches = true;
  }
};
thread_local OwnedByThread owned;

// What allocators that are gone have left to this thread. `known_cache` matches none of them any more.
void DropOrphans() noexcept {
  for (ThreadCache** link = &owned.first; *link != nullptr;) {
    ThreadCache* const cache = *link;
    if (cache->owners.load(std::memory_order_acquire) != 1) {
      link = &cache->next_of_thread;
      continue;
    }
    *link = cache->next_of_thread;
    delete cache;
  }
}

}  // namespace

ThreadCaches::~ThreadCaches() {
  for (ThreadCache* cache = first_.load(); cache != nullptr;) DropOwner(std::exchange(cache, cache->next));
}

bool ThreadCaches::TurnTo() noexcept {
  return known_cache.serial != env_.serial && env_.fast_serial() == env_.serial && FindOrMake() != nullptr;
}

// Of a thread whose last call was for another allocator, or that has none.
ThreadCache* ThreadCaches::FindOrMake() noexcept {
  if (!env_.options.thread_cache || has_left_caches) return nullptr;
  ThreadCache* cache = owned.first;
  while (cache != nullptr && cache->serial != env_.serial) cache = cache->next_of_thread;
  if (cache == nullptr) {
    DropOrphans();
    const Held held(lock_);
    cache = first_.load(std::memory_order_relaxed);
    while (cache != nullptr) {
      bool abandoned = true;
      if (cache->abandoned.compare_exchange_strong(abandoned, false, std::memory_order_acq_rel)) {
        cache->owners.fetch_add(1, std::memory_order_relaxed);
        cache->ForgetNames();
        break;
      }
      cache = cache->next;
    }
    if (cache == nullptr) {
      cache = new (std::nothrow) ThreadCache(env_.serial, !env_.has_barrier() || is_refused_.load(std::memory_order_relaxed));
      if (cache == nullptr) return nullptr;
      cache->next = first_.load(std::memory_order_relaxed);
      first_.store(cache, std::memory_order_release);
    }
    cache->next_of_thread = owned.first;
    owned.first = cache;
  }
  known_cache = KnownCache{env_.serial, cache};
  return cache;
}

// One barrier for the magazines of many threads. A cache whose thread has ended is taken over meanwhile, as by the next thread.
void ThreadCaches::Empty(Arena* arena) noexcept {
  const auto give_back = [arena](Block* block) { arena->Return(block); };
  ThreadCache* const mine = known_cache.serial == env_.serial ? known_cache.cache : nullptr;
  if (mine != nullptr) mine->Heed();
  std::array<std::pair<ThreadCache*, Magazine*>, 32> begun;
  for (ThreadCache* cache = First(); cache != nullptr;) {
    std::size_t count = 0;
    for (; cache != nullptr && count < begun.size(); cache = cache->next) {
      Magazine* const magazine = cache->Find(arena->index);
      if (magazine == nullptr || magazine->IsEmpty()) continue;
      bool abandoned = true;
      if (cache == mine || magazine->IsExchanged()) {
        magazine->EmptyOwn(give_back);
      } else if (cache->abandoned.compare_exchange_strong(abandoned, false, std::memory_order_acq_rel)) {
        magazine->EmptyOwn(give_back);
        cache->abandoned.store(true, std::memory_order_release);
      } else {
        magazine->BeginEmptying();
        begun[count++] = {cache, magazine};
      }
    }
    if (count == 0) continue;
    bool is_alone = RunBarrier();
    if (env_.closed.load(std::memory_order_relaxed)) is_alone = true;  // in Close nobody else is in a call
    if (!is_alone) is_refused_.store(true, std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      if (!begun[i].second->EndEmptying(is_alone, give_back)) begun[i].first->was_refused.store(true, std::memory_order_release);
    }
  }
}

void ThreadCaches::CountAllocated(Device* device, const Block* block, std::size_t requested) noexcept {
  ThreadCache* const cache = Mine();
  Counters* const counters = cache == nullptr ? nullptr : cache->CountersOf(device->index);
  if (counters != nullptr) {
    counters->Allocated(block->large, block->size, requested);
    return FoldIfFarOff(device, counters);
  }
  const Held held(device->totals.lock);
  device->shared.Allocated(block->large, block->size, requested);
}

void ThreadCaches::CountFreed(Device* device, const Block* block, std::size_t requested) noexcept {
  ThreadCache* const cache = Mine();
  Counters* const counters = cache == nullptr ? nullptr : cache->CountersOf(device->index);
  if (counters != nullptr) {
    counters->Freed(block, block->large, block->size, requested);
    return FoldIfFarOff(device, counters);
  }
  const Held held(device->totals.lock);
  device->shared.Freed(block, block->large, block->size, requested);
}

void ThreadCaches::Fold(Device* device, Counters* counters) noexcept {
  const Held held(device->totals.lock);
  device->totals.Fold(counters);
}

void ThreadCaches::FoldAll(Device* device) noexcept {
  const Held held(device->totals.lock);
  for (ThreadCache* cache = First(); cache != nullptr; cache = cache->next) {
    if (Counters* const counters = cache->counters(device->index); counters != nullptr) device->totals.Fold(counters);
  }
  device->totals.Fold(&device->shared);
}

}  // namespace cuaudit::alloc
