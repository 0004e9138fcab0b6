// SPDX-License-Identifier: MIT
// What a simulated world proves, from its records to the finding: the rule, both calls, the memory it is about. That the world proves
// it is shown with programs (suites/e2e).
#include "suites/support/cases/case.h"
#include "suites/support/cases/lost_waits.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::misuse_test {
namespace {

using driver::CallId;
using driver::Kind;
using driver::MisuseRule;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kMemory = 0x10000;

// Memory in use by a queued operation, and a call that collides with it.
struct Collision {
  Trace t;
  Step alloc = t.Alloc(kMemory).Stack(1);
  Step queued = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
};

void ExpectFinding(const Trace& trace, Rule rule, Kind kind, CallId where, CallId other) {
  const Judgement judgement = Judge(trace);
  EXPECT_EQ(judgement.verdict, Verdict::Misuse);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  const harness::TrialFinding& finding = judgement.findings[0];
  EXPECT_EQ(finding.rule, rule);
  EXPECT_EQ(finding.kind, kind);
  EXPECT_EQ(finding.count, 1U);
  EXPECT_EQ(finding.where.call, static_cast<std::uint16_t>(where));
  EXPECT_EQ(finding.other.call, static_cast<std::uint16_t>(other));
  EXPECT_NE(finding.where_key, finding.other_key);
  EXPECT_NE(finding.other_key, 0U);
}

CUAUDIT_CASE(FreedInUse, NamesTheFreeAndTheQueuedOperation) {
  Collision c;
  const Step free = c.t.Free(kMemory).Stack(3);
  c.t.Misuse(MisuseRule::FreedInUse, Kind::DeviceMemory, kMemory, 0x1000, free.begin(), c.queued.begin());
  ExpectFinding(c.t, Rule::FreedInUse, Kind::DeviceMemory, CallId::MemFree_v2, CallId::MemsetD8Async);
  const Judgement judgement = Judge(c.t);
  EXPECT_EQ(judgement.findings[0].acquired.stack, 1U);  // where the memory came from, although it is gone
  EXPECT_EQ(judgement.findings[0].bytes, 0x1000U);
}

CUAUDIT_CASE(UnorderedAccess, NamesBothOperations) {
  Collision c;
  const Step read = c.t.Call(CallId::MemcpyDtoHAsync_v2).In(1, kMemory).Stack(4);
  c.t.Misuse(MisuseRule::UnorderedAccess, Kind::DeviceMemory, kMemory + 0x100, 16, read.begin(), c.queued.begin());
  ExpectFinding(c.t, Rule::UnorderedAccess, Kind::DeviceMemory, CallId::MemcpyDtoHAsync_v2, CallId::MemsetD8Async);
  EXPECT_EQ(Judge(c.t).findings[0].bytes, 16U) << "those in question, not the whole allocation";
}

// The recipe for memory that a second stream reads, with its event recorded before the last read: the wait is there, and waits for too
// little.
CUAUDIT_CASE(UnorderedAccess, AnEventRecordedBeforeTheLastRead) {
  Trace t;
  t.Alloc(kMemory).Stack(1);
  t.Call(CallId::EventRecord).In(0, 0x11).In(1, 0x20).Stack(2);
  const Step read = t.Call(CallId::MemcpyDtoDAsync_v2).In(1, kMemory).Stack(3);
  t.Call(CallId::StreamWaitEvent).In(0, 0x21).In(1, 0x11).Stack(4);
  const Step reuse = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(5);
  t.Misuse(MisuseRule::UnorderedAccess, Kind::DeviceMemory, kMemory, 4096, reuse.begin(), read.begin());
  t.Free(kMemory).Stack(6);
  ExpectFinding(t, Rule::UnorderedAccess, Kind::DeviceMemory, CallId::MemsetD8Async, CallId::MemcpyDtoDAsync_v2);
}

CUAUDIT_CASE(UnorderedAccess, TwoCallsAreOneFindingInHoweverManyBuffers) {
  Trace t;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint64_t at = kMemory * (i + 1);
    t.Alloc(at).Stack(static_cast<std::uint32_t>(10 + i));
    const Step write = t.Call(CallId::MemsetD8Async).In(0, at).Stack(2);
    const Step read = t.Call(CallId::MemcpyDtoHAsync_v2).In(1, at).Stack(4);
    t.Misuse(MisuseRule::UnorderedAccess, Kind::DeviceMemory, at, 16, read.begin(), write.begin());
  }
  JournalImage run(t);
  run.Module("/prog", {1});
  for (std::uint32_t i = 0; i < 3; ++i) run.Stack(10 + i, {JournalImage::Frame(0, i)});  // three places of acquisition
  const Judgement judgement = Judge({}, run.Evidence(), false, {});
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].count, 3U);
}

CUAUDIT_CASE(UnorderedAccess, OtherPartnersAreOtherFindings) {
  Collision c;
  const Step fill = c.t.Call(CallId::MemsetD32Async).In(0, kMemory).Stack(5);
  const Step read = c.t.Call(CallId::MemcpyDtoHAsync_v2).In(1, kMemory).Stack(4);
  c.t.Misuse(MisuseRule::UnorderedAccess, Kind::DeviceMemory, kMemory, 16, read.begin(), c.queued.begin());
  c.t.Misuse(MisuseRule::UnorderedAccess, Kind::DeviceMemory, kMemory, 16, read.begin(), fill.begin());
  EXPECT_THAT(Judge(c.t).findings, SizeIs(2));
}

CUAUDIT_CASE(UnorderedAccess, ATrialIsBlamedForWhatItsRehearsalDoesNotDo) {
  const auto program = [](bool faulted) {
    Trace t;
    t.Alloc(kMemory).Stack(1);
    const Step write = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
    Step event = t.Call(CallId::EventCreate).Stack(3);
    if (faulted) event.Refused();
    const Step read = t.Call(CallId::MemcpyDtoHAsync_v2).In(1, kMemory).Stack(4);
    if (faulted) t.Misuse(MisuseRule::UnorderedAccess, Kind::DeviceMemory, kMemory, 16, read.begin(), write.begin());
    t.Free(kMemory).Stack(5);
    return t;
  };
  const Judgement judgement = Judge(program(false), program(true), 0);
  EXPECT_EQ(judgement.verdict, Verdict::Misuse);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].rule, Rule::UnorderedAccess);
}

CUAUDIT_CASE(UsedBeforeAllocated, NamesTheUseAndTheAllocation) {
  Trace t;
  const Step alloc = t.Call(CallId::MemAllocAsync).Out(0, kMemory).In(1, 4096).Stack(1);
  const Step fill = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
  t.Misuse(MisuseRule::UsedBeforeAllocated, Kind::StreamOrderedMemory, kMemory, 4096, fill.begin(), alloc.begin());
  ExpectFinding(t, Rule::UsedBeforeAllocated, Kind::StreamOrderedMemory, CallId::MemsetD8Async, CallId::MemAllocAsync);
}

CUAUDIT_CASE(DestroyedInUse, NamesTheLaunchAndTheNodesOrigin) {
  Trace t;
  t.Call(CallId::EventCreate).Out(0, 0x11).Stack(1);
  const Step node = t.Call(CallId::GraphAddEventRecordNode).In(4, 0x11).Stack(2);
  t.Call(CallId::EventDestroy_v2).In(0, 0x11).Stack(3);
  const Step launch = t.Call(CallId::GraphLaunch).In(0, 0x77).Stack(4);
  t.Misuse(MisuseRule::DestroyedInUse, Kind::Event, 0x11, 0, launch.begin(), node.begin());
  ExpectFinding(t, Rule::DestroyedInUse, Kind::Event, CallId::GraphLaunch, CallId::GraphAddEventRecordNode);
}

CUAUDIT_CASE(GraphReadsFreed, NamesTheLaunchAndTheFree) {
  Trace t;
  t.Alloc(kMemory).Stack(1);
  const Step free = t.Free(kMemory).Stack(2);
  const Step launch = t.Call(CallId::GraphLaunch).In(0, 0x77).Stack(3);
  t.Misuse(MisuseRule::GraphReadsFreed, Kind::DeviceMemory, kMemory, 64, launch.begin(), free.begin());
  ExpectFinding(t, Rule::GraphReadsFreed, Kind::DeviceMemory, CallId::GraphLaunch, CallId::MemFree_v2);
}

CUAUDIT_CASE(HostFreedInUse, NamesTheFreeAndTheCopy) {
  Trace t;
  t.Call(CallId::MemAllocHost_v2).Out(0, kMemory).In(1, 4096).Stack(1);
  const Step copy = t.Call(CallId::MemcpyHtoDAsync_v2).In(1, kMemory).Stack(2);
  const Step free = t.Call(CallId::MemFreeHost).In(0, kMemory).Stack(3);
  t.Misuse(MisuseRule::HostFreedInUse, Kind::PinnedMemory, kMemory, 4096, free.begin(), copy.begin());
  ExpectFinding(t, Rule::HostFreedInUse, Kind::PinnedMemory, CallId::MemFreeHost, CallId::MemcpyHtoDAsync_v2);
}

// One copy, two things wrong: what it reads is registered memory that is gone, and what it writes is freed before it has run.
CUAUDIT_CASE(HostFreedInUse, OneEndOfACopyWhoseOtherEndIsGone) {
  Also(Rule::DestroyedUnderUser, Kind::HostRegistration);
  Causes(2);
  Trace t;
  t.Host(faults::HostCall::Map, 0x10000, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x11000).In(1, 0x1000);
  t.Call(CallId::MemAllocHost_v2).Out(0, 0x80000).In(1, 0x1000);
  t.Host(faults::HostCall::Unmap, 0x10000, 0x4000);
  const Step copy = t.Call(CallId::MemcpyAsync).In(0, 0x80000).In(1, 0x11010).In(2, 16);
  const Step end = t.Call(CallId::MemFreeHost).In(0, 0x80000);
  t.Misuse(MisuseRule::HostFreedInUse, Kind::PinnedMemory, 0x80000, 0x1000, end.begin(), copy.begin());
  t.Call(CallId::MemHostUnregister).In(0, 0x11000);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user host_registration", "host_freed_in_use pinned_memory"));
}

// Another call was refused, and the program gave up without waiting.
CUAUDIT_CASE(HostFreedInUse, OnTheWayOutOfAnotherFailure) {
  const auto program = [](CallId refused, bool faulted) {
    Trace t;
    t.Call(CallId::MemAllocHost_v2).Out(0, kMemory).In(1, 4096).Stack(1);
    const Step copy = t.Call(CallId::MemcpyHtoDAsync_v2).In(1, kMemory).Stack(2);
    Step call = t.Call(refused).Stack(3);
    if (faulted) call.Refused();
    const Step free = t.Call(CallId::MemFreeHost).In(0, kMemory).Stack(4);
    if (faulted) t.Misuse(MisuseRule::HostFreedInUse, Kind::PinnedMemory, kMemory, 4096, free.begin(), copy.begin());
    return t;
  };
  // The event was to be recorded in a stream that has nothing to do with the copy: the world marks no refused wait.
  for (const CallId refused : {CallId::MemsetD8Async, CallId::EventRecord}) {
    const Judgement judgement = Judge(program(refused, false), program(refused, true));
    EXPECT_EQ(judgement.verdict, Verdict::Misuse);
    ASSERT_THAT(judgement.findings, SizeIs(1));
    EXPECT_EQ(judgement.findings[0].rule, Rule::HostFreedInUse);
  }
}

const words::Details kWaitFailed = {{words::Detail::WaitFailed}};

// A wait was refused, and only that wait would have put the two calls in order.
Judgement JudgeRefusedWait(MisuseRule rule, bool says_success, CallId refused = CallId::StreamSynchronize) {
  const auto program = [&](bool faulted) {
    Trace t;
    t.Alloc(kMemory).Stack(1);
    const Step first = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
    Step wait = t.Call(refused).Stack(3);
    if (faulted) wait.Refused(CUDA_ERROR_LAUNCH_FAILED);
    const Step second = t.Call(CallId::MemcpyDtoHAsync_v2).In(1, kMemory).Stack(4);
    if (faulted) t.Misuse(rule, Kind::DeviceMemory, kMemory, 16, second.begin(), first.begin()).In(5, 1);
    t.Free(kMemory).Stack(5);
    return t;
  };
  const JournalImage rehearsal(program(false));
  const JournalImage trial(program(true));
  return Judge(rehearsal.Evidence(), trial.Evidence(says_success ? 0 : 1), true, {});
}

CUAUDIT_CASE(CouldNotKnow, WhatOnlyTheWaitWouldHaveOrdered) {
  for (const MisuseRule rule :
       {MisuseRule::UnorderedAccess, MisuseRule::FreedInUse, MisuseRule::UsedBeforeAllocated, MisuseRule::HostFreedInUse}) {
    const Judgement judgement = JudgeRefusedWait(rule, false);
    EXPECT_EQ(judgement.verdict, Verdict::Pass);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_THAT(judgement.notes, SizeIs(1));
    EXPECT_EQ(judgement.notes[0].rule, Rule::CouldNotKnow);
    EXPECT_EQ(Words(judgement.notes[0].detail), Row(harness::RuleOf(rule)).title);
    EXPECT_EQ(judgement.notes[0].other.call, static_cast<std::uint16_t>(CallId::MemsetD8Async));
  }
}

// The copy was queued, and the program was told that it was not.
CUAUDIT_CASE(CouldNotKnow, WhatACallQueuedThatSaidItFailed) {
  const auto program = [](bool faulted) {
    Trace t;
    t.Call(CallId::MemAllocHost_v2).Out(0, kMemory).In(1, 4096).Stack(1);
    Step copy = t.Call(CallId::MemcpyHtoDAsync_v2).In(1, kMemory).Stack(2);
    if (faulted) copy.After(CUDA_ERROR_LAUNCH_FAILED);
    if (!faulted) t.Call(CallId::StreamSynchronize).Stack(3);
    const Step free = t.Call(CallId::MemFreeHost).In(0, kMemory).Stack(4);
    if (faulted) t.Misuse(MisuseRule::HostFreedInUse, Kind::PinnedMemory, kMemory, 4096, free.begin(), copy.begin());
    return t;
  };
  const JournalImage rehearsal(program(false));
  const JournalImage trial(program(true));
  for (const int status : {0, 1}) {
    const Judgement judgement = Judge(rehearsal.Evidence(), trial.Evidence(status), true, {});
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_THAT(judgement.notes, SizeIs(1));
    EXPECT_EQ(judgement.notes[0].rule, Rule::CouldNotKnow);
  }
}

// Who waits for a lost context is told so. Who does not, or waited before the work or after the misuse, or says that all went well, did not
// know that the work had ended.
CUAUDIT_CASE(FreedInUse, InALostContext) {
  enum class Waits { Never, BeforeTheWork, AfterTheMisuse, AndSaysSuccess, ForAnotherReason };
  const auto program = [](Waits waits, bool faulted) {
    const CUresult code = waits == Waits::ForAnotherReason ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_ILLEGAL_ADDRESS;
    Trace t;
    const auto refused = [&](CallId call) {
      Step step = t.Call(call).Stack(3);
      if (faulted) step.Refused(code);
    };
    t.Call(CallId::MemMap).In(0, kMemory).In(1, 0x1000).Stack(1);
    if (waits == Waits::BeforeTheWork) refused(CallId::CtxSynchronize);
    const Step use = t.Call(CallId::MemsetD8Async).In(0, kMemory).Stack(2);
    if (waits == Waits::Never) refused(CallId::EventRecord);
    if (waits == Waits::AndSaysSuccess || waits == Waits::ForAnotherReason) refused(CallId::CtxSynchronize);
    const Step unmap = t.Call(CallId::MemUnmap).In(0, kMemory).In(1, 0x1000).Stack(4);
    if (faulted) t.Misuse(MisuseRule::FreedInUse, Kind::Mapping, kMemory, 4096, unmap.begin(), use.begin());
    if (waits == Waits::AfterTheMisuse) refused(CallId::CtxSynchronize);
    return t;
  };
  for (const Waits waits : {Waits::Never, Waits::BeforeTheWork, Waits::AfterTheMisuse, Waits::AndSaysSuccess, Waits::ForAnotherReason}) {
    SCOPED_TRACE(static_cast<int>(waits));
    const JournalImage rehearsal(program(waits, false));
    const JournalImage trial(program(waits, true));
    const Judgement judgement = Judge(rehearsal.Evidence(), trial.Evidence(waits == Waits::AndSaysSuccess ? 0 : 1), true, {});
    ASSERT_THAT(judgement.findings, SizeIs(1));
    EXPECT_EQ(judgement.findings[0].rule, Rule::FreedInUse);
    EXPECT_EQ(Words(judgement.findings[0].detail), waits == Waits::AndSaysSuccess ? Words(kWaitFailed) : "");
  }
}

CUAUDIT_CASE(FreedInUse, WhileAnotherContextIsLost) {
  for (const LostWait wait : {LostWait::ForAnotherStream, LostWait::ForAnotherEvent, LostWait::ForAnotherContext}) {
    constexpr std::string_view kLabels[] = {"another stream", "another event", "another context"};
    const CaseRow row(kLabels[static_cast<int>(wait) - static_cast<int>(LostWait::ForAnotherStream)]);
    const Judgement judgement = JudgeLostWait(wait);
    ASSERT_THAT(judgement.findings, SizeIs(1));
    EXPECT_EQ(judgement.findings[0].rule, Rule::FreedInUse);
  }
}

CUAUDIT_CASE(UnorderedAccess, BehindAWaitThatWasRefusedAndReportedAsSuccess) {
  const Judgement judgement = JudgeRefusedWait(MisuseRule::UnorderedAccess, true);
  EXPECT_EQ(judgement.verdict, Verdict::Misuse);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].rule, Rule::UnorderedAccess);
  EXPECT_EQ(Words(judgement.findings[0].detail), Words(kWaitFailed));
}

// The stream could have been waited for without the event.
CUAUDIT_CASE(UnorderedAccess, BehindAnEventThatWasNotRecorded) {
  EXPECT_EQ(JudgeRefusedWait(MisuseRule::UnorderedAccess, false, CallId::EventRecord).verdict, Verdict::Misuse);
}

CUAUDIT_CASE(HostFreedInUse, BehindAnEventThatWasNotRecorded) {
  EXPECT_EQ(JudgeRefusedWait(MisuseRule::HostFreedInUse, false, CallId::EventRecord).verdict, Verdict::Misuse);
}

CUAUDIT_CASE(HostFreedInUse, BehindAWaitThatWasRefusedAndReportedAsSuccess) {
  EXPECT_EQ(JudgeRefusedWait(MisuseRule::HostFreedInUse, true).verdict, Verdict::Misuse);
}

CUAUDIT_CASE(UsedAfterFree, NamesTheLaunchAndTheFree) {
  Trace t;
  t.Alloc(kMemory).Stack(1);
  const Step free = t.Free(kMemory).Stack(2);
  const Step launch = t.Call(CallId::LaunchKernel).In(0, 0x77).Stack(3);
  t.Misuse(MisuseRule::UsedAfterFree, Kind::DeviceMemory, kMemory, 64, launch.begin(), free.begin());
  ExpectFinding(t, Rule::UsedAfterFree, Kind::DeviceMemory, CallId::LaunchKernel, CallId::MemFree_v2);
}

CUAUDIT_CASE(CrossContext, NamesTheOneCallThatIsWrong) {
  Trace t;
  t.CreateStream(0x10).Stack(1);
  const Step record = t.Call(CallId::EventRecord).In(0, 0x11).In(1, 0x10).Stack(2);
  t.Misuse(MisuseRule::CrossContext, Kind::Stream, 0x10, 0, record.begin());
  t.DestroyStream(0x10).Stack(3);
  const Judgement judgement = Judge(t);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].rule, Rule::CrossContext);
  EXPECT_EQ(judgement.findings[0].where.call, static_cast<std::uint16_t>(CallId::EventRecord));
  EXPECT_EQ(judgement.findings[0].acquired.stack, 1U);
  EXPECT_EQ(judgement.findings[0].other.record_kind, faults::RecordKind::Empty);
}

}  // namespace
}  // namespace cuaudit::testing::misuse_test
