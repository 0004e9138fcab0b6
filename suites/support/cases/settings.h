// SPDX-License-Identifier: MIT
// settings.h: traces of programs whose function changes a setting for a while and leaves it so when an allocation fails, and of their
// repaired twins. own_context.h has such programs for all of the harness.
//
// Stacks are those of deficits.h: main has 101 to 120, the functions that it calls at instructions 1 and 2 have InHelper(1, ...) and
// InHelper(2, ...).
#pragma once

#include "suites/support/cases/deficits.h"
#include "suites/support/cases/setting_calls.h"

namespace cuaudit::testing {

// What a function's caller does once it has returned.
enum class Caller {
  GoesOn,           // works with what has the setting, and ends that
  Exits,            // right: nothing, and keeps what has the setting
  CallsAnother,     // calls a function that changes the same setting and puts back what it found
  ChoosesItself,    // right: sets a value itself, and goes on
  ChoosesTheSame,   // right: sets the value that the function left, and goes on
  PutsBackLater,    // right: puts the former value back, and exits
  TriesLater,       // right: works, and tries in vain to put the former value back
  UsesAnotherPool,  // right: allocates from another pool
  OnlyEnds,         // right: only ends what has the setting
  WaitsAndEnds,     // right: the same, and waits before and fetches a result
  EndsItUsually,    // right: keeps what has the setting only when the function failed
};

// How the function treats the setting.
enum class Function {
  PutsBack,
  NeverPutsBack,     // right: no run does
  IsRefusedThat,     // right: the call that puts it back fails
  IsDenied,          // right: it is told that the change had failed
  IsNotTold,         // right: the question for the former value fails, and it works without
  SetsTwice,         // right: sets one value early and another one for good
  IsRefusedIt,       // right: the change fails, and it works without
  ChoosesIfItFails,  // right: sets another value for good when its work fails
  TriesToChoose,     // right: the same, and that call fails, too
};
template <Setting setting, Caller caller, Function function = Function::PutsBack>
Trace ChangesASetting(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  SettingCalls<setting> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  t.Alloc(0x2000).Context(kCallers).Stack(105);
  const bool is_denied = fails && function == Function::IsDenied;
  const bool is_not_told = fails && function == Function::IsNotTold;
  const bool is_refused = fails && function == Function::IsRefusedIt;
  if (function == Function::IsNotTold) calls.Give(kFormerValue, 104);  // the caller knows the value, and the function does not
  Step ask = calls.Ask(kFormerValue, InHelper(1, 1));
  if (is_not_told) ask.Refused();
  Step change = calls.Give(kOtherValue, InHelper(1, 2));
  if (is_denied) change.After();
  if (is_refused) {
    change.Refused();
    calls.former = kFormerValue;
  }
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(InHelper(1, 3));
  if (fails && !is_denied && !is_not_told && !is_refused && function != Function::IsRefusedThat) alloc.Refused();
  else t.Free(0x1000).Context(kCallers).Stack(InHelper(1, 4));
  if (function == Function::SetsTwice && !fails) calls.Give(1, InHelper(1, 5));
  const bool puts_back =
      function != Function::NeverPutsBack && function != Function::SetsTwice && !is_denied && !is_not_told && !is_refused;
  if (puts_back && (run != Run::Wrong || function == Function::IsRefusedThat)) {
    Step back = calls.Give(kFormerValue, InHelper(1, 6));
    if (fails && function == Function::IsRefusedThat) back.Refused();
  }
  if (fails && function == Function::ChoosesIfItFails) calls.Give(7, InHelper(1, 7));
  if (fails && function == Function::TriesToChoose) calls.Give(7, InHelper(1, 7)).Refused();
  if (caller == Caller::ChoosesItself) calls.Give(7, 102);
  if (caller == Caller::ChoosesTheSame) calls.Give(kOtherValue, 113);
  if (caller == Caller::CallsAnother) {
    const std::uint64_t found = calls.former;
    calls.Ask(found, InHelper(2, 1));
    calls.Give(9, InHelper(2, 2));
    calls.Give(found, InHelper(2, 3));
  }
  const bool works =
      caller == Caller::GoesOn || caller == Caller::ChoosesItself || caller == Caller::ChoosesTheSame || caller == Caller::TriesLater;
  if (works || caller == Caller::CallsAnother) calls.Work(103);
  if (caller == Caller::UsesAnotherPool)
    t.Call(driver::CallId::MemAllocFromPoolAsync).Out(0, 0x7000).In(1, 16).In(2, kDefaultPool).Context(kCallers).Stack(103);
  if (caller == Caller::UsesAnotherPool) t.Call(driver::CallId::MemFreeAsync).In(0, 0x7000).Context(kCallers).Stack(104);
  if (caller == Caller::WaitsAndEnds) {
    t.Call(driver::CallId::CtxSynchronize).Stack(110);
    t.Call(driver::CallId::StreamSynchronize).Stack(111);
    t.Call(driver::CallId::MemcpyDtoH_v2).In(1, 0x2000).Stack(112);
  }
  if (caller == Caller::PutsBackLater && calls.former != kFormerValue) calls.Give(kFormerValue, 106);
  if (caller == Caller::TriesLater && calls.former != kFormerValue) calls.Give(kFormerValue, 106).Refused();
  t.Free(0x2000).Context(kCallers).Stack(109);  // it cleans up: nobody gives up
  const bool keeps = caller == Caller::Exits || caller == Caller::CallsAnother || caller == Caller::PutsBackLater;
  if (!keeps && !(caller == Caller::EndsItUsually && fails)) {
    if (setting == Setting::KernelAttribute) t.Call(driver::CallId::LibraryUnload).In(0, kLibraryOfProgram).Stack(110);
    if (setting == Setting::NewNode) t.Call(driver::CallId::GraphExecDestroy).In(0, kExecutableOfProgram).Stack(110);
    t.Call(driver::CallId::MemPoolDestroy).In(0, kPoolOfProgram).Context(kCallers).Stack(107);
    t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  }
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// A function changes an attribute of a function or a kernel for a while. Its caller unloads another module or library, or `Own`, the one
// that it comes from, and goes on.
template <Setting setting, bool Own>
Trace UnloadsAfterwards(Run run) {
  constexpr std::uint64_t kOwn = 0x8400;
  constexpr std::uint64_t kOther = 0x8500;
  const bool fails = run != Run::FaultFree;
  const bool kernel = setting == Setting::KernelAttribute;
  Trace t;
  SettingCalls<setting> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  for (const std::uint64_t code : {kOwn, kOther})
    t.Call(kernel ? driver::CallId::LibraryLoadData : driver::CallId::ModuleLoadData).Out(0, code).Context(kCallers).Stack(102);
  if (kernel) t.Call(driver::CallId::LibraryGetKernel).Out(0, kKernelOfProgram).In(1, kOwn).Stack(104);
  else t.Call(driver::CallId::ModuleGetFunction).Out(0, kFunctionOfProgram).In(1, kOwn).Stack(104);
  calls.Ask(kFormerValue, InHelper(1, 1));
  calls.Give(kOtherValue, InHelper(1, 2));
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(InHelper(1, 3));
  if (fails) alloc.Refused();
  else t.Free(0x1000).Context(kCallers).Stack(InHelper(1, 4));
  if (run != Run::Wrong) calls.Give(kFormerValue, InHelper(1, 6));
  for (const std::uint64_t code : {Own ? kOwn : kOther, Own ? kOther : kOwn}) {
    t.Call(kernel ? driver::CallId::LibraryUnload : driver::CallId::ModuleUnload).In(0, code).Context(kCallers).Stack(105);
    if (code == (Own ? kOwn : kOther)) calls.Work(103);
  }
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// A program marks its cycles and does the work itself: no function returns, but the cycle ends. `Ends`: the cycle makes and ends the
// context.
template <Setting setting, bool Ends>
Trace ChangesASettingInACycle(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  SettingCalls<setting> calls{t};
  const auto make = [&] { return t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101); };
  if (!Ends) make();
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  if (Ends) make().Cycle(1);
  calls.Ask(kFormerValue, 102).Cycle(1);
  calls.Give(kOtherValue, 103).Cycle(1);
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(104).Cycle(1);
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(kCallers).Stack(105).Cycle(1);
  if (run != Run::Wrong) calls.Give(kFormerValue, 106).Cycle(1);
  if (Ends) t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(107).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  if (!Ends) t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(107);
  return t;
}

// A function changes a setting and calls another one that changes it again. Each puts back what it found, and `inner` alone may forget it.
template <bool InnerAlone>
Trace ChangesASettingTwice(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  SettingCalls<Setting::Limit> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  calls.Ask(kFormerValue, InHelper(1, 1));
  calls.Give(kOtherValue, InHelper(1, 2));
  calls.Give(9, Deeper(1, 1, 1));
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(Deeper(1, 1, 2));
  if (fails) alloc.Refused();
  if (!fails) t.Free(0x1000).Context(kCallers).Stack(Deeper(1, 1, 3));
  if (run != Run::Wrong) calls.Give(kOtherValue, Deeper(1, 1, 4));
  if (InnerAlone) calls.Work(InHelper(1, 5));
  if (InnerAlone || run != Run::Wrong) calls.Give(kFormerValue, InHelper(1, 7));
  calls.Work(103);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// Calls a function twice from one place.
template <Setting setting>
Trace CallsItInALoop(Run run) {
  Trace t;
  SettingCalls<setting> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  for (const bool fails : {run != Run::FaultFree, false}) {
    const std::uint64_t found = calls.former;
    calls.Ask(found, InHelper(1, 1));
    calls.Give(kOtherValue, InHelper(1, 2));
    Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(InHelper(1, 3));
    if (fails) alloc.Refused();
    else t.Free(0x1000).Context(kCallers).Stack(InHelper(1, 4));
    if (!fails || run == Run::Right) calls.Give(found, InHelper(1, 6));
  }
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// Right: a function gives its setting in each turn of its loop, and leaves it when the second turn fails. Its caller ends the context.
inline Trace SetsItInEachTurn(Run run) {
  Trace t;
  SettingCalls<Setting::Limit> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  calls.Ask(kFormerValue, InHelper(1, 1));
  for (const bool fails : {false, run != Run::FaultFree}) {
    calls.Give(kOtherValue, InHelper(1, 2));
    Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(InHelper(1, 3));
    if (fails) alloc.Refused();
    else t.Free(0x1000).Context(kCallers).Stack(InHelper(1, 4));
  }
  if (run == Run::FaultFree) calls.Give(kFormerValue, InHelper(1, 6));
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// Right: whoever works chooses the value that it needs, and nobody asks for the one before. `TwoFunctions`: two functions called by one;
// else one function.
template <Setting setting, bool TwoFunctions>
Trace EachChoosesItsOwn(Run run) {
  Trace t;
  SettingCalls<setting> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  if (TwoFunctions) calls.Give(1, 102);
  for (const bool fails : {false, run != Run::FaultFree}) {
    calls.Give(kOtherValue, TwoFunctions ? Deeper(1, 1, 2) : InHelper(1, 2));
    Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(TwoFunctions ? Deeper(1, 1, 3) : InHelper(1, 3));
    if (fails) {
      alloc.Refused();
      break;
    }
    t.Free(0x1000).Context(kCallers).Stack(TwoFunctions ? Deeper(1, 1, 4) : InHelper(1, 4));
    calls.Give(1, TwoFunctions ? Deeper(1, 2, 2) : InHelper(1, 5));
    t.Alloc(0x3000).Context(kCallers).Stack(TwoFunctions ? Deeper(1, 2, 3) : InHelper(1, 6));
    t.Free(0x3000).Context(kCallers).Stack(TwoFunctions ? Deeper(1, 2, 4) : InHelper(1, 7));
  }
  calls.Work(103);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// A function keeps the memory of a pool for good, a second one lets go of it for a while and forgets that when its wait fails. `Before`:
// right, the work before the second one fails. All are called by one function, whose caller goes on.
template <bool Before>
Trace TrimsAPool(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  SettingCalls<Setting::NewThreshold> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  calls.Give(kOtherValue, Deeper(1, 1, 1));
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(InHelper(1, 1));
  if (fails && Before) alloc.Refused();
  else t.Free(0x1000).Context(kCallers).Stack(InHelper(1, 2));
  if (!fails || !Before) {
    calls.Give(kFormerValue, Deeper(1, 2, 1));
    Step wait = t.Call(driver::CallId::StreamSynchronize).Stack(Deeper(1, 2, 2));
    if (fails) wait.Refused();
    if (run != Run::Wrong) calls.Give(kOtherValue, Deeper(1, 2, 3));
  }
  calls.Work(103);
  t.Call(driver::CallId::MemPoolDestroy).In(0, kPoolOfProgram).Context(kCallers).Stack(107);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// A thread leaves the limit, and the one that made it works with the context. `StillRuns`: right, the thread may put it back yet.
template <bool StillRuns>
Trace LeavesItInAThread(Run run) {
  constexpr std::uint32_t kWorker = 7;
  const bool fails = run != Run::FaultFree;
  Trace t;
  SettingCalls<Setting::Limit> calls{t};
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  calls.Ask(kFormerValue, InHelper(1, 1)).Thread(kWorker);
  calls.Give(kOtherValue, InHelper(1, 2)).Thread(kWorker);
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(InHelper(1, 3)).Thread(kWorker);
  if (fails) alloc.Refused();
  else t.Free(0x1000).Context(kCallers).Stack(InHelper(1, 4)).Thread(kWorker);
  if (run != Run::Wrong) calls.Give(kFormerValue, InHelper(1, 6)).Thread(kWorker);
  calls.Work(103);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  if (StillRuns) t.Event(faults::ProcessEvent::Running).In(0, kWorker);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

// Right: a function changes the flags of the primary context, and puts them back by the other call for that when it fails. The flags
// outlive its cycle.
inline Trace PutsFlagsBackOtherwise(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  SettingCalls<Setting::PrimaryFlags> calls{t};
  t.Retain(kCallers).Stack(101);
  t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(102);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  calls.Ask(kFormerValue, 103).Cycle(1);
  calls.Give(kOtherValue, 104).Cycle(1);
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(105).Cycle(1);
  if (fails) alloc.Refused();
  else t.Free(0x1000).Context(kCallers).Stack(106).Cycle(1);
  if (fails) t.Call(driver::CallId::CtxSetFlags).In(0, kFormerValue).Stack(107).Cycle(1);
  else calls.Give(kFormerValue, 108).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  t.ReleasePrimary().Context(kCallers).Stack(109);
  return t;
}

}  // namespace cuaudit::testing
