// SPDX-License-Identifier: MIT
// forker.h: forks the audited process at the calls that the tool named, where a fork would not be noticed.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "forker.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <sys/types.h>

#include <cstdint>

#include "faults/interpose/options.h"
#include "faults/plan/fork_file.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"

namespace cuaudit::faults {

// Decides whether the process can be forked here so that the child goes on as if nothing had happened.
//
// The thread that is to fork calls it. It allocates nothing. What cannot be found out counts as a reason not to fork.
// Sources: clone(2), "not inherited by the child"; madvise(2); /proc/self/{task,fd,maps,smaps}.
//
// It checks tasks, descriptors beyond those that the program was started with, shared mappings, child processes, the interval timer and
// the parent. A descriptor that is only read counts too, because parent and child share its offset. Libraries notice a fork by memory
// that the fork wipes, so such memory is kept across the fork. Not checked are record locks of a descriptor that is closed again and
// what the program did outside itself before (files written, messages sent). For effects of these, and of a process id that the program
// remembers, the tool runs a copy without a fault before it forks for a trial (harness/sweep/runners/fork_control.h).

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

// Forks the audited process at the calls that the tool named. The child takes the fault and the parent goes on. fork_file.h
// has the protocol.
//
//   Owns      the mapping of the fork file, for the rest of the process.
//   Threads   no fork is made when the process has other threads than the attendant and the calling one.
//   Errors    Open returns a static phrase. Where no fork is possible, the node says why, and the call goes on without a fault.
//
// The fork is the system call clone(2) with CLONE_PARENT, not the C library's fork: handlers from pthread_atfork must not run, because
// the program must not notice. It can only notice its process id, which /proc and the tool see too. Records keep the parent's process
// id, and so do mutexes that know their owner.

class Forker {
 public:
  [[nodiscard]] const char* Open(const char* path, const char* journal) noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }
  // Called when the driver is open. `plan`: the process's plan, which gets the faults of a child. When `world` is null, no fork is made
  // and every node says so.
  void Start(Gate* gate, Journal* journal, sim::World* world, Plan* plan) noexcept;
  // Starts the attendant of `world`, once.
  bool Attend() noexcept;
  // True when this process is a fork made by this class, and `pid` is its process id.
  bool IsFork(pid_t pid) const noexcept { return pid == fork_pid_; }
  // Called in a process that the program itself forked, which takes no part in the round.
  void Leave() noexcept;

 private:
  using HostContinue = void (*)(void* header, void* records, std::uint32_t self, std::uint32_t as);
  static constexpr std::size_t kPhases = 5;

  static void Before(void* self, driver::BaseId base) noexcept;
  void ForkAt(std::uint32_t index, std::uint32_t matched) noexcept;
  ForkRefusal LookAtProcess() noexcept;
  void Refuse(ForkNode* node, ForkRefusal why) noexcept;
  std::uint32_t Claim(std::uint32_t pool) noexcept;
  void PrepareSlot(std::uint32_t slot) noexcept;
  void BecomeChild(std::uint32_t index, std::uint32_t slot, std::uint32_t matched) noexcept;
  void KeepOnly(std::uint32_t slot) noexcept;
  bool ImageCalls() const noexcept;
  JournalHeader* SlotHeader(std::uint32_t slot) noexcept;
  Record* SlotRecords(std::uint32_t slot) noexcept;

  ForkHeader* header_ = nullptr;
  ForkNode* nodes_ = nullptr;
  ForkSlot* slots_ = nullptr;
  ForkCheck check_;
  bool fit_ = false;  // check_ found this process fit to fork at the call that it is about to make
  Gate* gate_ = nullptr;
  Journal* journal_ = nullptr;
  sim::World* world_ = nullptr;
  Plan* plan_ = nullptr;
  HostContinue host_ = nullptr;
  pid_t fork_pid_ = 0;
  unsigned attendants_ = 0;
  std::uint32_t node_ = 0;
  std::uint32_t slot_ = kNoSlot;
  char image_[kMaxPath] = {};  // journal of a program that this fork executes; empty: this is no fork, or the path is unknown
  std::uint32_t count_[kPhases][driver::kBaseCount] = {};
};

}  // namespace cuaudit::faults
