// SPDX-License-Identifier: MIT
// process.h: starts processes, each with a deadline, and waits for the one that ends first.
//
//   Owns      the processes it started. The destructor kills and reaps those that still run.
//   Threads   one thread. While a pool lives, it takes the signals of SignalsTaken.
//   Units     milliseconds of CLOCK_MONOTONIC; 0 means no deadline.
//   Errors    Status: cannot fork, the file cannot be executed. A process that misses its deadline is killed and ends as timed_out. One
//             whose journal says that it can is first asked where its threads are (faults/journal/record.h).
//
// When a process with its own group ends, the group is killed, and so are processes that left the group (left_behind.h), so that nothing
// writes its journal later. A process in the foreground stays in the process group of cuaudit, and nothing is killed after it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/files.h"
#include "harness/process/status.h"
#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

struct Launch {
  std::string path;
  std::vector<std::string> arguments;  // argv with the program's name
  std::vector<std::string> environment;
  std::string directory;        // where the program runs; empty: where cuaudit does
  bool foreground = false;      // keeps stdin, stdout, stderr and the process group; otherwise stdin is /dev/null
  bool stdout_is_ours = false;  // in the foreground: stdout of the program goes to stderr
  std::string output;           // file for stdout and stderr; may be "/dev/null"
  std::uint64_t deadline_ms = 0;
};

// While one exists, SIGCHLD and the EndingSignals are blocked and wait for a pool to read them. Programs started meanwhile
// begin with the signal mask from before the first one.
class SignalsTaken {
 public:
  SignalsTaken();
  SignalsTaken(const SignalsTaken&) = delete;
  SignalsTaken& operator=(const SignalsTaken&) = delete;
  ~SignalsTaken();
};

class ProcessPool {
 public:
  struct Ended {
    std::size_t tag = 0;
    Ending ending;
  };

  ProcessPool();
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;
  ~ProcessPool();

  std::size_t size() const noexcept { return running_.size(); }
  Status Start(std::size_t tag, const Launch& launch);
  // True when this is a child of this process that the pool does not have.
  bool CanAdopt(pid_t pid) const;
  // Adds a child that this pool did not start and that leads its own group. `origin` is the OriginOf the launch that led to it.
  Status Adopt(std::size_t tag, pid_t pid, std::uint64_t deadline_ms, const std::string& origin);
  // Restarts the deadline.
  void Postpone(std::size_t tag, std::uint64_t deadline_ms);
  // `act` runs before a process group is killed, so that forks in it can be moved to groups of their own first.
  void BeforeKill(std::function<void()> act) { before_kill_ = std::move(act); }
  // Names children that will be adopted. Called when the orphans of an ended process are looked for.
  void Spare(std::function<std::vector<pid_t>()> who) { spared_ = std::move(who); }
  // Kills and reaps all running processes.
  void Stop();
  // Blocks until one process has ended. A signal to this process is an error that names it; `interrupted` keeps its number.
  Result<Ended> WaitAny();
  // The same, but answers nothing after `patience_ms`, or when a child outside the pool has ended.
  Result<std::optional<Ended>> WaitSome(std::uint64_t patience_ms);
  int interrupted() const noexcept { return interrupted_; }

 private:
  struct Running {
    std::size_t tag = 0;
    pid_t pid = 0;
    FileDescriptor exited;  // pidfd: readable once the process is a zombie
    std::uint64_t deadline_at = 0;
    bool foreground = false;
    bool timed_out = false;
    bool killed = false;
    std::string journal;  // of the process; empty: not known
  };
  Ended Reap(std::size_t index);
  Status Watch(Running one, const std::string& origin);

  void Kill(const Running& one) const;
  void End(Running* one, std::uint64_t now) const;

  const SignalsTaken taken_;
  std::vector<Running> running_;
  std::function<void()> before_kill_;
  std::function<std::vector<pid_t>()> spared_;
  FileDescriptor signals_;
  int interrupted_ = 0;
};

// The line of a program's environment that identifies its descendants.
std::string OriginOf(const Launch& launch);

// Runs one process from start to end.
Result<Ending> RunToEnd(const Launch& launch, int* interrupted);

}  // namespace cuaudit::harness
