// SPDX-License-Identifier: MIT
// isolation.h: runs one trial in a forked child, so that its death is a result, and prints the last words of a process that dies otherwise;
// what a test asks of its own process: its command line, its filter, its signals.
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
#include <vector>

#include "harness/process/status.h"
#include "harness/verdict/evidence/evidence.h"

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

// The words that started this process; "./test" when the system does not say. Any thread.
const std::vector<std::string>& CommandWords();

// The command line with the filter from SetTestFilter. With such a filter, the process's own options for choosing tests are left out.
std::string CommandLine();

// `filter` is "Suite.Name" of the running test, or empty when none runs. cuaudit::SetRunningTest calls this.
void SetTestFilter(const std::string& filter);

// Whether cuaudit's code is in a shared library of its own, whose frames are not the program's; false when the loader does not say. In a
// static build cuaudit's frames lie in the program's own file and are recognised by their names.
bool IsOwnObject() noexcept;

// While one exists, SIGINT, SIGTERM and SIGHUP do not end the process at once, so that a sweep can write what it found.
//
//   Owns      the handlers of the signals that the process does not ignore; the destructor puts back the ones from before.
//   Threads   one exists at a time; `Seen` from any thread.
//   Errors    none. A second signal, or five seconds after the first, has the effect that it has without this, because a step may hang.

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came while one existed; 0: none.
  static int Seen() noexcept;
};

}  // namespace cuaudit::harness
