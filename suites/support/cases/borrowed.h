// SPDX-License-Identifier: MIT
// borrowed.h: traces of programs that change something of their caller for a while (the current context, the capture of a stream), and of
// their repaired twins. borrowed_lifecycles.h has such programs for all of the harness.
//
// Stacks are those of deficits.h: main has 101 to 120, the function that it calls at instruction 1 has InHelper(1, ...).
#pragma once

#include <initializer_list>

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

// What happens around a function that works in another context and forgets to put the caller's back when an allocation fails.
enum class Around {
  Works,            // the caller goes on
  IsAThread,        // all of it on another thread than the first
  Destroys,         // the function destroys the context that it made current: none is current then
  ChoosesItself,    // right: the caller makes its own context current before it goes on
  PutsBackLater,    // right: the caller does so at the end
  Ends,             // right: nothing follows
  HadNone,          // right: no context was current before
  LostItsOwn,       // right: the function ended the context that was current before
  NeverPutsItBack,  // right: no run does
};
template <Around how>
Trace WorksElsewhere(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  constexpr bool kKeeps = how == Around::NeverPutsItBack;
  const bool fails = run != Run::FaultFree;
  const std::uint32_t thread = how == Around::IsAThread ? 7 : kThread;
  const std::uint64_t before = how == Around::HadNone ? 0 : kCallers;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint64_t current, std::uint32_t stack) {
    return t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack).Thread(thread);
  };
  if (how == Around::LostItsOwn) t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101).Thread(thread);
  if (how != Around::HadNone && how != Around::LostItsOwn) set(kCallers, 0, 101);
  set(kOther, before, InHelper(1, 1));
  Step alloc = t.Alloc(0x1000).Context(kOther).Stack(InHelper(1, 2)).Thread(thread);
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(kOther).Stack(InHelper(1, 3)).Thread(thread);
  std::uint64_t current = kOther;
  if (fails && how == Around::Destroys) {
    t.Call(driver::CallId::CtxDestroy_v2).In(0, kOther).Context(kOther).Stack(InHelper(1, 5)).Thread(thread);
    current = 0;
  }
  if (fails && how == Around::LostItsOwn)
    t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kOther).Stack(InHelper(1, 5)).Thread(thread);
  if (!kKeeps && run != Run::Wrong) {
    set(before, current, InHelper(1, 4));
    current = before;
  }
  if (how == Around::Ends) return t;
  if (how == Around::ChoosesItself) {
    set(kCallers, current, 102);
    current = kCallers;
  }
  t.CreateStream(0x10).Context(current).Stack(103).Thread(thread);
  t.DestroyStream(0x10).Context(current).Stack(104).Thread(thread);
  if (how == Around::PutsBackLater) set(kCallers, current, 105);
  return t;
}

// What follows when a function stays in another context because an allocation failed there.
enum class Then {
  PushesAndGoesOn,    // the caller works in its own context for a while, goes back to the wrong one, and goes on there
  ReleasesAndGoesOn,  // the caller goes on after a release that needs no context
  DestroysATexture,   // a release that needs the context
  OnlyPushes,         // right: all that the caller still does is in its own context
  OnlyReleases,       // right: no release needs the context
  PopsIt,             // right: the caller takes off its context, which it had pushed, and goes on in a third one
  PushIsRefused,      // right: the function took off the other context, and tried to push the caller's
  PushesOverIt,       // the function pushed the caller's context over the other one: the stack is wrong, and the current context is not
};
template <Then then>
Trace StaysElsewhere(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  constexpr std::uint64_t kBelow = 0xd;
  const bool fails = run != Run::FaultFree;
  std::uint64_t current = 0;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
    current = context;
  };
  const auto push = [&](std::uint64_t context, std::uint32_t stack) {
    Step step = t.Call(driver::CallId::CtxPushCurrent_v2).In(0, context).Context(current).Stack(stack);
    current = context;
    return step;
  };
  const auto pop = [&](std::uint64_t below, std::uint32_t stack) {
    t.Call(driver::CallId::CtxPopCurrent_v2).Out(0, current).Context(current).Stack(stack);
    current = below;
  };
  if (then == Then::PopsIt) {
    push(kBelow, 101);
    push(kCallers, 102);
  } else {
    set(kCallers, 101);
  }
  t.CreateStream(0x10).Context(current).Stack(103);
  if (then == Then::ReleasesAndGoesOn) t.Alloc(0x3000).Context(current).Stack(104);
  if (then == Then::DestroysATexture) t.Call(driver::CallId::TexObjectCreate).Out(0, 0x500000).Context(current).Stack(104);
  set(kOther, InHelper(1, 1));
  Step alloc = t.Alloc(0x1000).Context(current).Stack(InHelper(1, 2));
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(current).Stack(InHelper(1, 3));
  if (run != Run::Wrong) set(kCallers, InHelper(1, 4));
  if (run == Run::Wrong && then == Then::PushIsRefused) {
    pop(0, InHelper(1, 5));
    push(kCallers, InHelper(1, 6)).Refused();
    current = 0;
  }
  if (run == Run::Wrong && then == Then::PushesOverIt) push(kCallers, InHelper(1, 6));
  if (then == Then::PushesAndGoesOn || then == Then::OnlyPushes) {
    const std::uint64_t left = current;
    push(kCallers, 105);
    t.Alloc(0x2000).Context(current).Stack(106);
    t.Free(0x2000).Context(current).Stack(107);
    pop(left, 108);
  }
  if (then == Then::PopsIt) {
    pop(kBelow, 108);
    push(0xe, 112);
  }
  if (then == Then::ReleasesAndGoesOn) t.Free(0x3000).Context(current).Stack(108);
  if (then == Then::DestroysATexture) t.Call(driver::CallId::TexObjectDestroy).In(0, 0x500000).Context(current).Stack(109);
  const bool goes_on = then == Then::PushesAndGoesOn || then == Then::ReleasesAndGoesOn || then == Then::PopsIt;
  if (goes_on || then == Then::PushIsRefused || then == Then::PushesOverIt)
    t.Call(driver::CallId::StreamSynchronize).In(0, 0x10).Stack(109);
  t.DestroyStream(0x10).Context(current).Stack(110);
  if (then == Then::PopsIt) {
    pop(kBelow, 113);
    pop(0, 111);
  }
  return t;
}

// The way back goes to another context to free what lies there, and stays there.
enum class WayBack {
  OfAFunction,
  OfMain,     // right: nobody is left who had another context
  FailsOver,  // right: it works on in the other context
  IsUsual,    // right: the function leaves another context in every run
};
template <WayBack how>
Trace FreesElsewhere(Run run) {
  constexpr std::uint64_t kOther = 0xb;
  constexpr bool kMain = how == WayBack::OfMain;
  const bool fails = run != Run::FaultFree;
  Trace t;
  const auto set = [&](std::uint64_t context, std::uint64_t current, std::uint32_t stack) {
    t.Call(driver::CallId::CtxSetCurrent).In(0, context).Context(current).Stack(stack);
  };
  set(kCallers, 0, 101);
  t.Alloc(0x1000).Context(kCallers).Stack(kMain ? 102 : InHelper(1, 1));
  Step stream = t.CreateStream(0x10).Context(kCallers).Stack(kMain ? 103 : InHelper(1, 2));
  std::uint64_t current = kCallers;
  if (fails) {
    stream.Refused();
    set(kOther, kCallers, kMain ? 105 : InHelper(1, 5));
    current = kOther;
    if (how == WayBack::FailsOver) {
      t.CreateStream(0x11).Context(current).Stack(InHelper(1, 6));
      t.DestroyStream(0x11).Context(current).Stack(InHelper(1, 7));
    }
    t.Free(0x1000).Context(current).Stack(kMain ? 106 : InHelper(1, 8));
    if (run == Run::Right) {
      set(kCallers, current, kMain ? 107 : InHelper(1, 9));
      current = kCallers;
    }
  } else {
    t.DestroyStream(0x10).Context(kCallers).Stack(kMain ? 104 : InHelper(1, 3));
    t.Free(0x1000).Context(kCallers).Stack(kMain ? 108 : InHelper(1, 4));
    if (how == WayBack::IsUsual) set(current = kOther, kCallers, InHelper(1, 10));
  }
  t.Call(driver::CallId::EventCreate).Out(0, 0x30).Context(current).Stack(109);
  t.Call(driver::CallId::EventDestroy_v2).In(0, 0x30).Context(current).Stack(110);
  return t;
}

// Right: each turn of a loop works in the context of its own choice and leaves it current.
inline Trace TakesTurns(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  std::uint64_t current = 0;
  for (std::uint64_t i = 0; i < 4 && !(fails && i == 2); ++i) {
    const std::uint64_t chosen = i % 2 == 0 ? kCallers : 0xb;
    t.Call(driver::CallId::CtxSetCurrent).In(0, chosen).Context(current).Stack(InHelper(1, 1));
    current = chosen;
    Step alloc = t.Alloc(0x1000 * (i + 1)).Context(current).Stack(InHelper(1, 2));
    if (fails && i == 1) alloc.Refused();
  }
  for (std::uint64_t i = 0; i < (fails ? 1U : 4U); ++i) t.Free(0x1000 * (i + 1)).Context(current).Stack(101);
  return t;
}

// Right: the function is told that it could not make the other context current, and makes its caller's current all the same.
inline Trace ComesBackFromNowhere(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  Step set = t.Call(driver::CallId::CtxSetCurrent).In(0, 0xb).Context(kCallers).Stack(InHelper(1, 1));
  if (fails) set.After();
  if (!fails) {
    t.Alloc(0x1000).Context(0xb).Stack(InHelper(1, 2));
    t.Free(0x1000).Context(0xb).Stack(InHelper(1, 3));
  }
  if (run != Run::Wrong) t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0xb).Stack(InHelper(1, 4));
  const std::uint64_t current = run == Run::Wrong ? 0xb : kCallers;
  t.CreateStream(0x10).Context(current).Stack(103);
  t.DestroyStream(0x10).Context(current).Stack(104);
  return t;
}

// A program marks its cycles and does the work itself: no function returns, but the cycle ends. `Releases`: a function does the work, and
// the program releases a stream after it, which needs no context.
enum class Cycle { Ends, Releases, IsRefusedThat };
template <Cycle cycle>
Trace WorksElsewhereInACycle(Run run) {
  constexpr bool kReleases = cycle == Cycle::Releases;
  const bool fails = run != Run::FaultFree;
  const auto at = [](std::uint32_t place) { return kReleases ? InHelper(1, place) : 101 + place; };
  Trace t;
  t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  if (kReleases) t.CreateStream(0x10).Context(kCallers).Stack(106).Cycle(1);
  t.Call(driver::CallId::CtxSetCurrent).In(0, 0xb).Context(kCallers).Stack(at(1)).Cycle(1);
  Step alloc = t.Alloc(0x1000).Context(0xb).Stack(at(2)).Cycle(1);
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(0xb).Stack(at(3)).Cycle(1);
  if (run != Run::Wrong) {
    Step back = t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0xb).Stack(at(4)).Cycle(1);
    if (cycle == Cycle::IsRefusedThat && fails) back.Refused();
  }
  if (kReleases) t.DestroyStream(0x10).Context(run == Run::Wrong ? 0xb : kCallers).Stack(107).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  return t;
}

// A function captures what it queues on the stream of its caller. The wrong one leaves the capture open when that fails.
enum class Owner {
  UsesIt,        // the caller goes on with the stream
  LooksAndUses,  // the same, after it asked whether the stream is under capture
  IsPerThread,   // the stream is the thread's own
  EndsAnother,   // the caller ends a context in which the stream does not lie, and goes on with the stream
  EndsItsOwn,    // right: the caller ends the stream's context, and another stream has its handle
  DestroysIt,    // right: the caller destroys the stream
  EndsIt,        // right: the caller ends the capture
  NeverUsesIt,   // right: nobody uses it again
  EndsAnyway,    // right: the function tries to end it, and the driver declines
};
template <Owner owner>
Trace CapturesItsCallersStream(Run run) {
  const bool fails = run != Run::FaultFree;
  const std::uint64_t stream = owner == Owner::IsPerThread ? std::uint64_t{2} : std::uint64_t{0x10};
  Trace t;
  if (owner != Owner::IsPerThread) t.CreateStream(stream).Stack(101);
  t.Alloc(0x1000).Stack(102);
  t.Call(driver::CallId::StreamBeginCapture_v2).In(0, stream).In(1, 2).Stack(InHelper(1, 1));
  Step fill = t.Call(driver::CallId::MemsetD8Async).In(0, 0x1000).In(2, 16).In(3, stream).Stack(InHelper(1, 2));
  if (fails) fill.Refused();
  if (!fails) {
    t.Call(driver::CallId::StreamEndCapture).In(0, stream).Out(1, 0x90).Stack(InHelper(1, 3));
    t.Call(driver::CallId::GraphDestroy).In(0, 0x90).Stack(InHelper(1, 4));
  }
  const bool ends = run == Run::Right || owner == Owner::EndsAnyway;
  if (fails && ends) {
    Step end = t.Call(driver::CallId::StreamEndCapture).In(0, stream).Stack(InHelper(1, 5));
    if (owner == Owner::EndsAnyway) {
      end.Fails(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    } else {
      end.Out(1, 0x91);
      t.Call(driver::CallId::GraphDestroy).In(0, 0x91).Stack(InHelper(1, 6));
    }
  }
  if (owner == Owner::EndsIt && fails && !ends) t.Call(driver::CallId::StreamEndCapture).In(0, stream).Stack(104);
  if (owner == Owner::LooksAndUses) t.Call(driver::CallId::StreamIsCapturing).In(0, stream).Out(1, 1).Stack(105);
  if (owner == Owner::EndsAnother) t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xb).Stack(105);
  if (owner == Owner::EndsItsOwn) {
    t.Free(0x1000).Stack(107);
    t.Call(driver::CallId::CtxDestroy_v2).In(0, kContext).Stack(105);
    t.CreateStream(stream).Stack(103);
    t.Call(driver::CallId::StreamSynchronize).In(0, stream).Stack(106);
    t.DestroyStream(stream).Stack(108);
    return t;
  }
  if (owner == Owner::UsesIt || owner == Owner::LooksAndUses || owner == Owner::IsPerThread || owner == Owner::EndsAnother) {
    Step wait = t.Call(driver::CallId::StreamSynchronize).In(0, stream).Stack(106);
    if (run == Run::Wrong) wait.Fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  t.Free(0x1000).Stack(107);
  if (owner != Owner::IsPerThread) t.DestroyStream(stream).Stack(108);
  return t;
}

// The stream outlives the cycle that captured it. `Destroys`: it is made and destroyed in the cycle.
template <bool Destroys>
Trace CapturesInACycle(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  if (!Destroys) t.CreateStream(0x10).Stack(101);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  if (Destroys) t.CreateStream(0x10).Stack(101).Cycle(1);
  t.Call(driver::CallId::StreamBeginCapture_v2).In(0, 0x10).In(1, 2).Stack(102).Cycle(1);
  Step fill = t.Call(driver::CallId::EventRecord).In(0, 0x30).In(1, 0x10).Stack(103).Cycle(1);
  if (fails) fill.Refused();
  if (run != Run::Wrong) {
    t.Call(driver::CallId::StreamEndCapture).In(0, 0x10).Out(1, 0x90).Stack(104).Cycle(1);
    t.Call(driver::CallId::GraphDestroy).In(0, 0x90).Stack(105).Cycle(1);
  }
  if (Destroys) t.DestroyStream(0x10).Stack(106).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  if (!Destroys) t.DestroyStream(0x10).Stack(106);
  return t;
}

// A context is pushed, `entries` times, and never popped: its destruction takes the entries along, and is refused. Wrong: below them is an
// entry of another context, and the program returns before it pops that.
inline Trace DestroysUnderEntries(Run run, std::uint32_t entries, bool wrong) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  if (wrong) t.Push(kCallers).Context(0).Stack(103);
  t.CreateStream(0x10).Context(kCallers).Stack(107);
  t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xb).Context(wrong ? kCallers : 0).Stack(101);
  t.Pop(0xb).Context(0xb).Stack(102);
  for (std::uint32_t i = 0; i < entries; ++i) t.Push(0xb).Context(i != 0 ? 0xb : wrong ? kCallers : 0).Stack(104);
  Step destroy = t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xb).Context(0xb).Stack(InHelper(1, 1));
  if (fails) destroy.Refused(CUDA_ERROR_INVALID_CONTEXT);
  if (wrong && !fails) t.Pop(kCallers).Context(kCallers).Stack(InHelper(1, 2));
  t.DestroyStream(0x10).Context(fails ? 0xb : wrong ? 0 : kCallers).Stack(108);
  return t;
}

}  // namespace cuaudit::testing
