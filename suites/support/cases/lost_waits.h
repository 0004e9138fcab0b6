// SPDX-License-Identifier: MIT
// lost_waits.h: a process with two contexts, one of which is lost, gives up memory that work of one context uses.
#pragma once

#include "suites/support/cases/case.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing {

// What the process waits for. It is told that the context is lost, and reports failure.
enum class LostWait {
  ForTheStream,             // of the work
  ForTheStreamFromOutside,  // the same, while the other context is current
  ForAnEvent,               // of the context of the work
  ForTheContext,            // of the work
  ForAnotherStream,         // wrong, like all that follow: it is of the other context
  ForAnotherEvent,
  ForAnotherContext,
};

inline harness::Judgement JudgeLostWait(LostWait wait) {
  using driver::CallId;
  constexpr std::uint64_t kMapped = 0x10000;
  constexpr std::uint64_t kWorks = 0xb;
  constexpr std::uint64_t kOther = 0xa;
  const auto program = [wait](bool faulted) {
    Trace t;
    std::uint64_t current = 0;
    const auto go_to = [&](std::uint64_t context) {
      t.Call(CallId::CtxSetCurrent).In(0, context).Context(current);
      current = context;
    };
    t.Call(CallId::CtxCreate_v2).Out(0, kOther).Context(0);
    t.CreateStream(0x20).Context(kOther);
    t.Call(CallId::EventCreate).Out(0, 0x21).Context(kOther);
    t.Call(CallId::CtxCreate_v2).Out(0, kWorks).Context(kOther);
    current = kWorks;
    t.CreateStream(0x10).Context(kWorks);
    t.Call(CallId::EventCreate).Out(0, 0x11).Context(kWorks);
    t.Call(CallId::MemMap).In(0, kMapped).In(1, 0x1000).Context(kWorks).Stack(1);
    const Step use = t.Call(CallId::MemsetD8Async).In(0, kMapped).In(3, 0x10).Stack(2);
    if (wait == LostWait::ForTheStreamFromOutside || wait == LostWait::ForAnotherContext) go_to(kOther);
    const bool another = wait >= LostWait::ForAnotherStream;
    Step call = wait == LostWait::ForTheContext || wait == LostWait::ForAnotherContext ? t.Call(CallId::CtxSynchronize)
                : wait == LostWait::ForAnEvent || wait == LostWait::ForAnotherEvent
                    ? t.Call(CallId::EventSynchronize).In(0, another ? 0x21 : 0x11)
                    : t.Call(CallId::StreamSynchronize).In(0, another ? 0x20 : 0x10);
    if (faulted) call.Refused(CUDA_ERROR_ILLEGAL_ADDRESS);
    if (current != kWorks) go_to(kWorks);
    const Step unmap = t.Call(CallId::MemUnmap).In(0, kMapped).In(1, 0x1000).Context(kWorks).Stack(3);
    if (faulted) t.Misuse(driver::MisuseRule::FreedInUse, driver::Kind::Mapping, kMapped, 0x1000, unmap.begin(), use.begin());
    for (const std::uint64_t event : {0x11U, 0x21U}) t.Call(CallId::EventDestroy_v2).In(0, event).Context(kWorks);
    for (const std::uint64_t stream : {0x10U, 0x20U}) t.DestroyStream(stream).Context(kWorks);
    for (const std::uint64_t context : {kWorks, kOther}) t.Call(CallId::CtxDestroy_v2).In(0, context).Context(context);
    return t;
  };
  const JournalImage rehearsal(program(false));
  const JournalImage trial(program(true));
  return Judge(rehearsal.Evidence(), trial.Evidence(1), true, {});
}

}  // namespace cuaudit::testing
