// SPDX-License-Identifier: MIT
// history.h: the newest allocator events, in order, with the call stacks that caused them: a Tracer.
//
//   Owns      a ring of entries and a table of stacks, reserved by Start; recording allocates nothing.
//   Threads   any. Two short locks: the table's and the ring's. The stack is walked before either.
//   Order     that of the calls for each address, as trace.h promises; times follow the order of the ring.
//   Units     bytes; time_us is the wall clock in microseconds, as PyTorch's traces have it.
//   Errors    Start: CUDA_ERROR_OUT_OF_MEMORY when the host has none, and the history stays as it was. A full ring forgets the oldest
//             entry and counts it.
//   Faults    makes no driver calls.
//   Source    PyTorch's record history: levels and fields; the bound is ours.
//   Not here  how it is written (snapshot_pickle.h).
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "allocator/observe/call_stacks.h"
#include "allocator/trace.h"

namespace cuaudit::alloc {

// Whose stacks are kept.
enum class StackLevel : std::uint8_t {
  Never,
  Alloc,  // of allocations
  All,    // of frees and segments too
};

struct HistoryEntry {
  TraceEvent event;
  std::uint64_t time_us = 0;
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

  // Starts afresh, forgetting what was recorded; numbers of stacks taken before mean nothing afterwards. max_entries 0 is INVALID_VALUE.
  [[nodiscard]] CUresult Start(const HistoryOptions& options) noexcept;

  // To be registered with an allocator, and taken away there before this object goes.
  [[nodiscard]] Tracer tracer() noexcept;

  [[nodiscard]] std::vector<HistoryEntry> Copy() const;     // the oldest first; throws bad_alloc
  [[nodiscard]] std::uint64_t overflowed() const noexcept;  // entries forgotten
  [[nodiscard]] std::size_t max_entries() const noexcept;
  [[nodiscard]] const CallStacks& stacks() const noexcept { return stacks_; }

 private:
  static void* Capture(void* self) noexcept;
  static void Record(void* self, const TraceEvent& event) noexcept;

  mutable std::mutex mutex_;
  std::unique_ptr<HistoryEntry[]> ring_;
  std::size_t capacity_ = 0;
  std::uint64_t recorded_ = 0;
  std::uint64_t last_time_us_ = 0;
  std::atomic<StackLevel> level_{StackLevel::Never};
  CallStacks stacks_;
};

}  // namespace cuaudit::alloc
