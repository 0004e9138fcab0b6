// SPDX-License-Identifier: MIT
// history.h: the newest allocator events and the call stacks that caused them.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "allocator/trace.h"

namespace cuaudit::alloc {

// Call stacks of the calling thread as small numbers; equal stacks are one number.
//
//   Owns      a table of fixed size, reserved by Reserve; Capture allocates nothing.
//   Threads   any; one short lock around the table, none while the stack is walked.
//   Units     frames are return addresses, innermost first.
//   Errors    kNoStack when nothing is reserved, the table is full (counted) or the thread's stack cannot be walked.
//   Faults    makes no driver calls.
//   Source    _Unwind_Backtrace; names through dladdr and the C++ demangler, when somebody reads them.
//   Not here  lines of source files: they would need the debug information of every module.

using StackId = std::uint32_t;
inline constexpr StackId kNoStack = 0;
inline constexpr std::size_t kMaxFrames = 32;

struct Frame {
  std::string module;  // file name of the library or program; empty when unknown
  std::string name;    // demangled, or "+0x1234" within the module
};

class CallStacks {
 public:
  CallStacks() = default;
  CallStacks(const CallStacks&) = delete;
  CallStacks& operator=(const CallStacks&) = delete;

  // Room for that many different stacks of up to kMaxFrames frames. Forgets what was there. False: no host memory, and nothing changed.
  [[nodiscard]] bool Reserve(std::uint32_t stacks) noexcept;

  // The stack of the calling thread without its `skip` innermost frames.
  [[gnu::noinline]] StackId Capture(std::size_t skip) noexcept;
  StackId Intern(std::span<const std::uintptr_t> frames) noexcept;

  [[nodiscard]] std::size_t Read(StackId id, std::span<std::uintptr_t, kMaxFrames> frames) const noexcept;
  [[nodiscard]] std::uint64_t overflowed() const noexcept;  // stacks that found no room

  static Frame Describe(std::uintptr_t frame);

  // A number as the pointer that a Tracer hands through an allocator, which never follows it.
  static void* Token(StackId id) noexcept { return reinterpret_cast<void*>(std::uintptr_t{id}); }  // NOLINT(performance-no-int-to-ptr)
  static StackId FromToken(const void* token) noexcept { return static_cast<StackId>(reinterpret_cast<std::uintptr_t>(token)); }

 private:
  struct Row {
    std::uint32_t frames = 0;  // 0: free
    std::uintptr_t frame[kMaxFrames];
  };
  mutable std::mutex mutex_;
  std::unique_ptr<Row[]> rows_;
  std::uint32_t capacity_ = 0;  // a power of two
  std::uint32_t used_ = 0;
  std::uint64_t overflowed_ = 0;
};

// The newest allocator events, in order, with the call stacks that caused them: a Tracer.
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
