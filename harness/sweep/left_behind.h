// SPDX-License-Identifier: MIT
// left_behind.h: what a program that has ended left running, ended and reaped: a daemon that took a session of its own, say.
//
//   Owns      nothing; while one is begun this process is the one to which orphans of what it starts fall (PR_SET_CHILD_SUBREAPER).
//   Threads   one thread.
//   Errors    none: what cannot be ended (another user's) stays; without /proc nothing is found.
//   Faults    makes no driver calls.
//   Source    prctl(2), proc(5). Only children of this process are ended: nobody else can reap them, so their numbers are theirs.
//
// Which of several programs an orphan comes from its environment tells, in which each has its own journal. One that wiped that is ended
// when nothing else runs. Children that this process had before the first pool are somebody else's, as is what came of them without our
// environment.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cuaudit::harness {

struct LeftBehind {
  std::size_t alive = 0;     // outside the process group of the program, running when it ended
  std::size_t orphans = 0;   // those, and the ones that had ended by then
  std::size_t survived = 0;  // of those alive: could not be ended, and still run
};

class Orphans {
 public:
  static Orphans& OfThisProcess();

  void Begin();  // nests
  void End();

  // A process that was started or taken in. `origin`: the line of its environment that none but its own descendants have; may be empty.
  void Add(pid_t pid, const std::string& origin, bool own_group);
  // It has ended and was reaped. `leave`: what it left is counted, not ended. `spared`: children that are going to be taken in.
  LeftBehind Remove(pid_t pid, bool leave, const std::function<std::vector<pid_t>()>& spared);
  // Reaps orphans that have ended while what left them goes on.
  void ReapEnded();

 private:
  enum class Of { This, Another, Unclear };
  struct Process {
    std::string origin;
    bool own_group = true;
  };
  Of OriginOf(pid_t orphan, const Process& ended) const;

  std::size_t begun_ = 0;
  int subreaper_before_ = 0;
  std::set<pid_t> strangers_;  // children that were there before
  std::map<pid_t, Process> running_;
};

}  // namespace cuaudit::harness
