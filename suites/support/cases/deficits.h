// SPDX-License-Identifier: MIT
// deficits.h: trials in which a program gives back what it did not take, and their repaired twins (`right`).
//
// Stack 105 is instruction 5 called from 1; stack 205 is the same instruction with another caller. InHelper and Deeper name deeper stacks.
// Stack 401 is in the driver, 402 and 403 are one call of the CUDA runtime, 404 is another one.
#pragma once

#include "faults/driver/effects.h"
#include "faults/journal/record.h"
#include "suites/support/cases/case.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing {

enum class Run { FaultFree, Wrong, Right };

// The function whose own calls have the stacks 101 to 120 calls another one at its instruction `at`, which calls a third one at `inner`.
inline constexpr std::uint32_t kInDriver = 401;
inline constexpr std::uint32_t kRuntimeLooks = 402;
inline constexpr std::uint32_t kRuntimeFrees = 403;
inline constexpr std::uint32_t kRuntimeWrites = 404;
inline constexpr std::uint32_t kMostCalls = 5;
constexpr std::uint32_t InHelper(std::uint32_t at, std::uint32_t place) { return 1000 * at + place; }
constexpr std::uint32_t Deeper(std::uint32_t at, std::uint32_t inner, std::uint32_t place) { return InHelper(at, place) + 100 * inner; }

inline harness::Judgement JudgeRuns(const Trace& fault_free, const Trace& trial) {
  const auto with_stacks = [](JournalImage* image) {
    image->Module("program").Module("/usr/lib/x86_64-linux-gnu/libcuda.so.1").Module("/usr/lib/libcudart.so.13");
    image->Stack(kInDriver, {JournalImage::Frame(1, 0x10), JournalImage::Frame(0, 0x1000)});
    for (const std::uint32_t stack : {kRuntimeLooks, kRuntimeFrees, kRuntimeWrites}) {
      const std::uint64_t caller = stack == kRuntimeWrites ? 0x20 : 0x10;
      image->Stack(stack, {JournalImage::Frame(2, stack), JournalImage::Frame(0, caller), JournalImage::Frame(0, 0x1000)});
    }
    for (std::uint32_t caller = 1; caller <= 3; ++caller) {
      for (std::uint32_t place = 1; place <= 20; ++place) {
        image->Stack(caller * 100 + place, {JournalImage::Frame(0, place * 16), JournalImage::Frame(0, 0x1000 * caller)});
      }
    }
    for (std::uint32_t at = 1; at <= kMostCalls; ++at) {
      for (std::uint32_t place = 1; place <= 20; ++place) {
        const std::vector<std::uint64_t> callers = {JournalImage::Frame(0, 0x10000 * at), JournalImage::Frame(0, 0x1000)};
        image->Stack(InHelper(at, place), {JournalImage::Frame(0, place * 16), callers[0], callers[1]});
        for (std::uint32_t inner = 1; inner <= kMostCalls; ++inner)
          image->Stack(Deeper(at, inner, place),
                       {JournalImage::Frame(0, place * 16), JournalImage::Frame(0, 0x100000 * inner), callers[0], callers[1]});
      }
    }
  };
  JournalImage before(fault_free);
  JournalImage after(trial);
  with_stacks(&before);
  with_stacks(&after);
  return Judge(before.Evidence(), after.Evidence(1), true, {});
}

// Judges `program(run)` for the wrong or the right program.
template <typename Program>
harness::Judgement JudgeProgram(const Program& program, bool right) {
  return JudgeRuns(program(Run::FaultFree), program(right ? Run::Right : Run::Wrong));
}

// The wrong program has one finding, a misuse: the change at one stack, seen by the call at another; 0: by none.
template <typename Program>
void ExpectNotPutBack(const Program& program, harness::Rule rule, std::uint32_t change, std::uint32_t seen) {
  const harness::Judgement judgement = JudgeProgram(program, false);
  EXPECT_EQ(judgement.verdict, harness::Verdict::Misuse);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, rule);
  EXPECT_EQ(judgement.findings[0].count, 1U);
  EXPECT_EQ(judgement.findings[0].where.stack, change);
  EXPECT_EQ(judgement.findings[0].other.stack, seen);
}

inline constexpr std::uint64_t kCallers = 0xcc;  // the caller's context

// A library retains the primary context and releases it on every path, whether it got the reference or not. Its caller holds one, too.
template <bool CallerReleases>
Trace ReleasesWhatItDidNotRetain(Run run) {
  Trace t;
  t.Retain().Stack(101);
  Step retain = t.Retain().Stack(102);
  if (run != Run::FaultFree) retain.Refused();
  if (run != Run::Right) t.ReleasePrimary().Stack(103);
  if (CallerReleases) {
    Step last = t.ReleasePrimary().Stack(109);
    if (run == Run::Wrong) last.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  return t;
}

// The same, and the failing path asks the device something in between, for which it retains and releases.
template <bool CallerReleases>
Trace LooksBeforeItReleases(Run run) {
  Trace t;
  t.Retain().Stack(101);
  Step retain = t.Retain().Stack(102);
  if (run != Run::FaultFree) {
    retain.Refused();
    t.Retain().Stack(115);
    t.ReleasePrimary().Stack(116);
  }
  if (run != Run::Right) t.ReleasePrimary().Stack(103);
  if (CallerReleases) {
    Step last = t.ReleasePrimary().Stack(109);
    if (run == Run::Wrong) last.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  return t;
}

// A wrapper releases in its destructor, which an exception reaches from elsewhere.
inline Trace ReleasesInADestructor(Run run) {
  Trace t;
  t.Retain(0xc1, 1).Stack(101);
  Step retain = t.Retain(0xc1, 1).Stack(102);
  if (run != Run::FaultFree) retain.Refused();
  if (run != Run::Right) t.ReleasePrimary(1).Stack(run == Run::FaultFree ? 103 : 203);
  return t;
}

// The failing path releases, and so does the caller of the function that failed.
inline Trace ReleasesTwice(Run run) {
  Trace t;
  t.Retain().Stack(101);
  t.Retain().Stack(102);
  Step alloc = t.Alloc(0x1000).Stack(104);
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Stack(105);
  if (run != Run::FaultFree) t.ReleasePrimary().Stack(106);
  if (run != Run::Right) t.ReleasePrimary().Stack(103);
  Step last = t.ReleasePrimary().Stack(109);
  if (run == Run::Wrong) last.Fails(CUDA_ERROR_INVALID_CONTEXT);
  return t;
}

// The push fails, and the pop takes what the caller made current: by cuCtxSetCurrent, by cuCtxCreate, or by a push of its own.
enum class Below { Set, Created, Pushed, Nothing };
template <Below below>
Trace PopsWithoutItsPush(Run run) {
  Trace t;
  const bool wrong = run == Run::Wrong;
  if (below == Below::Set) t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  if (below == Below::Created) t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  if (below == Below::Pushed) t.Push(kCallers).Context(0).Stack(101);
  const std::uint64_t before = below == Below::Nothing ? 0 : kCallers;
  Step push = t.Push(0xa).Context(before).Stack(102);
  if (run != Run::FaultFree) push.Refused();
  if (run != Run::Right) {
    Step pop = t.Pop(wrong ? before : 0xa).Context(wrong ? before : 0xa).Stack(103);
    if (wrong && below == Below::Nothing) pop.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  t.CreateStream(0x10).Context(wrong ? 0 : before).Stack(104);
  t.DestroyStream(0x10).Context(wrong ? 0 : before).Stack(105);
  if (below == Below::Created) t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(wrong ? 0 : kCallers).Stack(109);
  if (below == Below::Pushed) {
    Step last = t.Pop(wrong ? 0 : kCallers).Context(wrong ? 0 : kCallers).Stack(109);
    if (wrong) last.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  return t;
}

// The failing path pops, and so does what follows on every path. The caller's context is below.
inline Trace PopsTwice(Run run) {
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kCallers).Context(0).Stack(101);
  t.Push(0xa).Context(kCallers).Stack(102);
  Step alloc = t.Alloc(0x1000).Context(0xa).Stack(104);
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Context(0xa).Stack(105);
  if (run != Run::FaultFree) t.Pop(0xa).Context(0xa).Stack(106);
  if (run == Run::FaultFree) t.Pop(0xa).Context(0xa).Stack(103);
  if (run == Run::Wrong) t.Pop(kCallers).Context(kCallers).Stack(103);
  t.CreateStream(0x10).Context(kCallers).Stack(107);
  t.DestroyStream(0x10).Context(kCallers).Stack(108);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kCallers).Context(run == Run::Wrong ? 0 : kCallers).Stack(109);
  return t;
}

// The failing path pops a context that the program made, and destroys it some calls later. The wrong program works on in between.
inline Trace PopsWhatItMade(Run run) {
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(101);
  t.Push(0xb).Context(0xa).Stack(102);
  t.Pop(0xb).Context(0xb).Stack(103);
  Step alloc = t.Alloc(0x1000).Context(0xa).Stack(104);
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Context(0xa).Stack(105);
  if (run != Run::FaultFree) t.Pop(0xa).Context(0xa).Stack(106);
  if (run == Run::Wrong) t.CreateStream(0x10).Context(0).Stack(107).Fails(CUDA_ERROR_INVALID_CONTEXT);
  if (run == Run::Right) t.Call(driver::CallId::GetErrorString).In(0, CUDA_ERROR_OUT_OF_MEMORY).Stack(108);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xa).Context(run == Run::FaultFree ? 0xa : 0).Stack(109);
  return t;
}

// A program makes a context and calls a function that works in another one: the helpers enter() and leave() push and pop. When the work
// fails, the right program takes its own context off by leave(), too, before it destroys it. In the wrong ones that pop is an accident.
enum class Leaves {
  AndDestroys,      // in the next call
  AndTearsDown,     // in the next call, which another function makes
  AndWorksOn,       // some calls later
  AfterFailedPush,  // wrong: the work ends with leave(), though enter() failed
  ByPopAfterPush,   // wrong: the same, by a pop of its own
  Twice,            // wrong: the work ends with leave() twice
  AndNeedsIt,       // wrong: the program needs the context that it took off
};
template <Leaves how>
Trace LeavesItsOwn(Run run) {
  constexpr std::uint32_t kEnter = 11;
  constexpr std::uint32_t kLeave = 12;
  constexpr std::uint64_t kOwn = 0xa;
  constexpr bool kPushFails = how == Leaves::AfterFailedPush || how == Leaves::ByPopAfterPush;
  const bool fails = run != Run::FaultFree;
  const bool wrong = run == Run::Wrong;
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kOwn).Context(0).Stack(101);
  Step push = t.Push(0xb).Context(kOwn).Stack(Deeper(1, 1, kEnter));
  if (fails && kPushFails) push.Refused();
  if (!fails || !kPushFails) {
    Step alloc = t.Alloc(0x1000).Context(0xb).Stack(InHelper(1, 4));
    if (fails) alloc.Refused();
    if (!fails) t.Free(0x1000).Context(0xb).Stack(InHelper(1, 5));
    t.Pop(0xb).Context(0xb).Stack(Deeper(1, fails ? 3 : 2, kLeave));
  }
  bool taken = false;
  if (wrong && how != Leaves::AndNeedsIt) {
    t.Pop(kOwn).Context(kOwn).Stack(how == Leaves::ByPopAfterPush ? InHelper(1, 6) : Deeper(1, 4, kLeave));
    taken = true;
  } else if (fails) {
    t.Pop(kOwn).Context(kOwn).Stack(InHelper(2, kLeave));
    taken = true;
  }
  if (fails && how == Leaves::AndWorksOn) {
    t.Call(driver::CallId::GetErrorString).In(0, CUDA_ERROR_OUT_OF_MEMORY).Stack(108);
    t.Push(0xb).Context(0).Stack(InHelper(3, kEnter));
    t.Pop(0xb).Context(0xb).Stack(InHelper(4, kLeave));
  }
  if (wrong && how == Leaves::AndNeedsIt) t.CreateStream(0x10).Context(0).Stack(107).Fails(CUDA_ERROR_INVALID_CONTEXT);
  const std::uint32_t destroyed = how == Leaves::AndTearsDown && fails ? InHelper(5, 13) : 109;
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kOwn).Context(taken ? 0 : kOwn).Stack(destroyed);
  return t;
}

// Every run takes its own context off at once and destroys it. The failing path works in another one; the wrong one pops without its push.
inline Trace TakesItOffAtOnce(Run run) {
  Trace t;
  t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xa).Context(kCallers).Stack(102);
  t.Pop(0xa).Context(0xa).Stack(103);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xa).Context(kCallers).Stack(104);
  Step alloc = t.Alloc(0x1000).Context(kCallers).Stack(105);
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Context(kCallers).Stack(106);
  if (run == Run::Right) t.Push(0xb).Context(kCallers).Stack(107);
  if (run == Run::Right) t.Pop(0xb).Context(0xb).Stack(108);
  if (run == Run::Wrong) t.Pop(kCallers).Context(kCallers).Stack(109);
  return t;
}

// The push fails, and the program makes a context instead, which the pop of the push takes off. The wrong program has taken it off before.
inline Trace MakesAContextInstead(Run run) {
  Trace t;
  t.Call(driver::CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
  Step push = t.Push(0xa).Context(kCallers).Stack(102);
  if (run == Run::FaultFree) {
    t.Pop(0xa).Context(0xa).Stack(103);
    return t;
  }
  push.Refused();
  t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xb).Context(kCallers).Stack(104);
  if (run == Run::Wrong) t.Pop(0xb).Context(0xb).Stack(105);
  const std::uint64_t popped = run == Run::Wrong ? kCallers : 0xb;
  t.Pop(popped).Context(popped).Stack(103);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xb).Context(run == Run::Wrong ? 0 : kCallers).Stack(106);
  return t;
}

// One function makes a context, another one destroys it. One of the two also works in another context, and takes the program's own off when
// that fails.
template <bool ByItsMaker>
Trace LeavesInOneOfTwo(Run run) {
  constexpr std::uint32_t kMakes = 1;
  constexpr std::uint32_t kDestroys = 2;
  constexpr std::uint32_t kWorks = ByItsMaker ? kMakes : kDestroys;
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(InHelper(kMakes, 1));
  t.Push(0xb).Context(0xa).Stack(Deeper(kWorks, 1, 11));
  Step alloc = t.Alloc(0x1000).Context(0xb).Stack(InHelper(kWorks, 4));
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Context(0xb).Stack(InHelper(kWorks, 5));
  t.Pop(0xb).Context(0xb).Stack(Deeper(kWorks, 2, 12));
  if (run != Run::FaultFree) t.Pop(0xa).Context(0xa).Stack(Deeper(kWorks, 3, 12));
  t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xa).Context(run == Run::FaultFree ? 0xa : 0).Stack(InHelper(kDestroys, 9));
  return t;
}

// The program pushes its own context once more. The wrong one then takes that entry off by the helper, and the usual pop takes the other
// one.
inline Trace PopsWhatItsCallerPushed(Run run) {
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(101);
  t.Push(0xa).Context(0xa).Stack(102);
  t.Push(0xb).Context(0xa).Stack(InHelper(1, 11));
  Step alloc = t.Alloc(0x1000).Context(0xb).Stack(104);
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t.Free(0x1000).Context(0xb).Stack(105);
  t.Pop(0xb).Context(0xb).Stack(InHelper(2, 12));
  if (run == Run::Wrong) t.Pop(0xa).Context(0xa).Stack(InHelper(3, 12));
  t.Pop(0xa).Context(0xa).Stack(103);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xa).Context(run == Run::Wrong ? 0 : 0xa).Stack(109);
  return t;
}

// Descriptors. Records of the host probes hold the number plus one.
inline void Watch(Trace* t) { t->Host(faults::HostCall::Looking, 0); }

inline void FailsToAllocate(Trace* t, Run run) {
  Step alloc = t->Alloc(0x1000).Stack(102);
  if (run != Run::FaultFree) alloc.Refused();
  if (run == Run::FaultFree) t->Free(0x1000).Stack(103);
}

// The failing path closes the standard error stream, which the parent of the program opened.
inline Trace ClosesWhatItWasGiven(Run run) {
  Trace t;
  Watch(&t);
  FailsToAllocate(&t, run);
  if (run == Run::Wrong) t.Host(faults::HostCall::DescriptorClose, 3).Stack(105);
  return t;
}

// The failing path closes a file, and so does the code after it on every path. The number is then not open, or belongs to another file.
template <bool Reopened>
Trace ClosesTwice(Run run) {
  Trace t;
  Watch(&t);
  t.Host(faults::HostCall::DescriptorOpen, 8).Stack(107);
  FailsToAllocate(&t, run);
  t.Host(faults::HostCall::DescriptorOpen, 12).Stack(112);
  if (run != Run::FaultFree) t.Host(faults::HostCall::DescriptorClose, 8).Stack(108);
  t.Host(faults::HostCall::DescriptorClose, 12).Stack(113);
  if (Reopened) t.Host(faults::HostCall::DescriptorSocket, run == Run::FaultFree ? 9 : 8).Stack(110);
  if (run != Run::Right) {
    Step close = t.Host(faults::HostCall::DescriptorClose, 8).Stack(109);
    if (run == Run::Wrong && !Reopened) close.In(1, faults::kNotOpen);
  }
  const bool open = Reopened && run != Run::Wrong;  // the socket's owner
  if (open) t.Host(faults::HostCall::DescriptorClose, run == Run::FaultFree ? 9 : 8).Stack(111);
  return t;
}

// A child opens the numbers that its parent was given (`Inherited`) or that its parent opens later.
template <bool Inherited>
Trace ClosesBesidesAChild(Run run) {
  Trace t;
  Watch(&t);
  t.Event(faults::ProcessEvent::Fork, 200, kProcess);
  t.Host(faults::HostCall::DescriptorOpen, Inherited ? 4 : 8).Process(200).Stack(Inherited ? 106 : 107);
  t.Host(faults::HostCall::DescriptorClose, Inherited ? 4 : 8).Process(200).Stack(108);
  t.Event(faults::ProcessEvent::Exit, 200, kProcess);
  t.Host(faults::HostCall::DescriptorOpen, run == Run::FaultFree ? 8 : 9).Stack(107);
  t.Host(faults::HostCall::DescriptorSocket, run == Run::FaultFree ? 9 : 8).Stack(110);
  FailsToAllocate(&t, run);
  if (Inherited && run == Run::Wrong) t.Host(faults::HostCall::DescriptorClose, 4).Stack(105);
  const bool shared = !Inherited && run == Run::Right;  // the failing path closes the socket where the good path closes the file
  t.Host(faults::HostCall::DescriptorClose, run == Run::FaultFree || shared ? 8 : 9).Stack(108);
  t.Host(faults::HostCall::DescriptorClose, run == Run::FaultFree || shared ? 9 : 8).Stack(111);
  return t;
}

// The failing path closes the standard error stream and opens a file at once. In the wrong program a socket gets the number later.
inline Trace ReplacesAStandardStream(Run run) {
  Trace t;
  Watch(&t);
  FailsToAllocate(&t, run);
  if (run == Run::FaultFree) return t;
  t.Host(faults::HostCall::DescriptorClose, 3).Stack(104);
  if (run == Run::Wrong) {
    t.CreateStream(0x10).Stack(107);
    t.DestroyStream(0x10).Stack(108);
  }
  t.Host(run == Run::Wrong ? faults::HostCall::DescriptorSocket : faults::HostCall::DescriptorOpen, 3).Stack(105);
  t.Host(faults::HostCall::DescriptorClose, 3).Stack(106);
  return t;
}

// The failing path destroys everything that the program may have made, the last of which it did not make.
inline Trace DestroysNull(Run run, driver::CallId destroy, CUresult answer) {
  Trace t;
  FailsToAllocate(&t, run);
  if (run == Run::Wrong) {
    Step call = t.Call(destroy).In(0, 0).Stack(105);
    if (answer != CUDA_SUCCESS) call.Fails(answer);
  }
  return t;
}

}  // namespace cuaudit::testing
