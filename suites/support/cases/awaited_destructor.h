// SPDX-License-Identifier: MIT
// awaited_destructor.h: a process that waits for the destructor of a user object when a call of its graph fails, until its deadline.
#pragma once

#include <csignal>

#include "suites/support/cases/case.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing {

enum class Awaited {
  Instantiated,  // the call under `after` instantiated the graph
  Cloned,        // cloned it
  Captured,      // ended the capture that made it
  Retained,      // took another reference of the user object
  Refused,       // wrong: the call was refused, so nothing holds the object any more
  StillHeld,     // wrong: the process has a reference of the object itself
  NotInIt,       // wrong: another graph was instantiated
  InTheDriver,   // wrong: the process is stuck in a driver call
  Unseen,        // wrong: nobody knows where it is stuck
};

// Creates a user object, gives it to a graph and destroys the graph; what is there of the graph otherwise fails or is not made.
inline Trace AwaitsDestructor(Awaited how, bool fails) {
  using driver::CallId;
  constexpr std::uint64_t kObject = 0x9;
  constexpr std::uint64_t kHolding = 0x61;
  const std::uint64_t copied = how == Awaited::NotInIt ? 0x62 : kHolding;
  Trace t;
  t.Event(faults::ProcessEvent::Start);
  t.Call(CallId::UserObjectCreate).Out(0, kObject).In(3, how == Awaited::StillHeld ? 2 : 1);
  t.Call(CallId::GraphCreate).Out(0, kHolding);
  t.Call(CallId::GraphRetainUserObject).In(0, kHolding).In(1, kObject).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  Step call = how == Awaited::Cloned     ? t.Call(CallId::GraphClone).Out(0, 0x63).In(1, copied)
              : how == Awaited::Captured ? t.Call(CallId::StreamEndCapture).In(0, 0x10).Out(1, copied)
              : how == Awaited::Retained ? t.Call(CallId::UserObjectRetain).In(0, kObject).In(1, 1)
                                         : t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x63).In(1, copied);
  if (fails && how == Awaited::Refused) call.Refused(CUDA_ERROR_INVALID_VALUE);
  if (fails && how != Awaited::Refused) call.After(CUDA_ERROR_INVALID_VALUE);
  if (!fails) return t;
  t.Call(CallId::GraphDestroy).In(0, kHolding);
  if (how == Awaited::Unseen) return t;
  const std::uint64_t wait = how == Awaited::InTheDriver ? t.Call(CallId::CtxSynchronize).Unfinished().begin() : 0;
  t.Stop(0, 0, 0, wait);
  return t;
}

inline harness::Judgement JudgeAwaiting(Awaited how) {
  const JournalImage rehearsal(AwaitsDestructor(how, false));
  const JournalImage trial(AwaitsDestructor(how, true));
  return Judge(rehearsal.Evidence(), trial.Evidence(0, SIGKILL, true), true, {});
}

}  // namespace cuaudit::testing
