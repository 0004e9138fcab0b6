// SPDX-License-Identifier: MIT
// fork_check.h: whether a process could be forked here and its child go on as if nothing had happened.
//
//   Owns      nothing.
//   Threads   called by the thread that is to fork.
//   Errors    what cannot be found out counts as a reason not to fork.
//   Faults    makes no driver calls; allocates nothing.
//   Source    clone(2), "not inherited by the child"; madvise(2); /proc/self/{task,fd,maps,smaps}.
//
// Looked at: tasks, descriptors beyond those that the program was started with, shared mappings, child processes, the interval timer, the
// parent. Memory that a fork wipes, by which libraries notice one, is kept across ours: to the program nothing has happened. A descriptor
// that only reads counts too: its offset is one for both. Not seen: timers of timer_create, record locks of a descriptor that is closed
// again, and whatever the program did outside itself before (files written, messages sent). What a copy without a fault shows of it, and of
// a process id that the program remembers, the tool looks at before it forks for a trial (harness/sweep/fork_control.h).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "faults/plan/fork_file.h"

namespace cuaudit::faults {

struct OwnFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

struct Span {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

class ForkCheck {
 public:
  // Called while the program is loaded: notes which descriptors it was started with.
  void Start() noexcept;
  void AddOwn(const char* path) noexcept;
  // `attendants`: threads of ours. `tool`: who must be the parent.
  ForkRefusal Look(unsigned attendants, pid_t tool) noexcept;
  // Around the fork, with signals blocked, after Look has found no reason against it: memory that it would wipe, it does not, other than
  // `own`, a page of ours. Where that cannot be, nothing was changed. The second by both.
  ForkRefusal KeepWiped(const void* own) noexcept;
  void WipeAgain() noexcept;

 private:
  ForkRefusal FindWiped(const void* own) noexcept;
  bool WasGiven(int descriptor) const noexcept;
  bool HoldsDescriptors(bool* failed) const noexcept;
  bool SharesMemory(std::uint64_t* layout, bool* failed) const noexcept;

  static constexpr int kGiven = 1024;  // a higher one counts as the program's
  OwnFile given_[kGiven];
  OwnFile own_[2];
  unsigned owned_ = 0;
  static constexpr unsigned kWiped = 16;
  Span wiped_[kWiped];
  unsigned wiped_count_ = 0;
  std::uint64_t layout_ = 0;      // of the address space, by Look
  std::uint64_t none_wiped_ = 0;  // a layout that had no memory that a fork wipes
};

}  // namespace cuaudit::faults
