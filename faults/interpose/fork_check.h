// SPDX-License-Identifier: MIT
// fork_check.h: whether a process could be forked here and its child go on as if nothing had happened.
//
//   Owns      nothing.
//   Threads   called by the thread that is to fork.
//   Errors    what cannot be found out counts as a reason not to fork.
//   Faults    makes no driver calls; allocates nothing.
//   Source    clone(2), "not inherited by the child"; /proc/self/{task,fd,maps}.
//
// Looked at: tasks, open descriptors beyond the three that the tool gave, shared mappings, child processes, the interval timer, the parent.
// A descriptor that only reads counts too: its offset is one for both. Not seen: timers of timer_create, record locks of a descriptor that
// is closed again, and whatever the program did outside itself before (files written, messages sent).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "faults/plan/fork_file.h"

namespace cuaudit::faults {

// A mapping of ours: the file behind it.
struct OwnFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

class ForkCheck {
 public:
  // Called while the program is loaded: notes what descriptors 0, 1 and 2 are.
  void Start() noexcept;
  void AddOwn(const char* path) noexcept;
  // `attendants`: threads of ours. `tool`: who must be the parent.
  ForkRefusal Look(unsigned attendants, pid_t tool) const noexcept;

 private:
  bool IsStandard(int descriptor) const noexcept;
  bool HoldsDescriptors(bool* failed) const noexcept;
  bool SharesMemory(bool* failed) const noexcept;

  OwnFile standard_[3];
  OwnFile own_[2];
  unsigned owned_ = 0;
};

}  // namespace cuaudit::faults
