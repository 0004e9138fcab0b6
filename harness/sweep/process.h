// SPDX-License-Identifier: MIT
// process.h: starts processes and waits for whichever ends first, each with a deadline.
//
//   Owns      the processes it started: the destructor kills and reaps those that still run.
//   Threads   one thread. While a pool lives, SIGINT, SIGTERM, SIGHUP and SIGCHLD are taken by it (SignalsTaken).
//   Units     milliseconds of CLOCK_MONOTONIC; 0 means no deadline.
//   Errors    Status: cannot fork, the file cannot be executed. A process that misses its deadline is killed and ends as timed_out.
//   Faults    makes no driver calls.
//   Source    ours. A process in a group of its own takes its whole group with it when it ends, and what left that group (left_behind.h),
//             so that nothing writes its journal later. One in the foreground takes nothing with it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/sweep/files.h"
#include "harness/sweep/status.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {

struct Launch {
  std::string path;
  std::vector<std::string> arguments;  // argv, the name included
  std::vector<std::string> environment;
  bool foreground = false;      // keeps stdin, stdout, stderr and the process group; otherwise stdin is /dev/null
  bool stdout_is_ours = false;  // of one in the foreground: what it writes to stdout goes to stderr
  std::string output;           // where stdout and stderr go; "/dev/null" is fine
  std::uint64_t deadline_ms = 0;
};

// While one lives, SIGINT, SIGTERM, SIGHUP and SIGCHLD end nothing: each waits for the pool that looks for it next. Programs that are
// started meanwhile begin with the signals as they were before the first one.
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
  // A child of this process that it did not start itself, the leader of its own group. `origin`: as of the launch that led to it.
  Status Adopt(std::size_t tag, pid_t pid, std::uint64_t deadline_ms, const std::string& origin);
  // From now on, once more.
  void Postpone(std::size_t tag, std::uint64_t deadline_ms);
  // Called before a process group is killed: what a process of the pool has forked may still have to leave it.
  void BeforeKill(std::function<void()> act) { before_kill_ = std::move(act); }
  // Children that are going to be adopted: asked when what an ended process left behind is looked for.
  void Spare(std::function<std::vector<pid_t>()> who) { spared_ = std::move(who); }
  // Kills and reaps all that run.
  void Stop();
  // Blocks until one process has ended. A signal to this process is an error that names it; `interrupted` keeps its number.
  Result<Ended> WaitAny();
  // The same, but answers nothing after `patience_ms` or when some child that is not of the pool has ended.
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
  };
  Ended Reap(std::size_t index);
  Status Watch(Running one, const std::string& origin);

  void Kill(const Running& one) const;

  const SignalsTaken taken_;
  std::vector<Running> running_;
  std::function<void()> before_kill_;
  std::function<std::vector<pid_t>()> spared_;
  FileDescriptor signals_;
  int interrupted_ = 0;
};

// The line of a program's environment by which its descendants are known.
std::string OriginOf(const Launch& launch);

// One process, start to end.
Result<Ending> RunToEnd(const Launch& launch, int* interrupted);

}  // namespace cuaudit::harness
