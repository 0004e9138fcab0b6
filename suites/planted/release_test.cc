// SPDX-License-Identifier: MIT
// Rules about releasing: twice, the unknown, in the wrong context, more references than held; releases that the driver declines.
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::release_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Judgement;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CUAUDIT_CASE(DoubleRelease, EveryKindReleasedTwice) {
  for (const KindCase& c : KindCases()) {
    // These have rules of their own.
    if (c.kind == Kind::PrimaryContext || c.kind == Kind::ContextStackEntry || c.kind == Kind::UserObject) continue;
    // Their names come back by ways that leave no record, so a second release proves nothing (suites/positive).
    if (c.kind == Kind::FileDescriptor || c.kind == Kind::Thread || c.kind == Kind::HostMapping) continue;
    const CaseRow row(c.kind);
    Trace t;
    c.acquire(t);
    c.release(t);
    c.release(t);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("double_release " + std::string(driver::Name(c.kind))));
  }
}

CUAUDIT_CASE(DoubleRelease, TheDriversErrorDoesNotExcuseIt) {
  Trace t;
  t.Alloc(0x1000);
  t.Free(0x1000);
  t.Free(0x1000).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("double_release device_memory"));
}

CUAUDIT_CASE(DoubleRelease, ByTheCallForAnotherSortOfMemory) {
  Trace t;
  t.Alloc(0x1000);
  t.Free(0x1000);
  t.Call(CallId::IpcCloseMemHandle).In(0, 0x1000).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("double_release device_memory"));
}

CUAUDIT_CASE(DoubleRelease, ALieAboutAnEarlierObjectExcusesNothing) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).After();
  t.CreateStream(0x10);
  t.DestroyStream(0x10);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("double_release stream"));
}

CUAUDIT_CASE(DoubleRelease, NamesTheObjectByItsAcquisition) {
  Trace t;
  t.CreateStream(0x10).Stack(7);
  t.DestroyStream(0x10);
  t.DestroyStream(0x10).Stack(8);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("double_release stream"));
  EXPECT_EQ(ledger.violations[0].where.stack, 8U);
  ASSERT_EQ(ledger.violations[0].object, 0);
  EXPECT_EQ(ledger.objects[0].acquired.stack, 7U);
}

CUAUDIT_CASE(DoubleRelease, NamesTheFirstRelease) {
  Trace t;
  t.CreateStream(0x10).Stack(7);
  t.DestroyStream(0x10).Stack(9);
  t.DestroyStream(0x10).Stack(8);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("double_release stream"));
  EXPECT_EQ(ledger.violations[0].other.stack, 9U);
}

// The handle ends with its last release, and the newest reference is released first.
CUAUDIT_CASE(DoubleRelease, OfACountedReferenceNamesTheLastRelease) {
  Trace t;
  for (const std::uint32_t stack : {1U, 2U}) t.Call(CallId::MemRetainAllocationHandle).In(0, 0x20000).In(1, 0x1000).Stack(stack);
  for (const std::uint32_t stack : {3U, 4U, 5U}) t.Call(CallId::MemRelease).In(0, 0x20000).Stack(stack);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("double_release physical_memory"));
  EXPECT_EQ(ledger.violations[0].where.stack, 5U);
  EXPECT_EQ(ledger.violations[0].other.stack, 4U);
}

// A release that is said to have failed may be tried once more with success, whosever the handle is by then. Beside it nothing is excused.
Judgement JudgeRetries(const KindCase& c, bool too_often) {
  Trace rehearsal;
  c.acquire(rehearsal);
  c.release(rehearsal);
  Trace trial;
  c.acquire(trial);
  c.release(trial);
  trial.Last().After(CUDA_ERROR_LAUNCH_FAILED);
  c.acquire(trial);
  for (int released = 0; released < (too_often ? 3 : 2); ++released) c.release(trial);
  return Judge(rehearsal, trial);
}

// The same with the answers that drivers give, in two later cycles: the release after the one that has hit the new object is declined, and
// so is the next one. All that goes wrong in the first of the cycles may come of the retry. Nothing is left for the second.
Judgement JudgeLaterCycles(const KindCase& c, bool twice) {
  const CUresult nothing_there = c.kind == Kind::PrimaryContext ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
  Trace rehearsal;
  Trace trial;
  for (int cycle = 0; cycle < 3; ++cycle) {
    for (Trace* const t : {&rehearsal, &trial}) {
      c.acquire(*t);
      c.release(*t);
    }
    if (cycle == 0) trial.Last().After(CUDA_ERROR_LAUNCH_FAILED);
    for (int again = 0; again < 2 && (cycle == 1 || (cycle == 2 && twice)); ++again) {
      c.release(trial);
      trial.Last().Fails(nothing_there);
    }
  }
  return Judge(rehearsal, trial);
}

void ExpectOneTooMany(Judgement (*judge)(const KindCase&, bool), const KindCase& c, harness::Rule rule) {
  EXPECT_THAT(judge(c, false).findings, IsEmpty());
  const Judgement judgement = judge(c, true);
  EXPECT_EQ(judgement.verdict, harness::Verdict::Misuse);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].kind, c.kind);
  EXPECT_EQ(judgement.findings[0].rule, rule);
}

CUAUDIT_CASE(DoubleRelease, MoreRetriesThanReleasesThatAreSaidToHaveFailed) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind) || c.kind == Kind::ContextStackEntry || c.kind == Kind::UserObject) continue;
    if (c.kind == Kind::PrimaryContext) continue;  // has a rule of its own
    const CaseRow row(c.kind);
    ExpectOneTooMany(JudgeRetries, c, harness::Rule::DoubleRelease);
  }
}

CUAUDIT_CASE(OverReleasedPrimary, MoreRetriesThanReleasesThatAreSaidToHaveFailed) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::PrimaryContext) ExpectOneTooMany(JudgeRetries, c, harness::Rule::OverReleasedPrimary);
  }
}

CUAUDIT_CASE(DoubleRelease, InACycleAfterTheRetryOfOneThatIsSaidToHaveFailed) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind) || c.kind == Kind::ContextStackEntry || c.kind == Kind::UserObject || c.kind == Kind::PrimaryContext) continue;
    const CaseRow row(c.kind);
    ExpectOneTooMany(JudgeLaterCycles, c, harness::Rule::DoubleRelease);
  }
}

CUAUDIT_CASE(OverReleasedPrimary, InACycleAfterTheRetryOfOneThatIsSaidToHaveFailed) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::PrimaryContext) ExpectOneTooMany(JudgeLaterCycles, c, harness::Rule::OverReleasedPrimary);
  }
}

CUAUDIT_CASE(DoubleRelease, BesideOneThatIsSaidToHaveFailed) {
  Trace rehearsal;
  Trace trial;
  for (Trace* const t : {&rehearsal, &trial}) {
    t->Alloc(0x1000);
    Step first = t->Free(0x1000);
    if (t == &trial) first.After();
    t->Alloc(0x2000);
    t->Free(0x2000);
  }
  trial.Free(0x2000).Fails(CUDA_ERROR_INVALID_VALUE);
  const Judgement judgement = Judge(rehearsal, trial);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, harness::Rule::DoubleRelease);
}

// A reference that the program was told it did not get may be given back, and no second time. A new object under the handle has none.
CUAUDIT_CASE(DoubleRelease, OfAReferenceThatIsSaidNotToBeThere) {
  for (const bool anew : {false, true}) {
    Trace t;
    t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
    t.Call(CallId::MemRetainAllocationHandle).Out(0, 0x5).After();
    if (anew) t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
    for (int released = 0; released < (anew ? 1 : 2); ++released) t.Call(CallId::MemRelease).In(0, 0x5);
    t.Call(CallId::MemRelease).In(0, 0x5).Fails(CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("double_release physical_memory")) << anew;
  }
}

CUAUDIT_CASE(UnknownHandle, TheDriverRefusesWhatNobodyMade) {
  Causes(3);  // three calls are wrong
  Trace t;
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_HANDLE);
  t.Free(0x1234).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::MemUnmap).In(0, 0x1000).In(1, 0x1000).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle stream", "unknown_handle device_memory", "unknown_handle mapping"));
}

CUAUDIT_CASE(UnknownHandle, TheDriverDiesOfIt) {
  Trace t;
  t.Call(CallId::EventDestroy_v2).In(0, 0xdead).Unfinished();
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle event"));
}

CUAUDIT_CASE(UnknownHandle, TheCLibraryDiesOfIt) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 64);
  t.Host(faults::HostCall::Deallocate, 0x5010).Unfinished();
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle host_heap"));
}

CUAUDIT_CASE(UnknownHandle, AnInteriorPointerIsNoAllocation) {
  Also(harness::Rule::Leak, driver::Kind::DeviceMemory);
  Trace t;
  t.Alloc(0x1000, 0x1000);
  t.Free(0x1800).Fails(CUDA_ERROR_INVALID_VALUE);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("unknown_handle device_memory"));
  EXPECT_THAT(Left(ledger), ElementsAre("device_memory 1"));
}

CUAUDIT_CASE(UnknownHandle, ARegistrationIsNoPinnedMemory) {
  Trace t;
  t.Call(CallId::MemHostRegister_v2).In(0, 0x1000).In(1, 0x1000);
  t.Call(CallId::MemFreeHost).In(0, 0x1000).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle pinned_memory"));
}

CUAUDIT_CASE(WrongContext, TheDriverRefusesInAForeignContext) {
  Also(harness::Rule::Leak, driver::Kind::Module);
  Trace t;
  t.Call(CallId::ModuleLoadData).Out(0, 0x30).Context(0xa);
  t.Call(CallId::ModuleUnload).In(0, 0x30).Context(0xb).Fails(CUDA_ERROR_INVALID_HANDLE);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("wrong_context module"));
  EXPECT_THAT(Left(ledger), ElementsAre("module 1"));
  EXPECT_EQ(ledger.objects[0].released, ledger.violations[0].where) << "nobody forgot to release it";
}

CUAUDIT_CASE(WrongContext, TheDriverRefusesWithoutAContext) {
  Trace t;
  t.Alloc(0x1000).Context(0xa);
  t.Free(0x1000).Context(0).Fails(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("wrong_context device_memory"));
}

CUAUDIT_CASE(OverReleasedPrimary, OneMoreThanRetained) {
  Trace t;
  t.Retain();
  t.ReleasePrimary();
  t.ReleasePrimary();
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("over_released_primary_context primary_context"));
}

CUAUDIT_CASE(OverReleasedPrimary, NeverRetained) {
  Trace t;
  t.ReleasePrimary().Fails(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("over_released_primary_context primary_context"));
}

CUAUDIT_CASE(OverReleasedPrimary, DevicesAreCountedApart) {
  Also(harness::Rule::Leak, driver::Kind::PrimaryContext);
  Trace t;
  t.Retain(0xc0, 0);
  t.Retain(0xc1, 1);
  t.ReleasePrimary(1);
  t.ReleasePrimary(1);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("over_released_primary_context primary_context"));
  EXPECT_THAT(Left(ledger), ElementsAre("primary_context 1"));
}

// One reference may be given back, of that device, and none that was not carried out.
CUAUDIT_CASE(OverReleasedPrimary, OfARetainThatIsSaidToHaveFailed) {
  Trace twice, elsewhere, refused, declined;
  twice.Retain().After();
  for (int i = 0; i < 2; ++i) twice.ReleasePrimary();
  elsewhere.Retain().After();
  elsewhere.ReleasePrimary(1);
  refused.Retain().Refused();
  refused.ReleasePrimary();
  declined.Retain().After();
  declined.ReleasePrimary().Fails(CUDA_ERROR_INVALID_CONTEXT);
  for (Trace* const t : {&twice, &elsewhere, &refused, &declined})
    EXPECT_THAT(Wrong(t->Fold()), ElementsAre("over_released_primary_context primary_context"));
}

CUAUDIT_CASE(OverReleasedReference, MoreThanTheCallerHolds) {
  Trace t;
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 2);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("over_released_reference user_object"));
}

CUAUDIT_CASE(OverReleasedReference, MovedReferencesAreTheGraphs) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("over_released_reference user_object"));
}

CUAUDIT_CASE(OverReleasedReference, TheGraphGivesBackWhatItNeverHad) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphReleaseUserObject).In(0, 0x1).In(1, 0x9).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("over_released_reference user_object"));
}

CUAUDIT_CASE(MutexFreed, ItsMemoryWentBackUndestroyed) {
  Trace t;
  t.Host(faults::HostCall::MutexInit, 0x40);
  t.Host(faults::HostCall::MutexFreed, 0x40, 0);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("mutex_freed mutex"));
  EXPECT_THAT(Left(ledger), IsEmpty());
}

CUAUDIT_CASE(MutexLocked, FreedWhileHeld) {
  Also(harness::Rule::MutexFreed, driver::Kind::Mutex);
  Trace t;
  t.Host(faults::HostCall::MutexInit, 0x40);
  t.Host(faults::HostCall::MutexFreed, 0x40, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("mutex_freed mutex", "mutex_locked mutex"));
}

// Told once, also where the program tries again when it holds it no more.
CUAUDIT_CASE(MutexLocked, DestroyedWhileHeld) {
  for (const bool again : {false, true}) {
    Trace t;
    t.Host(faults::HostCall::MutexInit, 0x40);
    t.Host(faults::HostCall::MutexDestroyedLocked, 0x40);
    if (again) t.Host(faults::HostCall::MutexDestroy, 0x40);
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Wrong(ledger), ElementsAre("mutex_locked mutex"));
    EXPECT_THAT(Left(ledger), IsEmpty());
  }
}

// Releases that the driver declines, and what is left then.

// A range is given back while something is mapped there. `unmaps`: the program gives the mapping back, and the plan refuses that.
Trace FreesARange(bool faulted, bool unmaps) {
  Trace t;
  t.Call(CallId::MemAddressReserve).Out(0, 0x9000).In(1, 0x1000).Stack(1);
  t.Call(CallId::MemMap).In(0, 0x9000).In(1, 0x1000).Stack(2);
  Step access = t.Call(CallId::MemSetAccess).In(0, 0x9000).In(1, 0x1000).Stack(3);
  if (faulted) access.Refused();
  if (!faulted || unmaps) {
    Step unmap = t.Call(CallId::MemUnmap).In(0, 0x9000).In(1, 0x1000).Stack(4);
    if (faulted) unmap.Refused();
  }
  Step free = t.Call(CallId::MemAddressFree).In(0, 0x9000).In(1, 0x1000).Stack(5);
  if (faulted) free.Fails(CUDA_ERROR_INVALID_VALUE);
  return t;
}

Judgement JudgeFreedRange(bool unmaps) { return Judge(FreesARange(false, unmaps), FreesARange(true, unmaps)); }

CUAUDIT_CASE(Leak, ItsReleaseWasDeclined) {
  const Judgement judgement = JudgeFreedRange(false);
  ASSERT_EQ(judgement.findings.size(), 2U);
  const harness::TrialFinding& range = judgement.findings[0];
  EXPECT_EQ(range.kind, Kind::AddressReservation);
  EXPECT_EQ(range.where.stack, 5U);
  EXPECT_EQ(Words(range.detail), "cuMemAddressFree answered INVALID_VALUE");
  EXPECT_EQ(judgement.findings[1].kind, Kind::Mapping);
  EXPECT_EQ(judgement.findings[1].where, harness::Site());
  EXPECT_EQ(Words(judgement.findings[1].detail), "");
}
CUAUDIT_CASE(ReleaseRefused, WhatStoodInItsWayCouldNotBeReleased) {
  const Judgement judgement = JudgeFreedRange(true);
  EXPECT_EQ(judgement.verdict, harness::Verdict::ReleaseRefused);
  EXPECT_EQ(judgement.notes.size(), 2U);
}

// Memory from before a capture, given back while the capture is open: the driver declines. `refused`: the plan kept the capture open.
harness::Ledger FreesUnderCapture(bool refused) {
  Trace t;
  t.CreateStream(0x5);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x5);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  if (refused) t.Call(CallId::StreamEndCapture).In(0, 0x5).Refused(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::MemFreeAsync).In(0, 0x7000).In(1, 0x5).Fails(CUDA_ERROR_INVALID_VALUE);
  t.DestroyStream(0x5);
  return t.Fold();
}

CUAUDIT_CASE(Leak, FreedUnderACaptureThatTheProgramForgotToEnd) {
  EXPECT_THAT(Left(FreesUnderCapture(false)), ElementsAre("stream_ordered_memory 1"));
}
CUAUDIT_CASE(ReleaseRefused, FreedUnderACaptureWhoseEndWasRefused) {
  EXPECT_THAT(Left(FreesUnderCapture(true)), ElementsAre("stream_ordered_memory 1 release_refused"));
}

}  // namespace
}  // namespace cuaudit::testing::release_test
