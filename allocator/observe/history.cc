// SPDX-License-Identifier: MIT
#include "allocator/observe/history.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

namespace cuaudit::alloc {

namespace {

struct Walk {
  std::uintptr_t frame[kMaxFrames];
  std::size_t count = 0;
  std::size_t skip = 0;
};

_Unwind_Reason_Code Step(_Unwind_Context* context, void* argument) {
  Walk* const walk = static_cast<Walk*>(argument);
  const std::uintptr_t at = _Unwind_GetIP(context);
  if (at == 0) return _URC_END_OF_STACK;
  if (walk->skip > 0) {
    --walk->skip;
    return _URC_NO_REASON;
  }
  if (walk->count == kMaxFrames) return _URC_END_OF_STACK;
  walk->frame[walk->count++] = at;
  return _URC_NO_REASON;
}

std::uint64_t Hash(std::span<const std::uintptr_t> frames) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const std::uintptr_t frame : frames) {
    hash = (hash ^ frame) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

bool CallStacks::Reserve(std::uint32_t stacks) noexcept {
  // A quarter stays free, so that a search ends soon.
  const std::uint32_t capacity = std::bit_ceil(std::clamp(stacks, 4U, 1U << 24) / 3 * 4);
  std::unique_ptr<Row[]> rows(new (std::nothrow) Row[capacity]);
  if (rows == nullptr) return false;
  const std::lock_guard lock(mutex_);
  rows_ = std::move(rows);
  capacity_ = capacity;
  used_ = 0;
  overflowed_ = 0;
  return true;
}

StackId CallStacks::Capture(std::size_t skip) noexcept {
  Walk walk;
  walk.skip = skip + 1;  // this function
  _Unwind_Backtrace(Step, &walk);
  return walk.count == 0 ? kNoStack : Intern({walk.frame, walk.count});
}

StackId CallStacks::Intern(std::span<const std::uintptr_t> frames) noexcept {
  frames = frames.first(std::min(frames.size(), kMaxFrames));
  if (frames.empty()) return kNoStack;
  const std::uint64_t hash = Hash(frames);
  const std::lock_guard lock(mutex_);
  if (capacity_ == 0) return kNoStack;
  for (std::uint32_t probe = 0;; ++probe) {
    const std::uint32_t at = static_cast<std::uint32_t>(hash + probe) & (capacity_ - 1);
    Row& row = rows_[at];
    if (row.frames == 0) {
      if (used_ >= capacity_ / 4 * 3) {
        ++overflowed_;
        return kNoStack;
      }
      ++used_;
      std::copy(frames.begin(), frames.end(), row.frame);
      row.frames = static_cast<std::uint32_t>(frames.size());
      return at + 1;
    }
    if (std::equal(frames.begin(), frames.end(), row.frame, row.frame + row.frames)) return at + 1;
  }
}

std::size_t CallStacks::Read(StackId id, std::span<std::uintptr_t, kMaxFrames> frames) const noexcept {
  const std::lock_guard lock(mutex_);
  if (id == kNoStack || id > capacity_) return 0;
  const Row& row = rows_[id - 1];
  std::copy(row.frame, row.frame + row.frames, frames.begin());
  return row.frames;
}

std::uint64_t CallStacks::overflowed() const noexcept {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

Frame CallStacks::Describe(std::uintptr_t frame) {
  Frame described;
  Dl_info info = {};
  // A return address may be the first byte of the next function when the call was the last instruction.
  if (dladdr(reinterpret_cast<void*>(frame - 1), &info) == 0 ||
      info.dli_fname == nullptr) {  // NOLINT(performance-no-int-to-ptr): an address
    char text[32];
    std::snprintf(text, sizeof(text), "0x%zx", frame);
    described.name = text;
    return described;
  }
  described.module = info.dli_fname;
  if (info.dli_sname == nullptr) {
    char text[32];
    std::snprintf(text, sizeof(text), "+0x%zx", frame - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
    described.name = text;
    return described;
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), std::free);
  described.name = status == 0 ? name.get() : info.dli_sname;
  return described;
}

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
