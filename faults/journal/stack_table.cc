// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/journal/stack_table.h"

#include <pthread.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#include "faults/journal/interpreted_stack.h"
#include "faults/journal/stack_key.h"

namespace cuaudit::faults {
namespace {

constexpr std::size_t kOwnFrames = 12;  // most frames that the drop-in itself has on top of a stack

// Most native frames that are looked at for the Python frames between them.
constexpr std::size_t kInterpretedFrames = 192;

struct Walk {
  std::uintptr_t* address = nullptr;
  std::uintptr_t* lowest = nullptr;  // null: not wanted
  std::size_t count = 0;
  std::size_t limit = 0;
  std::uintptr_t start = 0;   // 0: walk to the end
  std::uintptr_t within = 0;  // 0: from the innermost frame
  std::size_t callers = 0;    // frames around it that are left out
  bool cut = false;           // there are frames further out
  // Python frames that the native ones interpret: the walk ends where enough of them were passed.
  const python::Frames* python = nullptr;
  std::size_t passed = 0;
  std::size_t enough = 0;
};

std::uintptr_t ThisThread() noexcept {
  const pthread_t self = pthread_self();
  static_assert(sizeof(self) == sizeof(std::uintptr_t));
  std::uintptr_t number = 0;
  memcpy(&number, &self, sizeof(number));
  return number;
}

_Unwind_Reason_Code Step(_Unwind_Context* context, void* state) {
  Walk& walk = *static_cast<Walk*>(state);
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  // The CFA of the callee lies below the address of the frame itself, so the walk ends after the frame of `start`.
  const std::uintptr_t lowest = _Unwind_GetCFA(context);
  walk.cut = true;
  if (walk.start != 0 && lowest > walk.start) return _URC_END_OF_STACK;
  walk.cut = false;
  if (lowest <= walk.within) return _URC_NO_REASON;
  if (walk.callers != 0) {
    --walk.callers;
    return _URC_NO_REASON;
  }
  if (walk.python != nullptr) {
    const python::Frames& python = *walk.python;
    while (walk.passed < python.count && python.frame[walk.passed].native < lowest) ++walk.passed;
    walk.cut = walk.passed >= walk.enough;
    if (walk.cut) return _URC_END_OF_STACK;
  }
  if (walk.lowest != nullptr) walk.lowest[walk.count] = lowest;
  walk.address[walk.count++] = address;
  walk.cut = walk.count == walk.limit;
  return walk.cut ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// May run twice at once for one row, with equal frames.
void Fill(const std::uint64_t* frames, std::size_t depth, StackRow* row) noexcept {
  for (std::size_t i = 0; i < depth; ++i) __atomic_store_n(&row->frame[i], frames[i], __ATOMIC_RELAXED);
  row->depth.store(static_cast<std::uint32_t>(depth), std::memory_order_release);
}

}  // namespace

void StackTable::Attach(Journal* journal, bool skip_own_object) noexcept {
  journal_ = journal;
  modules_.Attach(journal);
  functions_.Attach(journal);
  for (std::atomic<Module>& known : looked_at_) known.store(Module::NotLookedAt, std::memory_order_relaxed);
  modules_.Refresh(&python_);
  const std::uint64_t own = ModuleOf(reinterpret_cast<const void*>(&Step));
  if (skip_own_object) own_module_ = own;
  // The unwinder's first walk sets up a mutex and caches. Done here, they are not taken for the program's.
  if (journal_->header().stack_depth.load(std::memory_order_relaxed) != 0) (void)Capture();
}

std::uint64_t StackTable::ModuleOf(const void* code) noexcept {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(code);
  std::uint64_t frame = 0;
  modules_.Encode(&address, 1, &frame);
  return FrameModule(frame);
}

void StackTable::LeaveOut(const void* code) noexcept { drop_in_ = code == nullptr ? std::uint64_t{kNoModule} : ModuleOf(code); }

std::uint32_t StackTable::Capture(const void* within, std::size_t callers) noexcept {
  const std::size_t depth = journal_->header().stack_depth.load(std::memory_order_relaxed);
  if (depth == 0) return 0;
  modules_.Refresh(&python_);
  const std::size_t most = depth < kMaxFrames ? depth : kMaxFrames;
  if (python_.unread() != 0) {
    journal_->header().unread_python.store(python_.unread(), std::memory_order_relaxed);
  } else if (python_.present()) {
    python::SafeMemory memory;
    const std::uintptr_t thread = python_.ThisThread(&memory);
    if (thread != 0) return CaptureInterpreted(&memory, thread, reinterpret_cast<std::uintptr_t>(within), callers, most);
  }
  std::uintptr_t address[kMaxFrames + kOwnFrames];
  Walk walk;
  walk.address = address;
  walk.limit = most + kOwnFrames;
  walk.start = StartOfThisThread();
  walk.within = reinterpret_cast<std::uintptr_t>(within);
  walk.callers = callers;
  _Unwind_Backtrace(&Step, &walk);
  std::uint64_t frames[kMaxFrames + kOwnFrames];
  modules_.Encode(walk.address, walk.count, frames);
  const std::size_t first = OwnFrames(frames, walk.count);
  const std::size_t left = WithoutProbes(frames + first, nullptr, walk.count - first);
  const std::size_t count = left < depth ? left : depth;
  return count == 0 ? 0 : Intern(frames + first, count);
}

std::uint32_t StackTable::CaptureInterpreted(python::SafeMemory* memory, std::uintptr_t thread, std::uintptr_t within, std::size_t callers,
                                             std::size_t depth) noexcept {
  python::Frames python;
  python_.Walk(memory, thread, &python);
  std::uintptr_t address[kInterpretedFrames];
  std::uintptr_t lowest[kInterpretedFrames];
  Walk walk;
  walk.address = address;
  walk.lowest = lowest;
  walk.limit = kInterpretedFrames;
  walk.start = StartOfThisThread();
  walk.within = within;
  walk.callers = callers;
  walk.python = &python;
  walk.enough = 2 * depth;  // some of them are left out
  _Unwind_Backtrace(&Step, &walk);
  std::uint64_t native[kInterpretedFrames];
  modules_.Encode(address, walk.count, native);
  const std::size_t first = OwnFrames(native, walk.count);
  const std::size_t left = WithoutProbes(native + first, lowest + first, walk.count - first);
  const NativeStack stack = {{native + first, left}, {lowest + first, left}, !walk.cut};
  PythonNames names(&python_, memory, &functions_);
  std::uint64_t frames[kMaxFrames];
  const std::size_t count = Interleave(journal_, stack, {python.frame, python.count}, &names, frames, depth);
  if (names.failed()) {  // the native frames alone, from here on
    python_.NoteUnread();
    return Intern(native + first, left < depth ? left : depth);
  }
  return count == 0 ? 0 : Intern(frames, count);
}

std::uintptr_t StackTable::StartOfThisThread() const noexcept {
  const std::uintptr_t start = start_.load(std::memory_order_relaxed);
  return start != 0 && start_thread_.load(std::memory_order_relaxed) == ThisThread() ? start : 0;
}

std::size_t StackTable::OwnFrames(const std::uint64_t* frames, std::size_t count) const noexcept {
  std::size_t own = 0;
  const auto is_own = [this](std::uint64_t module) { return module != kNoModule && (module == own_module_ || module == drop_in_); };
  while (own < count && is_own(FrameModule(frames[own]))) ++own;
  return own;
}

std::size_t StackTable::WithoutProbes(std::uint64_t* frames, std::uintptr_t* lowest, std::size_t count) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (IsProbes(FrameModule(frames[i]))) continue;
    frames[kept] = frames[i];
    if (lowest != nullptr) lowest[kept] = lowest[i];
    ++kept;
  }
  return kept;
}

bool StackTable::IsProbes(std::uint64_t module) noexcept {
  if (module >= kMaxModules) return false;
  std::atomic<Module>& known = looked_at_[module];
  if (known.load(std::memory_order_relaxed) == Module::NotLookedAt) {
    const char* const path = journal_->modules()[module].path;
    const char* const slash = strrchr(path, '/');
    constexpr char kProbes[] = "libcuaudit_host";
    const bool is_probes = strncmp(slash == nullptr ? path : slash + 1, kProbes, sizeof(kProbes) - 1) == 0;
    known.store(is_probes ? Module::Probes : Module::Other, std::memory_order_relaxed);
  }
  return known.load(std::memory_order_relaxed) == Module::Probes;
}

std::uint64_t StackTable::KeyOf(std::string_view base, std::uint32_t stack) const noexcept {
  std::span<const std::uint64_t> frames;
  if (stack != 0) {
    const StackRow& row = journal_->stacks()[stack - 1];
    frames = {row.frame, row.depth.load(std::memory_order_acquire)};
  }
  return CallKey(base, frames, {{journal_->modules(), kMaxModules}, {journal_->python(), kMaxPythonFunctions}});
}

void StackTable::StartAt(const void* frame) noexcept {
  start_thread_.store(ThisThread(), std::memory_order_relaxed);
  start_.store(reinterpret_cast<std::uintptr_t>(frame), std::memory_order_relaxed);
}

std::uint32_t StackTable::Intern(const std::uint64_t* frames, std::size_t depth) noexcept {
  const std::uint64_t hash = HashOfFrames(frames, depth);
  StackRow* rows = journal_->stacks();
  for (std::size_t probe = 0; probe < kMaxStacks; ++probe) {
    const std::size_t at = (hash + probe) % kMaxStacks;
    if (!pages_.Ensure(reinterpret_cast<char*>(rows), at * sizeof(StackRow), sizeof(StackRow))) {
      journal_->header().flags.fetch_or(kNoSpace, std::memory_order_relaxed);
      break;
    }
    StackRow& row = rows[at];
    std::uint64_t held = row.hash.load(std::memory_order_acquire);
    const bool claimed = held == 0 && row.hash.compare_exchange_strong(held, hash, std::memory_order_acq_rel);
    if (claimed) journal_->header().next_stack.fetch_add(1, std::memory_order_relaxed);
    // Equal 64-bit hashes are taken for equal stacks. With 65,536 rows the probability of a collision is about 10^-10.
    if (!claimed && held != hash) continue;
    // Another process may have claimed the row and not yet filled it, or been killed. What refers to the row may be read before that
    // process runs again, so this one fills it with the same frames.
    if (row.depth.load(std::memory_order_acquire) == 0) Fill(frames, depth, &row);
    return static_cast<std::uint32_t>(at + 1);
  }
  journal_->header().flags.fetch_or(kStacksDropped, std::memory_order_relaxed);
  return 0;
}

// The call stack of code that a signal interrupted (StackTable::CaptureInterrupted).
//
// Runs in signal handlers. Where the interrupted code has jumped to an address without code, the unwinder would stop at once: there the
// walk begins at the caller, whose address the jump has left on top of the stack.

namespace {

struct InterruptedWalk {
  std::uintptr_t address[kInterpretedFrames];
  std::uintptr_t lowest[kInterpretedFrames] = {};
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
  walk.lowest[walk.count] = _Unwind_GetCFA(context);
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
  const std::size_t most = depth < kMaxFrames ? depth : kMaxFrames;
  python::SafeMemory memory;
  python::Frames python;
  if (python_.present() && python_.unread() == 0) {
    if (const std::uintptr_t state = python_.ThisThread(&memory); state != 0) python_.Walk(&memory, state, &python);
  }
  InterruptedWalk walk;
  walk.wanted = python.count == 0 ? most : kInterpretedFrames;
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
  if (walk.count == 0) return 0;
  std::uint64_t native[kInterpretedFrames];
  modules_.Encode(walk.address, walk.count, native, true);
  const bool complete = walk.count < walk.wanted;
  const std::size_t count = WithoutProbes(native, walk.lowest, walk.count);
  if (python.count != 0) {
    PythonNames names(&python_, &memory, &functions_);
    std::uint64_t frames[kMaxFrames];
    const NativeStack stack = {{native, count}, {walk.lowest, count}, complete};
    const std::size_t all = Interleave(journal_, stack, {python.frame, python.count}, &names, frames, most);
    if (!names.failed() && all != 0) return Intern(frames, all);
  }
  return count == 0 ? 0 : Intern(native, count < most ? count : most);
}

}  // namespace cuaudit::faults
