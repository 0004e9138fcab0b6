// SPDX-License-Identifier: MIT
// call_stacks.h: call stacks of the calling thread as small numbers; equal stacks are one number.
//
//   Owns      a table of fixed size, reserved by Reserve; Capture allocates nothing.
//   Threads   any; one short lock around the table, none while the stack is walked.
//   Units     frames are return addresses, innermost first.
//   Errors    kNoStack when nothing is reserved, the table is full (counted) or the thread's stack cannot be walked.
//   Faults    makes no driver calls.
//   Source    _Unwind_Backtrace; names through dladdr and the C++ demangler, when somebody reads them.
//   Not here  lines of source files: they would need the debug information of every module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace cuaudit::alloc {

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

}  // namespace cuaudit::alloc
