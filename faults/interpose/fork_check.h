// SPDX-License-Identifier: MIT
// fork_check.h: decides whether the process can be forked here so that the child goes on as if nothing had happened.
//
// The thread that is to fork calls it. It allocates nothing. What cannot be found out counts as a reason not to fork.
// Sources: clone(2), "not inherited by the child"; madvise(2); /proc/self/{task,fd,maps,smaps}.
//
// It checks tasks, descriptors beyond those that the program was started with, shared mappings, child processes, the interval timer and
// the parent. A descriptor that is only read counts too, because parent and child share its offset. Libraries notice a fork by memory
// that the fork wipes, so such memory is kept across the fork. Not checked are record locks of a descriptor that is closed again and
// what the program did outside itself before (files written, messages sent). For effects of these, and of a process id that the program
// remembers, the tool runs a copy without a fault before it forks for a trial (harness/sweep/runners/fork_control.h).
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
  // Called while the program is loaded: remembers the descriptors that the program was started with.
  void Start() noexcept;
  void AddOwn(const char* path) noexcept;
  // `attendants`: number of the drop-in's own threads. `tool`: the process that must be the parent.
  ForkRefusal Look(unsigned attendants, pid_t tool) noexcept;
  // Called around the fork, with signals blocked, after Look has found no reason against it. KeepWiped keeps the fork from wiping
  // memory, other than `own`, a page of the drop-in; when it refuses, it has changed nothing. Parent and child call the second function
  // afterwards.
  ForkRefusal KeepWiped(const void* own) noexcept;
  void WipeAgain() noexcept;

 private:
  ForkRefusal FindWiped(const void* own) noexcept;
  bool WasGiven(int descriptor) const noexcept;
  bool HoldsDescriptors(bool* failed) const noexcept;
  bool SharesMemory(std::uint64_t* layout, bool* failed) const noexcept;

  static constexpr int kGiven = 1024;  // a descriptor from this number on counts as opened by the program
  OwnFile given_[kGiven];
  OwnFile own_[2];
  unsigned owned_ = 0;
  static constexpr unsigned kWiped = 16;
  Span wiped_[kWiped];
  unsigned wiped_count_ = 0;
  std::uint64_t layout_ = 0;      // hash of the address space's layout, set by Look
  std::uint64_t none_wiped_ = 0;  // hash of a layout without memory that a fork wipes
};

// Lists the other threads of this process that still run.
//
//   Threads   may be called from any thread.
//   Errors    none. Without a readable /proc no thread is listed.
//   Source    /proc/self/task. The kernel sets PF_EXITING in the flags of a thread that is ending (field 9 of its stat file, proc(5)).
//
// Files are opened and read by bare system calls. The host probes wrap open(), and would otherwise record the descriptors as the program's.

// Calls `see` once for each running thread but the caller, in the order in which the kernel lists them.
void EachRunningThread(void (*see)(pid_t thread)) noexcept;

}  // namespace cuaudit::faults
