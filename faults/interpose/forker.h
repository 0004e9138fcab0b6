// SPDX-License-Identifier: MIT
// forker.h: forks the audited process at the calls that the tool named, so that a child takes the fault and the parent goes on.
//
//   Owns      the mapping of the fork file, for the rest of the process.
//   Threads   the check before each fork refuses where there is another thread than the attendant.
//   Errors    Open answers a static phrase. Where no fork is possible the node says why, and the call goes on without a fault.
//   Faults    makes no driver calls.
//   Source    fork_file.h says who does what; clone(2) with CLONE_PARENT.
//
// The system call is used, not the C library's fork: handlers registered for forks do not run, because to the program nothing is to have
// happened. What it can notice is its process id, which /proc and the tool see too; records keep the parent's, and so do mutexes that know
// their owner.
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
  // Once the driver is there; `plan` is where the process keeps what a child is under. `world` null: nothing is forked, every node says so.
  void Start(Gate* gate, Journal* journal, sim::World* world, Plan* plan) noexcept;
  // Of `world`, once.
  bool Attend() noexcept;
  // The process that this fork was made to be.
  bool IsFork(pid_t pid) const noexcept { return pid == fork_pid_; }
  // In a process that the program itself forked: it has no part in this.
  void Leave() noexcept;

 private:
  using HostContinue = void (*)(void* header, void* records, std::uint32_t self, std::uint32_t as);
  static constexpr std::size_t kPhases = 5;

  static void Before(void* self, driver::BaseId base) noexcept;
  void ForkAt(std::uint32_t index, std::uint32_t matched) noexcept;
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
  Gate* gate_ = nullptr;
  Journal* journal_ = nullptr;
  sim::World* world_ = nullptr;
  Plan* plan_ = nullptr;
  HostContinue host_ = nullptr;
  pid_t fork_pid_ = 0;
  unsigned attendants_ = 0;
  std::uint32_t node_ = 0;
  std::uint32_t slot_ = kNoSlot;
  char image_[kMaxPath] = {};  // the journal of what this fork executes; empty: it is none, or nobody knows
  std::uint32_t count_[kPhases][driver::kBaseCount] = {};
};

}  // namespace cuaudit::faults
