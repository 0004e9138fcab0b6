// SPDX-License-Identifier: MIT
// put_back.h: traces of programs that take off or reset a context, or give back what is their caller's, and of their repaired twins.
//
// Stacks are those of deficits.h: main has 101 to 120, the function that it calls at instruction 1 has InHelper(1, ...).
#pragma once

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

// A function takes off its caller's context, or sets another one, and goes back by a push. All of them are right in `Run::Right`.
enum class Swap {
  PopsAndPushes,    // sets another context; pops it and pushes the caller's
  NullAndPushes,    // the same by cuCtxSetCurrent(NULL) and a push
  Aside,            // pops, works in no context, pushes. Wrong: pushes nothing when the work fails, and the caller goes on
  AsideOfCreated,   // the same, and the caller had created its context
  AsideOfUnknown,   // the same, and the caller's context is older than the records
  AsideAndSets,     // the same, and cuCtxSetCurrent puts it back
  AsideByGuards,    // the same, by two functions that it calls
  AsideForAnother,  // pops, pushes another context, works there, pops and pushes. Wrong: returns from the work when it fails
  PushesTwice,      // Aside; wrong: pushes twice when the work fails
  Floats,           // a first function sets and pops; a second one pushes, works and pops. Wrong: does not pop when the work fails
};
template <Swap how>
Trace SwapsItsContext(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  constexpr bool kSets = how == Swap::PopsAndPushes || how == Swap::NullAndPushes;
  const bool fails = run != Run::FaultFree;
  const bool wrong = run == Run::Wrong;
  std::uint64_t current = how == Swap::AsideOfUnknown ? kCallers : 0;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
    current = context;
  };
  const auto push = [&](std::uint32_t stack) {
    t.Push(kCallers).Context(current).Stack(stack);
    current = kCallers;
  };
  const auto pop = [&](std::uint32_t stack) {
    t.Pop(current).Context(current).Stack(stack);
    current = 0;
  };
  const auto work = [&](std::uint32_t first) {
    Step graph = t.Call(driver::CallId::GraphCreate).Stack(first);
    if (fails) graph.Refused();
    if (fails) return;
    graph.Out(0, 0x90);
    t.Call(driver::CallId::GraphDestroy).In(0, 0x90).Stack(first + 1);
  };
  if (how == Swap::Floats) {
    set(kCallers, InHelper(1, 1));
    t.Alloc(0x2000).Context(current).Stack(InHelper(1, 3));
    pop(InHelper(1, 2));
    push(InHelper(2, 1));
    work(InHelper(2, 2));
    if (!wrong) pop(InHelper(2, 4));
    t.Free(0x2000).Context(current).Stack(110);
    return t;
  }
  if (how == Swap::AsideForAnother) {
    set(kCallers, 101);
    t.Alloc(0x2000).Context(current).Stack(102);
    pop(InHelper(1, 1));
    t.Push(kOther).Context(0).Stack(InHelper(1, 2));
    current = kOther;
    work(InHelper(1, 3));
    if (!wrong) pop(InHelper(1, 5));
    if (!wrong) push(InHelper(1, 6));
    t.Free(0x2000).Context(current).Stack(110);
    return t;
  }
  if (how == Swap::AsideOfCreated) {
    t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
    current = kCallers;
  } else if (how != Swap::AsideOfUnknown) {
    set(kCallers, 101);
  }
  constexpr bool kGuards = how == Swap::AsideByGuards;
  if (kSets) set(kOther, InHelper(1, 1));
  if (!kSets) pop(kGuards ? Deeper(1, 1, 1) : InHelper(1, 1));
  work(InHelper(1, 2));
  if (how == Swap::PopsAndPushes) pop(InHelper(1, 4));
  if (how == Swap::NullAndPushes) set(0, InHelper(1, 4));
  if (!wrong || kSets || how == Swap::PushesTwice) {
    if (how == Swap::AsideAndSets) set(kCallers, InHelper(1, 5));
    if (how != Swap::AsideAndSets) push(kGuards ? Deeper(1, 2, 5) : InHelper(1, 5));
  }
  if (how == Swap::PushesTwice && wrong) push(InHelper(1, 6));
  Step stream = t.CreateStream(0x10).Context(current).Stack(103);
  if (current == 0) stream.Fails(CUDA_ERROR_INVALID_CONTEXT);
  if (current != 0) t.DestroyStream(0x10).Context(current).Stack(104);
  if (how == Swap::AsideOfCreated) t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(current).Stack(105);
  return t;
}

// Right: the call that puts the caller's context back is refused, and the function makes it again.
inline Trace SetsItBackTwice(Run run) {
  Trace t;
  t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  t.Call(driver::CallId::CtxSetCurrent).In(0, 0xb).Context(kCallers).Stack(InHelper(1, 1));
  t.Alloc(0x1000).Context(0xb).Stack(InHelper(1, 2));
  t.Free(0x1000).Context(0xb).Stack(InHelper(1, 3));
  Step back = t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0xb).Stack(InHelper(1, 4));
  if (run != Run::FaultFree) {
    back.Refused();
    t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0xb).Stack(InHelper(1, 5));
  }
  t.CreateStream(0x10).Context(kCallers).Stack(103);
  t.DestroyStream(0x10).Context(kCallers).Stack(104);
  return t;
}

// Right: a function's way back is refused, and it gives up. The caller chooses another context and calls a second function, which works in
// the first context and puts the other one back. Wrong: the second function does not.
inline Trace GivesUpItsWayBack(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  std::uint64_t current = 0;
  const auto set = [&](std::uint64_t context, std::uint32_t stack, bool refused) {
    Step step = t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
    if (refused) step.Refused();
    if (!refused) current = context;
  };
  set(kCallers, 101, false);
  set(0xb, InHelper(1, 1), false);
  t.Alloc(0x1000).Context(0xb).Stack(InHelper(1, 2));
  t.Free(0x1000).Context(0xb).Stack(InHelper(1, 3));
  set(kCallers, InHelper(1, 4), fails);
  set(0xd, 102, false);
  set(kCallers, InHelper(2, 1), false);
  t.Alloc(0x2000).Context(kCallers).Stack(InHelper(2, 2));
  t.Free(0x2000).Context(kCallers).Stack(InHelper(2, 3));
  if (run != Run::Wrong) set(0xd, InHelper(2, 4), false);
  t.CreateStream(0x10).Context(current).Stack(103);
  t.DestroyStream(0x10).Context(current).Stack(104);
  return t;
}

// Right: a function makes a context of its own, destroys it and makes its caller's current; the destruction is refused, so that its own
// still was. Wrong: it makes none current afterwards. `Denied`: the trial is told that its own was not made.
template <bool Denied>
Trace CannotDestroyItsOwn(Run run) {
  constexpr std::uint64_t kOwn = 0xb;
  std::uint64_t current = 0;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
    current = context;
  };
  set(kCallers, 101);
  Step create = t.Call(driver::CallId::CtxCreate_v2).Out(0, kOwn).Context(kCallers).Stack(InHelper(1, 1));
  if (Denied && run != Run::FaultFree) create.After();
  t.Alloc(0x1000).Context(kOwn).Stack(InHelper(1, 2));
  t.Free(0x1000).Context(kOwn).Stack(InHelper(1, 3));
  Step destroy = t.Call(driver::CallId::CtxDestroy_v2).In(0, kOwn).Context(kOwn).Stack(InHelper(1, 4));
  if (run != Run::FaultFree) destroy.Refused();
  current = run != Run::FaultFree ? kOwn : kCallers;
  set(kCallers, InHelper(1, 5));
  if (run == Run::Wrong) set(0, InHelper(1, 6));
  Step stream = t.CreateStream(0x10).Context(current).Stack(103);
  if (current == 0) stream.Fails(CUDA_ERROR_INVALID_CONTEXT);
  if (current != 0) t.DestroyStream(0x10).Context(current).Stack(104);
  return t;
}

// Right: the caller cannot destroy its context and goes on working there; a function that it calls works in another one and puts the
// caller's back. Wrong: it does not.
inline Trace KeepsWhatItCouldNotDestroy(Run run) {
  std::uint64_t current = kCallers;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
    current = context;
  };
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  Step destroy = t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(102);
  if (run != Run::FaultFree) destroy.Refused();
  if (run == Run::FaultFree) {
    t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xd).Context(0).Stack(103);
    current = 0xd;
  }
  const std::uint64_t callers = current;
  t.Alloc(0x2000).Context(current).Stack(104);
  t.Free(0x2000).Context(current).Stack(105);
  set(0xb, InHelper(1, 1));
  t.Alloc(0x1000).Context(0xb).Stack(InHelper(1, 2));
  t.Free(0x1000).Context(0xb).Stack(InHelper(1, 3));
  if (run != Run::Wrong) set(callers, InHelper(1, 4));
  t.CreateStream(0x10).Context(current).Stack(106);
  t.DestroyStream(0x10).Context(current).Stack(107);
  if (run == Run::FaultFree) t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xd).Context(current).Stack(108);
  return t;
}

// A child has a context under the handle of its parent's and destroys it, or cannot. Right: a function of the parent works in another
// context and puts its caller's back. Wrong: not when its allocation fails, and the caller goes on.
template <bool Refused>
Trace AChildEndsOneOfItsOwn(Run run) {
  constexpr std::uint32_t kChild = 200;
  std::uint64_t current = 0;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
    current = context;
  };
  set(kCallers, 101);
  set(0xb, InHelper(1, 1));
  Step alloc = t.Alloc(0x1000).Context(0xb).Stack(InHelper(1, 2));
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Context(0xb).Stack(InHelper(1, 3));
  t.Event(faults::ProcessEvent::Fork, kChild, kProcess);
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Process(kChild).Stack(110);
  Step destroy = t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Process(kChild).Stack(111);
  if (Refused && run != Run::FaultFree) destroy.Refused();
  t.Event(faults::ProcessEvent::Exit, kChild, kProcess);
  if (run != Run::Wrong) set(kCallers, InHelper(1, 4));
  t.CreateStream(0x10).Context(current).Stack(103);
  t.DestroyStream(0x10).Context(current).Stack(104);
  return t;
}

// A function works in another context and puts its caller's back. Wrong: not when its allocation fails, and the caller goes on. That
// function's change is also the way back from an earlier one.
enum class Earlier {
  Created,         // the caller creates the other context, and takes it off before it makes its own current
  CreatedAndKept,  // it makes its own current over the other one
  SecondTurn,      // the function was called before, from another line, and put the context back
  OfTheCaller,     // the caller puts a third one back at its end
};
template <Earlier how>
Trace GoesToItAgain(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  constexpr std::uint64_t kThird = 0xd;
  std::uint64_t current = how == Earlier::OfTheCaller ? kThird : 0;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
    current = context;
  };
  const auto works = [&](std::uint32_t at, bool fails, bool puts_back) {
    set(kOther, InHelper(at, 1));
    Step alloc = t.Alloc(0x1000).Context(kOther).Stack(InHelper(at, 2));
    if (fails) alloc.Refused();
    if (!fails) t.Free(0x1000).Context(kOther).Stack(InHelper(at, 3));
    if (puts_back) set(kCallers, InHelper(at, 4));
  };
  if (how == Earlier::Created || how == Earlier::CreatedAndKept) {
    t.Call(driver::CallId::CtxCreate_v2).Out(0, kOther).Context(0).Stack(101);
    current = kOther;
  }
  if (how == Earlier::Created) {
    t.Pop(kOther).Context(kOther).Stack(102);
    current = 0;
  }
  set(kCallers, 103);
  if (how == Earlier::SecondTurn) works(1, false, true);
  works(2, run != Run::FaultFree, run != Run::Wrong);
  t.CreateStream(0x10).Context(current).Stack(104);
  t.DestroyStream(0x10).Context(current).Stack(105);
  if (how == Earlier::OfTheCaller) set(kThird, 106);
  if (how == Earlier::Created || how == Earlier::CreatedAndKept)
    t.Call(driver::CallId::CtxDestroy_v2).In(0, kOther).Context(current).Stack(107);
  return t;
}

// Right: a function goes to another context and comes back, in any run. Nobody goes there a second time when the first time failed, and so
// nothing undoes the way back. In the fault-free run a second function does.
inline Trace ComesBackOnce(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  const bool fails = run != Run::FaultFree;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint64_t current, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
  };
  set(kCallers, 0, 101);
  for (std::uint32_t inner = 1; inner <= (fails ? 1U : 2U); ++inner) {
    set(kOther, kCallers, Deeper(1, inner, 1));
    Step alloc = t.Alloc(0x1000).Context(kOther).Stack(Deeper(1, inner, 2));
    if (fails) alloc.Refused();
    if (!fails) t.Free(0x1000).Context(kOther).Stack(Deeper(1, inner, 3));
    set(kCallers, kOther, Deeper(1, inner, 4));
  }
  t.CreateStream(0x10).Context(kCallers).Stack(104);
  t.DestroyStream(0x10).Context(kCallers).Stack(105);
  return t;
}

// Right: the caller's own change is refused, so that a function finds no context, and puts back none.
inline Trace PutsBackNone(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  const std::uint64_t before = run == Run::FaultFree ? kCallers : 0;
  Trace t;
  Step set = t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  if (run != Run::FaultFree) set.Refused();
  t.Call(driver::CallId::CtxSetCurrent).In(0, kOther).Context(before).Stack(InHelper(1, 1));
  t.Alloc(0x1000).Context(kOther).Stack(InHelper(1, 2));
  t.Free(0x1000).Context(kOther).Stack(InHelper(1, 3));
  t.Call(driver::CallId::CtxSetCurrent).In(0, before).Context(kOther).Stack(InHelper(1, 4));
  Step stream = t.CreateStream(0x10).Context(before).Stack(103);
  if (before == 0) stream.Fails(CUDA_ERROR_INVALID_CONTEXT);
  if (before != 0) t.DestroyStream(0x10).Context(before).Stack(104);
  return t;
}

// Right: a function that is called twice in one line leaves the other context the second time, in any run, and its caller puts a third one
// back at the end.
inline Trace StaysTheSecondTime(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  constexpr std::uint64_t kThird = 0xd;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint64_t current, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
  };
  set(kCallers, kThird, 101);
  for (const bool again : {false, true}) {
    set(kOther, kCallers, InHelper(1, 1));
    t.Alloc(0x1000).Context(kOther).Stack(InHelper(1, 2));
    t.Free(0x1000).Context(kOther).Stack(InHelper(1, 3));
    if (!again) set(kCallers, kOther, InHelper(1, 4));
  }
  Step stream = t.CreateStream(0x10).Context(kOther).Stack(103);
  if (run != Run::FaultFree) stream.Refused();
  if (run == Run::FaultFree) t.DestroyStream(0x10).Context(kOther).Stack(104);
  t.Alloc(0x2000).Context(kOther).Stack(105);
  t.Free(0x2000).Context(kOther).Stack(106);
  set(kThird, kOther, 107);
  return t;
}

// A function that pops the entry which it set and pushes the context again, `pushes` times. Its call stacks do not tell whether it owes
// pops.
inline Trace LeavesEntries(std::uint32_t pushes, bool fails) {
  Trace t;
  t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  t.Alloc(0x2000).Context(kCallers).Stack(110);
  t.Pop(kCallers).Context(kCallers).Stack(102);
  t.Push(kCallers).Context(0).Stack(103);
  for (std::uint32_t i = 1; i < pushes; ++i) t.Push(kCallers).Context(kCallers).Stack(103);
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(104);
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(kCallers).Stack(105);
  t.Free(0x2000).Context(kCallers).Stack(111);
  return t;
}

// A function resets the primary context when its allocation fails. Its caller has something there, and uses it or gives it back. Right: the
// function leaves the context alone.
template <driver::CallId make, driver::CallId use>
Trace ResetsUnderItsCaller(Run run) {
  Trace t;
  t.Retain().Stack(101);
  t.Call(make).Out(0, 0x7000).In(1, 64).Stack(102);
  Step alloc = t.Alloc(0x1000).Stack(InHelper(1, 1));
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Stack(InHelper(1, 2));
  if (run == Run::Wrong) t.Call(driver::CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(InHelper(1, 3));
  Step last = t.Call(use).In(0, 0x7000).Stack(103);
  if (run == Run::Wrong) last.Fails(CUDA_ERROR_INVALID_HANDLE);
  t.ReleasePrimary().Stack(104);
  return t;
}

// A function gives back on its failing path what its caller registered or mapped. Right: only its caller does.
template <driver::CallId acquire, driver::CallId release>
Trace GivesBackTheCallers(Run run) {
  Trace t;
  t.Call(acquire).In(0, 0x20000).In(1, 0x1000).Stack(101);
  Step alloc = t.Alloc(0x1000).Stack(InHelper(1, 1));
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Stack(InHelper(1, 2));
  if (run == Run::Wrong) t.Call(release).In(0, 0x20000).In(1, 0x1000).Stack(InHelper(1, 3));
  Step last = t.Call(release).In(0, 0x20000).In(1, 0x1000).Stack(103);
  if (run == Run::Wrong && release == driver::CallId::MemHostUnregister) last.Fails(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  return t;
}

// Blocks are freed by the CUDA runtime, which asks for the current context first. That fails once, and the program goes on.
// Wrong: it frees no other block; of a single block, the runtime was to write there and not to free.
inline Trace FreesByTheRuntime(Run run, std::size_t blocks, bool denied = false) {
  const bool writes = run == Run::Wrong && blocks == 1;
  Trace t;
  t.Retain().Stack(101);
  for (std::size_t i = 1; i <= blocks; ++i) t.Alloc(i << 16U).Stack(102);
  Step look = t.Call(driver::CallId::CtxGetCurrent).Stack(writes || run == Run::FaultFree ? kRuntimeWrites : kRuntimeLooks);
  if (run != Run::FaultFree) denied ? look.After(CUDA_ERROR_NOT_INITIALIZED) : look.Refused(CUDA_ERROR_NOT_INITIALIZED);
  const std::size_t freed = run == Run::FaultFree ? blocks : run == Run::Right ? blocks - 1 : 0;
  for (std::size_t i = 1; i <= freed; ++i) t.Free(i << 16U).Stack(kRuntimeFrees);
  t.ReleasePrimary().Stack(105);
  return t;
}

}  // namespace cuaudit::testing
