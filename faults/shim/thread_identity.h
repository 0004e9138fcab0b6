// SPDX-License-Identifier: MIT
// thread_identity.h: by which names this thread and process stand in records, and where on its way through a gate the thread is.
//
//   Owns      all thread-local storage of the library: values only, so that a call that never returns (longjmp, pthread_exit from a host
//             function) leaves nothing behind that could dangle.
//   Threads   safe.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

struct ThreadState {
  const class Gate* inside;  // the gate that this thread is inside of
  std::uint64_t begin;       // and its call's ticket
  std::uint32_t tid;         // as in records; 0: not asked yet
  std::uint32_t pid;
  std::uint32_t arming;  // Gate::arming_ of the plan whose fault number `hit` hit this thread last
  std::uint32_t hit;
  std::uint16_t asking;  // id + 1 of the call under way that has no record, because a recording only counts it; 0: none
  const void* own;       // stacks leave out this frame and those inside of it; null: they begin outside of the gate
};
inline constinit thread_local ThreadState thread_state = {};

// While it exists, call stacks of this thread's driver calls begin outside of the function of `frame` (from __builtin_frame_address). It is
// for code that makes the calls of others: in a static program nothing else tells its frames from theirs.
class OwnFrames {
 public:
  explicit OwnFrames(const void* frame) noexcept : before_(thread_state.own) { thread_state.own = frame; }
  ~OwnFrames() { thread_state.own = before_; }
  OwnFrames(const OwnFrames&) = delete;
  OwnFrames& operator=(const OwnFrames&) = delete;

 private:
  const void* const before_;
};

// The process and the thread, by the names that stand in records. getpid is a system call in current glibc, and what is kept of it must not
// survive fork: ForgetThread.
std::uint32_t AskPid() noexcept;
std::uint32_t AskTid() noexcept;
inline std::uint32_t Pid() noexcept { return thread_state.pid != 0 ? thread_state.pid : AskPid(); }
inline std::uint32_t Tid() noexcept { return thread_state.tid != 0 ? thread_state.tid : AskTid(); }

// The name of a process or thread that this one forked from or is.
std::uint32_t NameOf(std::uint32_t id) noexcept;

// This process goes on as its parent: from here on it stands in records under the name that its first thread has now.
void GoOnAsParent() noexcept;

// In a forked child: nothing that the parent's thread was in the middle of is under way here.
void ForgetThread() noexcept;

}  // namespace cuaudit::faults
