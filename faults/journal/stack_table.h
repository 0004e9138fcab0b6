// SPDX-License-Identifier: MIT
// stack_table.h: takes the caller's stack and keeps each distinct one once in the journal.
//
//   Owns      a ModuleTable; borrows the journal.
//   Threads   safe, lock-free, between processes too.
//   Units     frames.
//   Errors    id 0 when no stack was taken; a full table raises kStacksDropped.
//   Faults    makes no driver calls; allocates nothing.
//   Source    _Unwind_Backtrace of libgcc; frames of the drop-in itself are left out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/journal/module_table.h"
#include "faults/journal/page_guard.h"

namespace cuaudit::faults {

class StackTable {
 public:
  // `skip_own_object`: this code is a library of its own (the drop-in), and its frames on top of a stack are not the program's.
  void Attach(Journal* journal, bool skip_own_object) noexcept;
  // Stacks of the calling thread end with the frame that `frame` (__builtin_frame_address) belongs to, until the next StartAt; null: no
  // end. So stacks of one place are alike whatever called the code that runs it.
  void StartAt(const void* frame) noexcept;
  // The stack of the calling thread.
  std::uint32_t Capture() noexcept;
  // Called in a forked child.
  void AfterFork() noexcept { modules_.AfterFork(); }
  // The id of a stack given frame by frame, as layout.h encodes frames.
  std::uint32_t Intern(const std::uint64_t* frames, std::size_t depth) noexcept;

 private:
  Journal* journal_ = nullptr;
  ModuleTable modules_;
  PageGuard<kMaxStacks * sizeof(StackRow)> pages_;
  std::uint64_t own_module_ = kNoModule;
  std::atomic<std::uintptr_t> start_{0};
  std::atomic<std::uintptr_t> start_thread_{0};
};

}  // namespace cuaudit::faults
