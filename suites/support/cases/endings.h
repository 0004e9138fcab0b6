// SPDX-License-Identifier: MIT
// endings.h: trials of programs whose clean-up is away from the acquisition: in an exit handler, or when a pool's threads are joined.
#pragma once

#include "suites/support/journal_image.h"

namespace cuaudit::testing {

// Two streams that live as long as the process and are destroyed by an exit handler. Work in between may fail.
inline harness::Judgement CleansUpAtExit(bool right) {
  const auto program = [](bool faulted, bool whole) {
    Trace t;
    t.Retain().Stack(1);
    t.CreateStream(0x10).Stack(2);
    t.CreateStream(0x11).Stack(3);
    t.Host(faults::HostCall::Allocate, 0x5000, 64).Stack(4);
    Step work = t.Call(driver::CallId::StreamSynchronize).In(0, 0x10).Stack(5);
    if (faulted) work.Refused(CUDA_ERROR_LAUNCH_TIMEOUT);
    t.Host(faults::HostCall::Deallocate, 0x5000).Stack(6);  // main unwinds what is its own
    t.Event(faults::ProcessEvent::Exit);
    t.DestroyStream(0x10).Stack(7);
    if (whole) t.DestroyStream(0x11).Stack(8);
    if (whole) t.ReleasePrimary().Stack(9);
    return t;
  };
  const JournalImage rehearsal(program(false, true));
  const JournalImage trial(program(true, right));
  return Judge(rehearsal.Evidence(), trial.Evidence(1), true, {});
}

// Two pool threads that are joined at the end, a thread that detaches itself, and a thread that is kept for the process.
inline harness::Judgement UsesAThreadPool(bool right) {
  const auto program = [](bool faulted, bool whole) {
    Trace t;
    t.Host(faults::HostCall::ThreadCreate, 0x7000).Stack(1);  // kept
    t.Host(faults::HostCall::ThreadCreate, 0x7001).Stack(2);
    t.Host(faults::HostCall::ThreadDetachSelf, 0x7001).Stack(3);
    for (const std::uint64_t thread : {0x7002U, 0x7003U}) t.Host(faults::HostCall::ThreadCreate, thread).Stack(4);
    Step alloc = t.Alloc(0x1000).Stack(5);
    if (faulted) alloc.Refused();
    if (!faulted) t.Free(0x1000).Stack(6);
    t.Host(faults::HostCall::ThreadJoin, 0x7002).Stack(7);
    if (whole) t.Host(faults::HostCall::ThreadJoin, 0x7003).Stack(7);
    t.Event(faults::ProcessEvent::Exit);
    return t;
  };
  const JournalImage rehearsal(program(false, true));
  const JournalImage trial(program(true, right));
  return Judge(rehearsal.Evidence(), trial.Evidence(1), true, {});
}

}  // namespace cuaudit::testing
