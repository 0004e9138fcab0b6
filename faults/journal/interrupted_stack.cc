// SPDX-License-Identifier: MIT
// interrupted_stack.cc: the call stack of code that a signal interrupted (StackTable::CaptureInterrupted).
//
// Runs in signal handlers. Where the interrupted code has jumped to an address without code, the unwinder would stop at once: there the
// walk begins at the caller, whose address the jump has left on top of the stack.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#include "faults/journal/stack_table.h"

namespace cuaudit::faults {
namespace {

struct InterruptedWalk {
  std::uintptr_t address[kMaxFrames];
  std::size_t count = 0;
  std::size_t wanted = 0;
  std::size_t kept = 0;        // frames that stay when the walk starts anew
  std::uintptr_t start = 0;    // as StackTable::StartAt; 0: walk to the end
  std::uintptr_t caller = 0;   // address of an interrupted frame that is a return address already
  unsigned interruptions = 0;  // frames met that a signal interrupted
  unsigned at_most = 0;        // the walk starts anew at each interruption up to this one
};

_Unwind_Reason_Code StepInterrupted(_Unwind_Context* context, void* state) {
  InterruptedWalk& walk = *static_cast<InterruptedWalk*>(state);
  int exact = 0;
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &exact);
  if (exact != 0 && walk.interruptions < walk.at_most) {
    walk.count = walk.interruptions++ == 0 ? walk.kept : 0;
  }
  if (walk.interruptions == 0) return _URC_NO_REASON;  // the handler's own frames
  if (address == 0) return _URC_END_OF_STACK;
  if (walk.start != 0 && _Unwind_GetCFA(context) > walk.start) return _URC_END_OF_STACK;
  if (walk.count == walk.wanted) return walk.at_most == 1 ? _URC_END_OF_STACK : _URC_NO_REASON;
  // Return addresses are looked up one byte lower, the address of an interrupted instruction is its own.
  walk.address[walk.count++] = address + (exact != 0 && address != walk.caller ? 1 : 0);
  return _URC_NO_REASON;
}

#if defined(__x86_64__)
struct Registers {
  explicit Registers(void* context) noexcept : set(static_cast<ucontext_t*>(context)->uc_mcontext.gregs) {}
  std::uintptr_t at() const noexcept { return static_cast<std::uintptr_t>(set[REG_RIP]); }
  std::uintptr_t stack() const noexcept { return static_cast<std::uintptr_t>(set[REG_RSP]); }
  // As if the jump to no code had returned. False: there is no telling who jumped.
  bool Return() noexcept {
    if (stack() % sizeof(std::uintptr_t) != 0) return false;
    std::uintptr_t caller = 0;
    memcpy(&caller, reinterpret_cast<const void*>(stack()), sizeof(caller));  // NOLINT(performance-no-int-to-ptr)
    set[REG_RIP] = static_cast<greg_t>(caller);
    set[REG_RSP] += static_cast<greg_t>(sizeof(caller));
    return true;
  }
  greg_t* set;
};
#elif defined(__aarch64__)
struct Registers {
  explicit Registers(void* context) noexcept : set(&static_cast<ucontext_t*>(context)->uc_mcontext) {}
  std::uintptr_t at() const noexcept { return set->pc; }
  std::uintptr_t stack() const noexcept { return set->sp; }
  bool Return() noexcept {
    set->pc = set->regs[30];
    return true;
  }
  mcontext_t* set;
};
#endif

}  // namespace

std::uintptr_t InterruptedStackPointer([[maybe_unused]] void* context) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
  return Registers(context).stack();
#else
  return 0;
#endif
}

std::uint32_t StackTable::CaptureInterrupted([[maybe_unused]] void* context, Interruption how, const void* fault) noexcept {
  const std::size_t depth = journal_->header().stack_depth.load(std::memory_order_relaxed);
  if (depth == 0) return 0;
  InterruptedWalk walk;
  walk.wanted = depth < kMaxFrames ? depth : kMaxFrames;
  walk.at_most = how == Interruption::Raised ? 2 : 1;
  const pthread_t self = pthread_self();
  std::uintptr_t thread = 0;
  memcpy(&thread, &self, sizeof(thread));
  const std::uintptr_t start = start_.load(std::memory_order_relaxed);
  if (start != 0 && start_thread_.load(std::memory_order_relaxed) == thread) walk.start = start;
#if defined(__x86_64__) || defined(__aarch64__)
  Registers registers(context);
  const mcontext_t before = static_cast<const ucontext_t*>(context)->uc_mcontext;
  const std::uintptr_t at = registers.at();
  if (how == Interruption::Fault && at == reinterpret_cast<std::uintptr_t>(fault) && registers.Return()) {
    walk.address[walk.count++] = at;
    walk.kept = 1;
  }
  if (how != Interruption::Fault || walk.kept != 0) walk.caller = registers.at();
  _Unwind_Backtrace(&StepInterrupted, &walk);
  static_cast<ucontext_t*>(context)->uc_mcontext = before;
#else
  (void)fault;
  _Unwind_Backtrace(&StepInterrupted, &walk);
#endif
  std::uint64_t frames[kMaxFrames];
  modules_.Encode(walk.address, walk.count, frames, true);
  return walk.count == 0 ? 0 : Intern(frames, walk.count);
}

}  // namespace cuaudit::faults
