// SPDX-License-Identifier: MIT
// settings.h: traces of programs whose function changes a setting for a while and leaves it so when an allocation fails, and of their
// repaired twins. setting_lifecycles.h has such programs for all of the harness.
//
// Stacks are those of deficits.h: main has 101 to 120, the functions that it calls at instructions 1 and 2 have InHelper(1, ...) and
// InHelper(2, ...).
#pragma once

#include <cuda.h>

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

// Which setting, and what tells the former value: a question, or the value that a new object has (New...).
enum class Setting {
  Limit,
  NewCacheConfig,
  Flags,
  CaptureMode,
  Threshold,
  NewThreshold,
  PoolOfDevice,
  DefaultPool,
  PrimaryFlags,
  FunctionAttribute,
  NewFunctionCache,
  KernelAttribute,
  NewWindow,
  StreamPriority,
  NewReadMostly,  // has two values
};

inline constexpr std::uint64_t kFormerValue = 0;
inline constexpr std::uint64_t kOtherValue = 5;
inline constexpr std::uint64_t kPoolOfProgram = 0x9000;
inline constexpr std::uint64_t kDefaultPool = 0x9100;
inline constexpr std::uint64_t kFunctionOfProgram = 0x8000;
inline constexpr std::uint64_t kKernelOfProgram = 0x8100;
inline constexpr std::uint64_t kLibraryOfProgram = 0x8200;
inline constexpr std::uint64_t kStreamOfProgram = 0x8300;
inline constexpr std::uint64_t kMemoryOfProgram = 0x800000;

// Calls of one setting, and one that works with it.
template <Setting setting>
struct SettingCalls {
  using CallId = driver::CallId;
  Trace& t;
  std::uint64_t former = kFormerValue;

  Step Ask(std::uint64_t value, std::uint32_t stack) {
    switch (setting) {
      case Setting::Limit:
        return t.Call(CallId::CtxGetLimit).In(1, CU_LIMIT_STACK_SIZE).Out(0, value).Stack(stack);
      case Setting::Flags:
        return t.Call(CallId::CtxGetFlags).Out(0, value).Stack(stack);
      case Setting::Threshold:
        return t.Call(CallId::MemPoolGetAttribute)
            .In(0, kPoolOfProgram)
            .In(1, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
            .In(2, 0xbeef)
            .Out(3, value)
            .Stack(stack);
      case Setting::PoolOfDevice:
        return t.Call(CallId::DeviceGetMemPool).Out(0, value).Stack(stack);
      case Setting::PrimaryFlags:
        return t.Call(CallId::DevicePrimaryCtxGetState).Out(1, value).Stack(stack);
      case Setting::FunctionAttribute:
        return t.Call(CallId::FuncGetAttribute)
            .Out(0, value == kFormerValue ? 0xffffffff : value)
            .In(1, 8)
            .In(2, kFunctionOfProgram)
            .Stack(stack);
      case Setting::KernelAttribute:
        return t.Call(CallId::KernelGetAttribute).Out(0, value).In(1, 8).In(2, kKernelOfProgram).Stack(stack);
      case Setting::StreamPriority:
        return t.Call(CallId::StreamGetAttribute)
            .In(0, kStreamOfProgram)
            .In(1, CU_LAUNCH_ATTRIBUTE_PRIORITY)
            .In(2, 0xbeef)
            .Out(3, value)
            .Stack(stack);
      case Setting::NewCacheConfig:
      case Setting::NewThreshold:
      case Setting::DefaultPool:
      case Setting::CaptureMode:
      case Setting::NewFunctionCache:
      case Setting::NewWindow:
      case Setting::NewReadMostly:
        break;
    }
    return t.Call(CallId::DeviceGetCount).Out(0, 1).Stack(stack);  // a question about something else
  }

  Step Give(std::uint64_t value, std::uint32_t stack) {
    const std::uint64_t before = former;
    former = value;
    switch (setting) {
      case Setting::Limit:
        return t.Call(CallId::CtxSetLimit).In(0, CU_LIMIT_STACK_SIZE).In(1, value).Stack(stack);
      case Setting::NewCacheConfig:
        return t.Call(CallId::CtxSetCacheConfig).In(0, value).Stack(stack);
      case Setting::Flags:
        return t.Call(CallId::CtxSetFlags).In(0, value).Stack(stack);
      case Setting::CaptureMode:
        return t.Call(CallId::ThreadExchangeStreamCaptureMode).Out(0, before).In(1, value).Stack(stack);
      case Setting::Threshold:
      case Setting::NewThreshold:
        return t.Call(CallId::MemPoolSetAttribute)
            .In(0, kPoolOfProgram)
            .In(1, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
            .In(2, 0xbeef)
            .In(3, value)
            .Stack(stack);
      case Setting::PoolOfDevice:
        return t.Call(CallId::DeviceSetMemPool).In(1, value).Stack(stack);
      case Setting::DefaultPool:  // it asks for the default one to put it back
        if (value == kFormerValue) t.Call(CallId::DeviceGetDefaultMemPool).Out(0, kDefaultPool).Stack(stack + 10);
        return t.Call(CallId::DeviceSetMemPool).In(1, value == kFormerValue ? kDefaultPool : value).Stack(stack);
      case Setting::PrimaryFlags:
        return t.Call(CallId::DevicePrimaryCtxSetFlags_v2).In(1, value).Stack(stack);
      case Setting::NewFunctionCache:
        return t.Call(CallId::FuncSetCacheConfig).In(0, kFunctionOfProgram).In(1, value).Stack(stack);
      case Setting::KernelAttribute:
        return t.Call(CallId::KernelSetAttribute).In(0, 8).In(1, value).In(2, kKernelOfProgram).Stack(stack);
      case Setting::NewWindow:
      case Setting::StreamPriority:
        return t.Call(CallId::StreamSetAttribute)
            .In(0, kStreamOfProgram)
            .In(1, setting == Setting::NewWindow ? CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW : CU_LAUNCH_ATTRIBUTE_PRIORITY)
            .In(2, 0xbeef)
            .In(3, value)
            .Stack(stack);
      case Setting::NewReadMostly:
        return t.Call(CallId::MemAdvise)
            .In(0, kMemoryOfProgram)
            .In(1, 4096)
            .In(2, value == kFormerValue ? CU_MEM_ADVISE_UNSET_READ_MOSTLY : CU_MEM_ADVISE_SET_READ_MOSTLY)
            .Stack(stack);
      case Setting::FunctionAttribute:
        break;
    }
    const std::uint64_t with_sign = value == kFormerValue ? ~std::uint64_t{0} : value;  // -1 is the default of a carveout
    return t.Call(CallId::FuncSetAttribute).In(0, kFunctionOfProgram).In(1, 8).In(2, with_sign).Stack(stack);
  }

  void Work(std::uint32_t stack) {
    switch (setting) {
      case Setting::FunctionAttribute:
      case Setting::NewFunctionCache:
        t.Call(CallId::LaunchKernel).In(0, kFunctionOfProgram).Stack(stack);
        return;
      case Setting::KernelAttribute:
        t.Call(CallId::LaunchKernel).In(0, kKernelOfProgram).Stack(stack);
        return;
      case Setting::NewWindow:
      case Setting::StreamPriority:
        t.Call(CallId::LaunchKernel).In(0, kFunctionOfProgram).In(8, kStreamOfProgram).Stack(stack);
        return;
      case Setting::NewReadMostly:
        t.Call(CallId::MemsetD8_v2).In(0, kMemoryOfProgram).Stack(stack);
        return;
      default:
        break;
    }
    Step alloc = setting == Setting::PoolOfDevice || setting == Setting::DefaultPool
                     ? t.Call(CallId::MemAllocAsync)
                     : t.Call(CallId::MemAllocFromPoolAsync).In(2, kPoolOfProgram);
    alloc.Out(0, 0x7000).In(1, 16).Context(kCallers).Stack(stack);
    t.Call(CallId::MemFreeAsync).In(0, 0x7000).Context(kCallers).Stack(stack + 1);
  }
};

// What a function's caller does once it has returned.
enum class Caller {
  GoesOn,          // works with what has the setting, and ends that
  Exits,           // right: nothing, and keeps what has the setting
  CallsAnother,    // calls a function that changes the same setting and puts back what it found
  ChoosesItself,   // right: sets a value itself, and goes on
  ChoosesTheSame,  // right: sets the value that the function left, and goes on
  PutsBackLater,   // right: puts the former value back, and exits
  OnlyEnds,        // right: only ends what has the setting
  WaitsAndEnds,    // right: the same, and waits before and fetches a result
  EndsItUsually,   // right: keeps what has the setting only when the function failed
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
  const bool works = caller == Caller::GoesOn || caller == Caller::ChoosesItself || caller == Caller::ChoosesTheSame;
  if (works || caller == Caller::CallsAnother) calls.Work(103);
  if (caller == Caller::WaitsAndEnds) {
    t.Call(driver::CallId::CtxSynchronize).Stack(110);
    t.Call(driver::CallId::StreamSynchronize).Stack(111);
    t.Call(driver::CallId::MemcpyDtoH_v2).In(1, 0x2000).Stack(112);
  }
  if (caller == Caller::PutsBackLater && calls.former != kFormerValue) calls.Give(kFormerValue, 106);
  t.Free(0x2000).Context(kCallers).Stack(109);  // it cleans up: nobody gives up
  const bool keeps = caller == Caller::Exits || caller == Caller::CallsAnother || caller == Caller::PutsBackLater;
  if (!keeps && !(caller == Caller::EndsItUsually && fails)) {
    if (setting == Setting::KernelAttribute) t.Call(driver::CallId::LibraryUnload).In(0, kLibraryOfProgram).Stack(110);
    t.Call(driver::CallId::MemPoolDestroy).In(0, kPoolOfProgram).Context(kCallers).Stack(107);
    t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(kCallers).Stack(108);
  }
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
template <bool TwoFunctions>
Trace EachChoosesItsOwn(Run run) {
  Trace t;
  SettingCalls<Setting::Limit> calls{t};
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
