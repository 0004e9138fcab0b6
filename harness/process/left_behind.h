// SPDX-License-Identifier: MIT
// left_behind.h: finds, ends and reaps the processes that an ended program left running, such as a daemon in a session of its own.
//
//   Owns      between Begin and End this process is the subreaper of what it starts (PR_SET_CHILD_SUBREAPER).
//   Threads   one thread.
//   Errors    none. A process that cannot be ended (another user's) stays. Without /proc nothing is found.
//   Source    prctl(2), proc(5). Only children of this process are ended: nobody else can reap them, so their process ids stay theirs.
//
// The environment of an orphan tells which program it came from, because each program has its own journal. An orphan with a wiped
// environment is ended when nothing else runs. Children from before the first Begin are not touched, nor are their descendants without
// the environment of cuaudit.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/process/files.h"

namespace cuaudit::harness {

struct LeftBehind {
  std::size_t alive = 0;     // processes outside the program's group that ran when it ended
  std::size_t orphans = 0;   // the same plus those that had ended already
  std::size_t survived = 0;  // those alive that could not be ended and still run
};

class Orphans {
 public:
  static Orphans& OfThisProcess();

  void Begin();  // may be nested
  void End();

  // In a process that this one has forked: what began before the fork is the parent's.
  void BeginAnew();

  // Adds a process that was started or adopted. `origin` is a line of the environment that only its descendants have; may be empty.
  void Add(pid_t pid, const std::string& origin, bool own_group);
  // Removes a process that was reaped. With `leave` its orphans are counted and not ended. `spared` names children about to be adopted.
  LeftBehind Remove(pid_t pid, bool leave, const std::function<std::vector<pid_t>()>& spared);
  // Reaps ended orphans of programs that still run.
  void ReapEnded();

 private:
  struct Process {
    std::string origin;
    bool own_group = true;
  };
  // True when `ended` left the orphan; false also when nobody can tell. `all_known` is false while some process is running that was not
  // added yet: the orphan may be that one's.
  bool IsOf(const Process& ended, pid_t orphan, bool all_known) const;

  std::size_t begun_ = 0;
  int subreaper_before_ = 0;
  FileDescriptor children_;    // the file in which the kernel lists the children of this process; open between Begin and End
  std::set<pid_t> strangers_;  // children from before the first Begin
  std::map<pid_t, Process> running_;
};

}  // namespace cuaudit::harness
