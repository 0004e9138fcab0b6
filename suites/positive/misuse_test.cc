// SPDX-License-Identifier: MIT
// Proofs of misuse that are nobody's finding: what the rehearsal does at the same two places as often, and records that prove nothing.
// That correct programs give no cause for a proof is shown with programs (suites/e2e).
#include "suites/support/cases/case.h"
#include "suites/support/cases/lost_waits.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::misuse_test {
namespace {

using driver::CallId;
using driver::Kind;
using driver::MisuseRule;
using harness::Judgement;
using ::testing::IsEmpty;

constexpr std::uint64_t kMemory = 0x10000;

// A program that has been wrong all along: `times` at the same two calls. An unrelated event is refused in its trial.
Trace AlwaysWrong(MisuseRule rule, int times, bool faulted) {
  Trace t;
  t.Alloc(kMemory).Stack(1);
  for (int i = 0; i < times; ++i) {
    const Step first = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
    const Step second = t.Call(CallId::MemcpyDtoHAsync_v2).In(1, kMemory).Stack(3);
    t.Misuse(rule, Kind::DeviceMemory, kMemory, 16, second.begin(), first.begin());
  }
  Step event = t.Call(CallId::EventCreate).Stack(4);
  if (faulted) event.Refused();
  t.Free(kMemory).Stack(5);
  if (!faulted) t.Call(CallId::EventDestroy_v2).Stack(6);
  return t;
}

void ExpectNoFindingOfTheTrial(MisuseRule rule) {
  const JournalImage rehearsal(AlwaysWrong(rule, 2, false));
  for (const int times : {1, 2}) {
    const JournalImage trial(AlwaysWrong(rule, times, true));
    EXPECT_THAT(Judge(rehearsal.Evidence(), trial.Evidence(1), true, {}).findings, IsEmpty()) << times;
  }
  // The clean run itself is not swept clean.
  const Aside aside;
  EXPECT_EQ(Judge({}, rehearsal.Evidence(), false, {}).findings.size(), 1U);
}

CUAUDIT_CASE(FreedInUse, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::FreedInUse); }
CUAUDIT_CASE(UnorderedAccess, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::UnorderedAccess); }
CUAUDIT_CASE(UsedBeforeAllocated, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::UsedBeforeAllocated); }
CUAUDIT_CASE(DestroyedInUse, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::DestroyedInUse); }
CUAUDIT_CASE(GraphReadsFreed, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::GraphReadsFreed); }
CUAUDIT_CASE(HostFreedInUse, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::HostFreedInUse); }
CUAUDIT_CASE(UsedAfterFree, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::UsedAfterFree); }
CUAUDIT_CASE(CrossContext, TheRehearsalDoesItToo) { ExpectNoFindingOfTheTrial(MisuseRule::CrossContext); }

// The program waited, as well as it was let.
CUAUDIT_CASE(HostFreedInUse, BehindAWaitThatWasRefused) {
  const auto program = [](CallId refused, bool faulted) {
    Trace t;
    t.Call(CallId::MemAllocHost_v2).Out(0, kMemory).In(1, 4096).Stack(1);
    const Step copy = t.Call(CallId::MemcpyHtoDAsync_v2).In(1, kMemory).Stack(2);
    Step call = t.Call(refused).Stack(3);
    if (faulted) call.Refused();
    const Step free = t.Call(CallId::MemFreeHost).In(0, kMemory).Stack(4);
    // The world says which refused call would have helped.
    if (faulted) t.Misuse(MisuseRule::HostFreedInUse, Kind::PinnedMemory, kMemory, 4096, free.begin(), copy.begin()).In(5, 1);
    return t;
  };
  for (const CallId wait : {CallId::StreamSynchronize, CallId::CtxSynchronize, CallId::EventSynchronize}) {
    EXPECT_THAT(Judge(program(wait, false), program(wait, true)).findings, IsEmpty());
  }
}

// The context is lost, its work has ended, and every wait says so. An unmapping needs no context, so it is still carried out.
CUAUDIT_CASE(FreedInUse, AWaitThatSaysThatTheContextIsLost) {
  for (const CallId wait : {CallId::StreamSynchronize, CallId::CtxSynchronize, CallId::EventSynchronize, CallId::EventQuery}) {
    const auto program = [&](bool faulted) {
      Trace t;
      t.Call(CallId::MemMap).In(0, kMemory).In(1, 0x1000).Stack(1);
      const Step use = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
      Step call = t.Call(wait).Stack(3);
      if (faulted) call.Refused(CUDA_ERROR_ILLEGAL_ADDRESS);
      const Step unmap = t.Call(CallId::MemUnmap).In(0, kMemory).In(1, 0x1000).Stack(4);
      if (faulted) t.Misuse(MisuseRule::FreedInUse, Kind::Mapping, kMemory, 4096, unmap.begin(), use.begin());
      return t;
    };
    EXPECT_THAT(Judge(program(false), program(true)).findings, IsEmpty());
  }
}

CUAUDIT_CASE(FreedInUse, AWaitThatSaysThatItsOwnContextIsLost) {
  for (const LostWait wait : {LostWait::ForTheStream, LostWait::ForTheStreamFromOutside, LostWait::ForAnEvent, LostWait::ForTheContext}) {
    constexpr std::string_view kLabels[] = {"its stream", "its stream from outside", "its event", "its context"};
    const CaseRow row(kLabels[static_cast<int>(wait)]);
    EXPECT_THAT(JudgeLostWait(wait).findings, IsEmpty());
  }
}

// Another wait has put the calls in order, or the refused wait was tried again.
CUAUDIT_CASE(CouldNotKnow, AWaitThatWasCarriedOut) {
  const auto program = [](bool faulted) {
    Trace t;
    t.Alloc(kMemory).Stack(1);
    t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
    Step wait = t.Call(CallId::StreamSynchronize).Stack(3);
    if (faulted) wait.Refused(CUDA_ERROR_LAUNCH_FAILED);
    if (faulted) t.Call(CallId::CtxSynchronize).Stack(4);
    t.Free(kMemory).Stack(5);
    return t;
  };
  const Judgement judgement = Judge(program(false), program(true));
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_THAT(judgement.notes, IsEmpty());
}

// The same calls as in the planted case, with the event behind the read: there is nothing to tell.
CUAUDIT_CASE(UnorderedAccess, AnEventRecordedBehindTheLastRead) {
  Trace t;
  t.Alloc(kMemory).Stack(1);
  t.Call(CallId::MemcpyDtoDAsync_v2).In(1, kMemory).Stack(3);
  t.Call(CallId::EventRecord).In(0, 0x11).In(1, 0x20).Stack(2);
  t.Call(CallId::StreamWaitEvent).In(0, 0x21).In(1, 0x11).Stack(4);
  t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(5);
  t.Free(kMemory).Stack(6);
  EXPECT_THAT(Judge(t).findings, IsEmpty());
}

CUAUDIT_CASE(UnorderedAccess, ARuleOrKindThatNobodyKnowsProvesNothing) {
  Trace t;
  t.Misuse(static_cast<MisuseRule>(200), Kind::DeviceMemory, kMemory, 16, 1);
  t.Misuse(MisuseRule::UnorderedAccess, static_cast<Kind>(driver::kKindCount), kMemory, 16, 1);
  EXPECT_THAT(t.Fold().violations, IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::misuse_test
