// SPDX-License-Identifier: MIT
#include "allocator/trace/history.h"

#include <chrono>
#include <new>

namespace cuaudit::alloc {
namespace {

bool WantsStack(StackLevel level, TraceAction action) noexcept {
  switch (level) {
    case StackLevel::Never: return false;
    case StackLevel::Alloc: return action == TraceAction::Alloc;
    case StackLevel::All: return true;
  }
  return false;
}

}  // namespace

std::string_view TraceActionName(TraceAction action) noexcept {
  switch (action) {
#define CUAUDIT_TRACE_ACTION(enumerator, text) \
  case TraceAction::enumerator: return text;
#include "allocator/trace/trace_actions.def"
#undef CUAUDIT_TRACE_ACTION
  }
  return {};
}

CUresult History::Start(const HistoryOptions& options) noexcept {
  if (options.max_entries == 0) return CUDA_ERROR_INVALID_VALUE;
  if (options.max_entries > SIZE_MAX / sizeof(TraceEntry) / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  std::unique_ptr<TraceEntry[]> ring(new (std::nothrow) TraceEntry[options.max_entries]);
  if (ring == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(mutex_);
  if (options.stacks != StackLevel::Never && !stacks_.Reserve(options.max_stacks)) return CUDA_ERROR_OUT_OF_MEMORY;
  ring_ = std::move(ring);
  capacity_ = options.max_entries;
  recorded_ = 0;
  level_.store(options.stacks, std::memory_order_relaxed);
  is_on_.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

StackId History::RecordSlow(const TraceEntry& entry) noexcept {
  const StackId stack = WantsStack(level_.load(std::memory_order_relaxed), entry.action) ? stacks_.Capture(1) : kNoStack;
  const std::lock_guard lock(mutex_);
  if (capacity_ == 0) return stack;
  const auto now = std::chrono::system_clock::now().time_since_epoch();  // in the lock, so that times follow the order
  TraceEntry& row = ring_[recorded_ % capacity_];
  row = entry;
  row.stack = stack;
  row.time_us = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  ++recorded_;
  return stack;
}

std::vector<TraceEntry> History::Copy() const {
  const std::lock_guard lock(mutex_);
  std::vector<TraceEntry> entries;
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
