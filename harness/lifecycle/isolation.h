// SPDX-License-Identifier: MIT
// isolation.h: runs one trial in a forked child, so that its death is a result, and prints the last words of a process that dies otherwise.
//
//   Owns      the child until it has ended. Its process group is killed with it.
//   Threads   RunForked: one at a time per calling thread. Fork copies only the calling thread, so no other thread should hold a lock.
//   Units     milliseconds.
//   Errors    Ending: a signal, a deadline, or an exit before the end of the trial (counted as SIGABRT).
//   Source    pidfd_open, Linux 5.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "harness/process/status.h"
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

// Only writes of `body` to shared memory are visible here. No stdio is flushed and no exit handler runs. Whenever `deadline_ms` has passed
// without an end, `still_going` decides whether to wait as long again. A child that hangs is asked where its threads are when `answers`
// says that it can tell (faults/journal/record.h).
Result<Ending> RunForked(const std::function<void()>& body, std::uint32_t deadline_ms, const std::function<bool()>& still_going,
                         const std::function<bool()>& answers);

// While one exists, a signal that kills this process first prints the text of the last Set to stderr. Earlier handlers run after that. Only
// one may exist at a time.
class LastWords {
 public:
  LastWords();
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  static void Set(const std::string& words) noexcept;
};

}  // namespace cuaudit::harness
