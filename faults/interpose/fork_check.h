// SPDX-License-Identifier: MIT
// fork_check.h: whether a process could be forked here and its child go on as if nothing had happened.
//
//   Owns      nothing.
//   Threads   called by the thread that is to fork.
//   Errors    what cannot be found out counts as a reason not to fork.
//   Faults    makes no driver calls; allocates nothing.
//   Source    clone(2), "not inherited by the child"; /proc/self/{task,fd,maps}.
//
// Looked at: tasks, descriptors beyond those that the program was started with, shared mappings, child processes, the interval timer, the
// parent. A descriptor that only reads counts too: its offset is one for both. Not seen: timers of timer_create, record locks of a
// descriptor that is closed again, and whatever the program did outside itself before (files written, messages sent).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "faults/plan/fork_file.h"

namespace cuaudit::faults {

struct OwnFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

class ForkCheck {
 public:
  // Called while the program is loaded: notes which descriptors it was started with.
  void Start() noexcept;
  void AddOwn(const char* path) noexcept;
  // `attendants`: threads of ours. `tool`: who must be the parent.
  ForkRefusal Look(unsigned attendants, pid_t tool) const noexcept;

 private:
  bool WasGiven(int descriptor) const noexcept;
  bool HoldsDescriptors(bool* failed) const noexcept;
  bool SharesMemory(bool* failed) const noexcept;

  static constexpr int kGiven = 1024;  // a higher one counts as the program's
  OwnFile given_[kGiven];
  OwnFile own_[2];
  unsigned owned_ = 0;
};

}  // namespace cuaudit::faults
