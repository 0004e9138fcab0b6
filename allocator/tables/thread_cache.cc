// SPDX-License-Identifier: MIT
#include "allocator/tables/thread_cache.h"

#include <new>

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
    magazine = new (std::nothrow) Magazine;
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
  counters->folded_bytes.store(counters->line[kBytes].folded[0], std::memory_order_relaxed);
}

}  // namespace cuaudit::alloc
