// SPDX-License-Identifier: MIT
// fork_images.h: the journals of programs that forks execute: whether one of them called the driver.
//
//   Owns      one journal for each slot, which it removes.
//   Threads   one thread; what a fork executes writes at the same time.
//   Units     records.
//   Errors    Status: no storage, or too many slots.
//   Faults    makes no driver calls.
//   Source    faults/plan/fork_file.h.
//
// A fork's journal begins with what its parents wrote, which such a program cannot go on with. So its calls are kept apart, where they
// move no count of the round, and a trial that has any is to be run in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/journal/journal_file.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

class ForkImages {
 public:
  // The journal of the run without faults: what PATH/NAME names, PATH/NAME-0000.journal.
  static std::string Trunk(const std::string& name);

  ForkImages() = default;
  ForkImages(const ForkImages&) = delete;
  ForkImages& operator=(const ForkImages&) = delete;
  ~ForkImages() { Remove(); }

  // Of the slots 0 to `slots` - 1 of a run.
  Status Make(const std::string& name, std::uint32_t slots, const faults::JournalOptions& options);
  // What the process in this slot executed made a driver call.
  bool Called(std::uint32_t slot) const;
  // Before another process gets the slot.
  Status Renew(std::uint32_t slot);
  void Remove();

 private:
  std::vector<std::string> paths_;
  faults::JournalOptions options_;
};

}  // namespace cuaudit::harness
