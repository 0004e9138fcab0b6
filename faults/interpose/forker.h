// SPDX-License-Identifier: MIT
// forker.h: forks the audited process at the calls that the tool named. The child takes the fault and the parent goes on. fork_file.h
// has the protocol.
//
//   Owns      the mapping of the fork file, for the rest of the process.
//   Threads   no fork is made when the process has other threads than the attendant and the calling one.
//   Errors    Open returns a static phrase. Where no fork is possible, the node says why, and the call goes on without a fault.
//
// The fork is the system call clone(2) with CLONE_PARENT, not the C library's fork: handlers from pthread_atfork must not run, because
// the program must not notice. It can only notice its process id, which /proc and the tool see too. Records keep the parent's process
// id, and so do mutexes that know their owner.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "forker.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include "faults/interpose/fork_check.h"
#include "faults/interpose/options.h"
#include "faults/plan/fork_file.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"

namespace cuaudit::faults {

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
