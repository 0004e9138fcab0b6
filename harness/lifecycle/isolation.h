// SPDX-License-Identifier: MIT
// isolation.h: one trial in a forked child, so that its death is an answer; and the last words of a process that dies without one.
//
//   Owns      the child, until it has ended; its process group is killed with it.
//   Threads   RunForked: one at a time per calling thread. Fork copies the calling thread only, so the lifecycle's process should have no
//             other threads that hold locks.
//   Units     milliseconds.
//   Errors    Ending: a signal, a deadline, or an exit by which the trial never came to its end (counted as SIGABRT).
//   Faults    makes no driver calls.
//   Source    pidfd_open, Linux 5.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "harness/sweep/status.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {

// Memory that forked children share with this process.
class SharedBytes {
 public:
  explicit SharedBytes(std::size_t bytes) noexcept;
  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  void* get() const noexcept { return bytes_; }  // null: the system refused

 private:
  void* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// What `body` writes is seen in shared memory only; nothing of stdio is flushed and no exit handler runs. After each `deadline_ms` in
// which it has not ended `still_going` is asked whether to wait for as long again.
Result<Ending> RunForked(const std::function<void()>& body, std::uint32_t deadline_ms, const std::function<bool()>& still_going);

// While it lives, a signal that kills this process says on stderr first what was set last. The handlers that were there before come after
// it. One at a time.
class LastWords {
 public:
  LastWords();
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  static void Set(const std::string& words) noexcept;
};

}  // namespace cuaudit::harness
