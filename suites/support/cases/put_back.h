// SPDX-License-Identifier: MIT
// put_back.h: traces of programs that take a context off the stack for a while, or change a setting for a while, and of their repaired
// twins.
//
// Stacks are those of deficits.h: main has 101 to 120, the function that it calls at instruction 1 has InHelper(1, ...).
#pragma once

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

// A function takes off its caller's context, or sets another one, and goes back by a push. All of them are right in `Run::Right`.
enum class Swap {
  PopsAndPushes,   // sets another context; pops it and pushes the caller's
  NullAndPushes,   // the same by cuCtxSetCurrent(NULL) and a push
  Aside,           // pops, works in no context, pushes. Wrong: pushes nothing when the work fails, and the caller goes on
  AsideOfCreated,  // the same, and the caller had created its context
  AsideOfUnknown,  // the same, and the caller's context is older than the records
  AsideAndSets,    // the same, and cuCtxSetCurrent puts it back
  AsideByGuards,   // the same, by two functions that it calls
  PushesTwice,     // Aside; wrong: pushes twice when the work fails
  Floats,          // a first function sets and pops; a second one pushes, works and pops. Wrong: does not pop when the work fails
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

// A function changes a setting and forgets to put it back when an allocation fails.
enum class Change { CaptureMode, Limit, Cache, SharedMemory, Flags, Peer, Pool };
enum class After {
  GoesOn,       // the caller goes on
  CycleEnds,    // main does the work, and the marked cycle ends
  OnlyFrees,    // right: the caller only cleans up
  Ends,         // right: nothing follows
  ResetsFirst,  // right: the context ends, and the caller goes on in a new one. Not of the capture mode and the pool
  Chooses,      // right: the caller puts the value back itself
  IsRefused,    // right: the call that puts it back is refused
};
template <Change change, After after = After::GoesOn>
Trace ChangesASetting(Run run) {
  using driver::CallId;
  constexpr bool kCycle = after == After::CycleEnds;
  const std::uint32_t cycle = kCycle ? 1 : 0;
  const bool fails = run != Run::FaultFree;
  const auto at = [](std::uint32_t place) { return kCycle ? 105 + place : InHelper(1, place); };
  Trace t;
  const auto set = [&](bool back, std::uint32_t stack) {
    const std::uint64_t old = 0x40;
    const std::uint64_t now = 0x80;
    const std::uint64_t value = back ? old : now;
    switch (change) {
      case Change::CaptureMode:
        return t.Call(CallId::ThreadExchangeStreamCaptureMode).Out(0, back ? 2 : 0).Stack(stack).Cycle(cycle);
      case Change::Limit:
        return t.Call(CallId::CtxSetLimit).In(0, CU_LIMIT_STACK_SIZE).In(1, value).Stack(stack).Cycle(cycle);
      case Change::Cache:
        return t.Call(CallId::CtxSetCacheConfig).In(0, value).Stack(stack).Cycle(cycle);
      case Change::SharedMemory:
        return t.Call(CallId::CtxSetSharedMemConfig).In(0, value).Stack(stack).Cycle(cycle);
      case Change::Flags:
        return t.Call(CallId::CtxSetFlags).In(0, value).Stack(stack).Cycle(cycle);
      case Change::Peer:
        return t.Call(back ? CallId::CtxDisablePeerAccess : CallId::CtxEnablePeerAccess).In(0, 0xb).Stack(stack).Cycle(cycle);
      case Change::Pool:
        break;
    }
    return t.Call(CallId::DeviceSetMemPool).In(0, 0).In(1, value).Stack(stack).Cycle(cycle);
  };
  t.Retain(kCallers).Stack(101);
  t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(102);
  t.Alloc(0x2000).Context(kCallers).Stack(103);
  if (kCycle) t.Mark(faults::MarkKind::CycleBegin).Cycle(cycle);
  if (change == Change::Limit) t.Call(CallId::CtxGetLimit).Out(0, 0x40).In(1, CU_LIMIT_STACK_SIZE).Stack(at(1)).Cycle(cycle);
  if (change == Change::Cache) t.Call(CallId::CtxGetCacheConfig).Out(0, 0x40).Stack(at(1)).Cycle(cycle);
  if (change == Change::SharedMemory) t.Call(CallId::CtxGetSharedMemConfig).Out(0, 0x40).Stack(at(1)).Cycle(cycle);
  if (change == Change::Flags) t.Call(CallId::CtxGetFlags).Out(0, 0x40).Stack(at(1)).Cycle(cycle);
  if (change == Change::Pool) t.Call(CallId::DeviceGetDefaultMemPool).Out(0, 0x40).In(1, 0).Stack(at(1)).Cycle(cycle);
  set(false, at(2));
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(at(3)).Cycle(cycle);
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(kCallers).Stack(at(4)).Cycle(cycle);
  if (run != Run::Wrong || after == After::IsRefused) {
    Step back = set(true, at(5));
    if (after == After::IsRefused && fails) back.Refused(CUDA_ERROR_INVALID_VALUE);
  }
  if (after == After::Ends) return t;
  if (kCycle) t.Mark(faults::MarkKind::CycleEnd).Cycle(cycle);
  if (after == After::Chooses && run == Run::Wrong) set(true, 104);
  t.Free(0x2000).Context(kCallers).Stack(115);
  if (after == After::ResetsFirst) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(116);
  if (after == After::GoesOn || after == After::Chooses || after == After::IsRefused || after == After::ResetsFirst) {
    t.CreateStream(0x10).Context(kCallers).Stack(117);
    t.DestroyStream(0x10).Context(kCallers).Stack(118);
  }
  t.ReleasePrimary().Stack(119);
  return t;
}

// A function changes a limit that its caller had changed, and both put it back. The wrong program's inner function forgets that; its outer
// one puts the first value back, after it worked or at once.
template <bool Works>
Trace ChangesALimitTwice(Run run) {
  using driver::CallId;
  const bool fails = run != Run::FaultFree;
  Trace t;
  const auto set = [&](std::uint64_t value, std::uint32_t stack) {
    t.Call(CallId::CtxSetLimit).In(0, CU_LIMIT_STACK_SIZE).In(1, value).Stack(stack);
  };
  t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  t.Call(CallId::CtxGetLimit).Out(0, 1).In(1, CU_LIMIT_STACK_SIZE).Stack(InHelper(1, 1));
  set(2, InHelper(1, 2));
  set(3, Deeper(1, 1, 3));
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(Deeper(1, 1, 4));
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(kCallers).Stack(Deeper(1, 1, 5));
  if (run != Run::Wrong) set(2, Deeper(1, 1, 6));
  if (Works) {
    t.Call(CallId::EventCreate).Out(0, 0x30).Context(kCallers).Stack(InHelper(1, 7));
    t.Call(CallId::EventDestroy_v2).In(0, 0x30).Context(kCallers).Stack(InHelper(1, 8));
  }
  set(1, InHelper(1, 9));
  t.CreateStream(0x10).Context(kCallers).Stack(103);
  t.DestroyStream(0x10).Context(kCallers).Stack(104);
  return t;
}

}  // namespace cuaudit::testing
