// SPDX-License-Identifier: MIT
// stack_table.h: takes the caller's call stack and keeps each distinct stack once in the journal.
//
//   Owns      a ModuleTable; borrows the journal.
//   Threads   safe and lock-free, also between processes.
//   Errors    id 0 when no stack was taken; a full table raises kStacksDropped.
//   Faults    allocates nothing and makes no driver call.
//   Source    _Unwind_Backtrace of libgcc; frames of the drop-in itself and of the host probes are left out. Where the thread runs Python, its
//             Python frames are in the stack (interpreted_stack.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "faults/journal/interpreted_stack.h"
#include "faults/journal/journal.h"
#include "faults/journal/module_table.h"
#include "faults/python/interpreter.h"

namespace cuaudit::faults {

// How a signal came to the code that it interrupted.
enum class Interruption : std::uint8_t {
  Fault,  // the instruction itself could not be carried out
  After,  // the instruction before was carried out: a trap or a request
  // A call raised the signal. When that call was made in a handler of another signal, the stack is that of the code which the other signal
  // interrupted.
  Raised,
};

// The stack pointer of the code that a signal interrupted, from the third argument of the handler; 0 where the processor is unknown.
std::uintptr_t InterruptedStackPointer(void* context) noexcept;

class StackTable {
 public:
  // `skip_own_object`: this code is part of a drop-in library, whose frames on top of a stack are left out.
  void Attach(Journal* journal, bool skip_own_object) noexcept;
  // Ends stacks of the calling thread at the function of `frame` (from __builtin_frame_address), until the next StartAt; null: no end.
  // Stacks of one place are then equal, whatever called the code that runs the steps.
  void StartAt(const void* frame) noexcept;
  // The drop-in that contains `code` sends calls to this code, so its frames are left out, too.
  void LeaveOut(const void* code) noexcept;
  // Takes the stack of the calling thread and returns its id. Given the frame of a function (__builtin_frame_address), that function and
  // what it calls are left out, so that a stack does not depend on the line from which it is taken. So are `callers` frames around it.
  std::uint32_t Capture(const void* within = nullptr, std::size_t callers = 0) noexcept;
  // The stack of the code that a signal interrupted, called by the signal's handler with its third argument. `fault`: the address that
  // could not be accessed, or null. Takes no lock where the loader has _dl_find_object. Python frames are in it as in Capture's.
  std::uint32_t CaptureInterrupted(void* context, Interruption how, const void* fault) noexcept;
  // Key that identifies this call in another run (stack_key.h).
  std::uint64_t KeyOf(std::string_view base, std::uint32_t stack) const noexcept;
  // Called in a forked child.
  void AfterFork() noexcept { modules_.AfterFork(); }
  // Id of a stack given as frames (layout.h).
  std::uint32_t Intern(const std::uint64_t* frames, std::size_t depth) noexcept;

 private:
  // As Capture, of a thread whose state in the interpreter is known.
  std::uint32_t CaptureInterpreted(python::SafeMemory* memory, std::uintptr_t thread, std::uintptr_t within, std::size_t callers,
                                   std::size_t depth) noexcept;
  std::uintptr_t StartOfThisThread() const noexcept;
  std::uint64_t ModuleOf(const void* code) noexcept;
  std::size_t OwnFrames(const std::uint64_t* frames, std::size_t count) const noexcept;
  // Leaves out frames of the libraries of host probes, which stand between the program and what they wrap. dlopen runs code of the program,
  // so such a frame may be anywhere. Returns how many stay. `lowest` goes with the frames; null: not wanted.
  std::size_t WithoutProbes(std::uint64_t* frames, std::uintptr_t* lowest, std::size_t count) noexcept;
  bool IsProbes(std::uint64_t module) noexcept;

  Journal* journal_ = nullptr;
  ModuleTable modules_;
  python::Interpreter python_;
  PythonTable functions_;
  PageGuard<kMaxStacks * sizeof(StackRow)> pages_;
  std::uint64_t own_module_ = kNoModule;
  std::uint64_t drop_in_ = kNoModule;
  enum class Module : std::uint8_t { NotLookedAt, Probes, Other };
  std::atomic<Module> looked_at_[kMaxModules] = {};
  std::atomic<std::uintptr_t> start_{0};
  std::atomic<std::uintptr_t> start_thread_{0};
};

}  // namespace cuaudit::faults
