// SPDX-License-Identifier: MIT
// history.h: the newest allocator events, in order, with the call stacks that caused them.
//
//   Owns      a ring of entries and a table of stacks, reserved by Start; Record allocates nothing.
//   Threads   any. Off, Record is one relaxed load. On, one short lock; the stack is walked before it.
//   Order     entries of one address are in the order of the calls when each caller records while it owns the block.
//   Units     bytes; time_us is the wall clock in microseconds, as PyTorch's traces have it.
//   Errors    Start: CUDA_ERROR_OUT_OF_MEMORY when the host has none, and the history stays as it was. A full ring forgets the oldest
//             entry and counts it.
//   Faults    makes no driver calls.
//   Source    PyTorch's record history: levels, actions and fields; the bound is ours.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "allocator/trace/call_stacks.h"

namespace cuaudit::alloc {

enum class TraceAction : std::uint8_t {
#define CUAUDIT_TRACE_ACTION(enumerator, text) enumerator,
#include "allocator/trace/trace_actions.def"
#undef CUAUDIT_TRACE_ACTION
};
std::string_view TraceActionName(TraceAction action) noexcept;

// Whose stacks are kept.
enum class StackLevel : std::uint8_t {
  Never,
  Alloc,  // of allocations
  All,    // of frees and segments too
};

struct TraceEntry {
  TraceAction action = TraceAction::Alloc;
  int device = 0;
  StackId stack = kNoStack;
  CUdeviceptr address = 0;  // Oom: the device's free bytes
  std::size_t size_bytes = 0;
  std::uint64_t stream = 0;      // handle of the stream the action belongs to; UseWaited and UseElided: who waits or need not
  std::uint64_t time_us = 0;     // Record fills it in
  std::uint64_t use_stream = 0;  // Use…: id of the stream that used the block
  std::uint64_t use_sequence = 0;
  std::uint64_t pool_id[2] = {};
};

struct HistoryOptions {
  std::size_t max_entries = std::size_t{1} << 16;
  std::uint32_t max_stacks = 1U << 12;
  StackLevel stacks = StackLevel::All;
};

class History {
 public:
  History() = default;
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Starts afresh, forgetting what was recorded. max_entries 0 is INVALID_VALUE.
  [[nodiscard]] CUresult Start(const HistoryOptions& options) noexcept;
  void Stop() noexcept { is_on_.store(false, std::memory_order_relaxed); }  // what was recorded stays readable
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  // Answers the stack's number, for blocks that remember where they were allocated.
  StackId Record(const TraceEntry& entry) noexcept { return is_on() ? RecordSlow(entry) : kNoStack; }

  [[nodiscard]] std::vector<TraceEntry> Copy() const;  // the oldest first; throws bad_alloc
  [[nodiscard]] std::uint64_t overflowed() const noexcept;
  [[nodiscard]] std::size_t max_entries() const noexcept;
  [[nodiscard]] const CallStacks& stacks() const noexcept { return stacks_; }

 private:
  [[gnu::noinline]] StackId RecordSlow(const TraceEntry& entry) noexcept;  // its frame is one that Capture leaves out

  std::atomic<bool> is_on_{false};
  mutable std::mutex mutex_;
  std::unique_ptr<TraceEntry[]> ring_;
  std::size_t capacity_ = 0;
  std::uint64_t recorded_ = 0;
  std::atomic<StackLevel> level_{StackLevel::Never};
  CallStacks stacks_;
};

}  // namespace cuaudit::alloc
