// SPDX-License-Identifier: MIT
// fork_images.h: journals for the programs that forks execute, to find out whether such a program called the driver.
//
//   Owns      one journal for each slot, and removes it.
//   Threads   one thread; executed programs write at the same time.
//   Units     records.
//   Errors    Status: no storage, or too many slots.
//   Source    faults/plan/fork_file.h.
//
// A fork's journal begins with the records of its parents, which an executed program cannot continue. The calls of that program therefore
// go to a separate journal, where they do not change the counts of the round. A trial with such calls is run again in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/journal/journal_file.h"
#include "harness/process/files.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

class ForkImages {
 public:
  // The journal of the fault-free run: PATH/NAME becomes PATH/NAME-0000.journal.
  static std::string Trunk(const std::string& name);

  ForkImages() = default;
  ForkImages(const ForkImages&) = delete;
  ForkImages& operator=(const ForkImages&) = delete;
  ~ForkImages() { Remove(); }

  // Makes the journals of slots 0 to `slots` - 1.
  Status Make(const std::string& name, std::uint32_t slots, const faults::JournalOptions& options);
  // True when the program executed in this slot made a driver call.
  bool Called(std::uint32_t slot) const;
  // Empties the journal before another process gets the slot.
  Status Renew(std::uint32_t slot);
  void Remove();

 private:
  struct Image {
    std::string path;
    FileDescriptor file;  // of the first slots: open, because it is read for every trial
  };
  Status Create(std::uint32_t slot);
  template <typename T>
  bool Read(std::uint32_t slot, std::size_t at, T* to) const;

  std::vector<Image> images_;
  faults::JournalOptions options_;
};

}  // namespace cuaudit::harness
