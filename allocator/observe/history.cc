// SPDX-License-Identifier: MIT
#include "allocator/observe/history.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace cuaudit::alloc {

CUresult History::Start(const HistoryOptions& options) noexcept {
  if (options.max_entries == 0) return CUDA_ERROR_INVALID_VALUE;
  if (options.max_entries > SIZE_MAX / sizeof(HistoryEntry) / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  std::unique_ptr<HistoryEntry[]> ring(new (std::nothrow) HistoryEntry[options.max_entries]);
  if (ring == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(mutex_);
  if (options.stacks != StackLevel::Never && !stacks_.Reserve(options.max_stacks)) return CUDA_ERROR_OUT_OF_MEMORY;
  ring_ = std::move(ring);
  capacity_ = options.max_entries;
  recorded_ = 0;
  level_.store(options.stacks, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

Tracer History::tracer() noexcept { return {.self = this, .capture = Capture, .record = Record}; }

void* History::Capture(void* self) noexcept {
  History* const history = static_cast<History*>(self);
  if (history->level_.load(std::memory_order_relaxed) == StackLevel::Never) return nullptr;
  return CallStacks::Token(history->stacks_.Capture(1));
}

void History::Record(void* self, const TraceEvent& event) noexcept {
  History* const history = static_cast<History*>(self);
  const bool keeps_stack = event.action == TraceAction::Alloc || history->level_.load(std::memory_order_relaxed) == StackLevel::All;
  const std::lock_guard lock(history->mutex_);
  if (history->capacity_ == 0) return;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  history->last_time_us_ =
      std::max(history->last_time_us_, static_cast<std::uint64_t>(now));  // a clock set back must not turn the order round
  HistoryEntry& row = history->ring_[history->recorded_ % history->capacity_];
  row.event = event;
  if (!keeps_stack) row.event.stack = nullptr;
  row.time_us = history->last_time_us_;
  ++history->recorded_;
}

std::vector<HistoryEntry> History::Copy() const {
  const std::lock_guard lock(mutex_);
  std::vector<HistoryEntry> entries;
  const std::uint64_t count = recorded_ < capacity_ ? recorded_ : capacity_;
  entries.reserve(count);
  for (std::uint64_t i = recorded_ - count; i < recorded_; ++i) entries.push_back(ring_[i % capacity_]);
  return entries;
}

std::uint64_t History::overflowed() const noexcept {
  const std::lock_guard lock(mutex_);
  return recorded_ > capacity_ ? recorded_ - capacity_ : 0;
}

std::size_t History::max_entries() const noexcept {
  const std::lock_guard lock(mutex_);
  return capacity_;
}

}  // namespace cuaudit::alloc
