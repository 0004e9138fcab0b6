// SPDX-License-Identifier: MIT
// Programs that change something of their caller and are right, and handles that the program may release although a query answered them.
// The wrong twins are in suites/planted/borrowed_test.cc.
#include "suites/support/cases/borrowed.h"

#include "suites/support/cases/borrowed_lifecycles.h"
#include "suites/support/cases/families.h"

namespace cuaudit::testing::borrowed_test {
namespace {

using driver::CallId;
using ::testing::IsEmpty;

template <typename Program>
void ExpectSilent(const Program& program, bool right, std::string_view label) {
  const CaseRow row(label);
  EXPECT_THAT(JudgeProgram(program, right).findings, IsEmpty());
}

CUAUDIT_CASE(ContextStack, TheContextOfTheEntriesCouldNotBeDestroyed) {
  for (const std::uint32_t entries : {1U, 2U, 8U})
    ExpectSilent([entries](Run run) { return DestroysUnderEntries(run, entries, false); }, true, "entries");
}
CUAUDIT_CASE(ContextNotRestored, TheFunctionPutsItBack) {
  ExpectSilent(WorksElsewhere<Around::Works>, true, "caller goes on");
  ExpectSilent(WorksElsewhere<Around::IsAThread>, true, "another thread");
  ExpectSilent(WorksElsewhere<Around::Destroys>, true, "destroys the context");
  ExpectSilent(WorksElsewhereInACycle<Cycle::Ends>, true, "cycle");
  ExpectSilent(WorksElsewhereInACycle<Cycle::IsRefusedThat>, true, "the call that puts it back is refused");
}
CUAUDIT_CASE(ContextNotRestored, NobodyIsInItsWay) {
  ExpectSilent(WorksElsewhere<Around::ChoosesItself>, false, "caller chooses itself");
  ExpectSilent(WorksElsewhere<Around::PutsBackLater>, false, "caller puts it back later");
  ExpectSilent(WorksElsewhere<Around::Ends>, false, "nothing follows");
  ExpectSilent(WorksElsewhere<Around::HadNone>, false, "none was current before");
  ExpectSilent(WorksElsewhere<Around::LostItsOwn>, false, "the former context is gone");
  ExpectSilent(WorksElsewhere<Around::NeverPutsItBack>, false, "no run puts it back");
}
CUAUDIT_CASE(ContextNotRestored, ThePushThatPutsItBackIsRefused) { ExpectSilent(StaysElsewhere<Then::PushIsRefused>, false, "push"); }
CUAUDIT_CASE(ContextNotRestored, TheCallerDoesNotNeedIt) {
  ExpectSilent(StaysElsewhere<Then::OnlyPushes>, false, "works in its own");
  ExpectSilent(StaysElsewhere<Then::OnlyReleases>, false, "only releases");
  ExpectSilent(StaysElsewhere<Then::PopsIt>, false, "takes it off");
}

CUAUDIT_CASE(ContextNotRestored, EachTurnChoosesItsContext) { ExpectSilent(TakesTurns, false, "turns"); }
CUAUDIT_CASE(ContextNotRestored, ItWasToldThatNothingChanged) {
  ExpectSilent(ComesBackFromNowhere, true, "puts it back all the same");
  ExpectSilent(ComesBackFromNowhere, false, "believes it");
}
CUAUDIT_CASE(ContextNotRestored, TheWayBackMayGoElsewhere) {
  ExpectSilent(FreesElsewhere<WayBack::OfAFunction>, true, "comes back");
  ExpectSilent(FreesElsewhere<WayBack::OfMain>, false, "nobody is left");
  ExpectSilent(FreesElsewhere<WayBack::FailsOver>, false, "fails over");
  ExpectSilent(FreesElsewhere<WayBack::IsUsual>, false, "every run leaves another context");
}

CUAUDIT_CASE(CaptureLeftActive, TheFunctionEndsIt) {
  ExpectSilent(CapturesItsCallersStream<Owner::UsesIt>, true, "caller goes on");
  ExpectSilent(CapturesItsCallersStream<Owner::IsPerThread>, true, "stream of the thread");
  ExpectSilent(CapturesItsCallersStream<Owner::EndsAnyway>, false, "the driver declines the end");
  ExpectSilent(CapturesInACycle<false>, true, "cycle");
}
CUAUDIT_CASE(CaptureLeftActive, NobodyUsesTheStream) {
  ExpectSilent(CapturesItsCallersStream<Owner::DestroysIt>, false, "caller destroys it");
  ExpectSilent(CapturesItsCallersStream<Owner::EndsIt>, false, "caller ends the capture");
  ExpectSilent(CapturesItsCallersStream<Owner::EndsItsOwn>, false, "caller ends its context");
  ExpectSilent(CapturesItsCallersStream<Owner::NeverUsesIt>, false, "nobody uses it");
  ExpectSilent(CapturesInACycle<true>, false, "destroyed in its cycle");
}

void ExpectClean(const Lifecycle& lifecycle) {
  SweepOptions options = {.hows = {"refuse", "after", "persist", "burst:2"}};
  const Audit swept = Noted(Sweep(lifecycle, options));
  EXPECT_EQ(swept.outcome, AuditOutcome::Clean) << swept.Text();
  EXPECT_GT(swept.fired, 0U);
}

template <typename Program>
Lifecycle Of() {
  return Lifecycle::Of<Program>("right").WithCurrentContext();
}

CUAUDIT_CASE(ContextNotRestored, ALifecycleInOneOtherContext) { ExpectClean(Of<WorksInOtherContexts<false, 1>>()); }
CUAUDIT_CASE(ContextNotRestored, ALifecycleInSeveralContexts) { ExpectClean(Of<WorksInOtherContexts<false, 2>>()); }
CUAUDIT_CASE(ContextNotRestored, ALifecycleThatFailsOver) { ExpectClean(Of<ChoosesAContext>()); }
CUAUDIT_CASE(CaptureLeftActive, ALifecycleThatWaitsForItsStream) { ExpectClean(Of<RecordsAGraph<false, true>>()); }
CUAUDIT_CASE(CaptureLeftActive, ALifecycleThatDestroysItsStream) { ExpectClean(Of<RecordsAGraph<true, false>>()); }
CUAUDIT_CASE(LentReleased, ALifecycleThatDestroysOnlyTheParent) { ExpectClean(Of<ChangesAChildGraph<false>>()); }
CUAUDIT_CASE(LentReleased, ALifecycleThatLeavesTheDefaultPool) { ExpectClean(Of<TunesTheDefaultPool<false>>()); }

CUAUDIT_CASE(LentReleased, WhatTheProgramAcquiredItself) {
  {
    const CaseRow row("graph of a capture");
    Trace t;
    t.CreateStream(0x10);
    t.Call(CallId::StreamBeginCapture_v2).In(0, 0x10).In(1, 2);
    t.Call(CallId::StreamGetCaptureInfo_v2).In(0, 0x10).In(1, CU_STREAM_CAPTURE_STATUS_ACTIVE).Out(3, 0x90);
    t.Call(CallId::StreamEndCapture).In(0, 0x10).Out(1, 0x90);
    t.Call(CallId::GraphDestroy).In(0, 0x90);
    t.DestroyStream(0x10);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
  {
    const CaseRow row("graph, when nothing is under capture");
    Trace t;
    t.Call(CallId::StreamGetCaptureInfo_v2).In(0, 0x10).In(1, CU_STREAM_CAPTURE_STATUS_NONE).Out(3, 0x90);
    t.Call(CallId::GraphDestroy).In(0, 0x90);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
  {
    const CaseRow row("module of a function");
    Trace t;
    t.Call(CallId::ModuleLoadData).Out(0, 0x70);
    t.Call(CallId::ModuleGetFunction).Out(0, 0x71).In(1, 0x70);
    t.Call(CallId::FuncGetModule).Out(0, 0x70).In(1, 0x71);
    t.Call(CallId::ModuleUnload).In(0, 0x70);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
  {
    const CaseRow row("context that it made");
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
    t.Call(CallId::CtxGetCurrent).Out(0, 0xa);
    t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
}

CUAUDIT_CASE(LentReleased, WhatSomebodyElseMadeWithoutARecord) {
  Trace t;
  t.Call(CallId::CtxGetCurrent).Out(0, 0xa);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);  // the driver accepts it: it was no primary context
  t.Call(CallId::ModuleGetGlobal_v2).Out(0, 0x5000).Out(1, 16).In(2, 0x70);
  t.Free(0x5000);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(LentReleased, ABodyOfAConditionalNodeThatIsOnlyFilled) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x91);
  t.Call(CallId::GraphDestroy).In(0, 0x91);
  t.Call(CallId::GraphCreate).Out(0, 0x90);
  t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, 0x20).In(1, 0x90), faults::kLends, static_cast<std::uint64_t>(Kind::Graph), 0x91);
  t.Call(CallId::GraphAddEmptyNode).Out(0, 0x21).In(1, 0x91);
  t.Call(CallId::GraphDestroy).In(0, 0x90);
  t.Call(CallId::GraphCreate).Out(0, 0x91);
  t.Call(CallId::GraphDestroy).In(0, 0x91);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(LentReleased, AHandleThatMeansSomethingElseByNow) {
  Trace t;
  t.Call(CallId::GraphChildGraphNodeGetGraph).In(0, 0x20).Out(1, 0x91);
  t.Call(CallId::GraphCreate).Out(0, 0x91);
  t.Call(CallId::GraphDestroy).In(0, 0x91);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

// The program believes that the graph is its own still, or was told of a graph only by the capture's query.
CUAUDIT_CASE(LentReleased, WhatTheProgramWasToldWrongly) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x90);
  t.Call(CallId::GraphCreate).Out(0, 0x91);
  Step add = t.Call(CallId::GraphAddNode_v2).Out(0, 0x20).In(1, 0x90);
  add.After();
  t.NodeContent(add, faults::kMovedGraph, 0x91);
  t.Call(CallId::GraphDestroy).In(0, 0x91).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::GraphDestroy).In(0, 0x90);
  t.Call(CallId::DeviceGetDefaultMemPool).Out(0, 0x5000);
  t.Call(CallId::MemPoolDestroy).In(0, 0x5000).Refused();
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(DestroyedUnderUser, AnAddressThatWasAVariable) {
  constexpr std::uint64_t kVariable = 0x500000;
  const auto fill = [&](Trace& t, std::uint64_t at) { return t.Call(CallId::MemsetD8_v2).In(0, at).In(1, 1).In(2, 1); };
  const auto unloaded = [&](Trace& t) {
    t.Call(CallId::ModuleLoadData).Out(0, 0x70);
    t.Call(CallId::ModuleGetGlobal_v2).Out(0, kVariable).Out(1, 0x100).In(2, 0x70);
    fill(t, kVariable + 0xff);
    t.Call(CallId::ModuleUnload).In(0, 0x70);
  };
  {
    const CaseRow row("the driver accepts it: somebody has memory there");
    Trace t;
    unloaded(t);
    fill(t, kVariable);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
  {
    const CaseRow row("memory of the program lies there");
    Trace t;
    unloaded(t);
    t.Alloc(kVariable, 0x100);
    fill(t, kVariable).Fails(CUDA_ERROR_INVALID_VALUE);
    t.Free(kVariable);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
  {
    const CaseRow row("an address in front of it");
    Trace t;
    unloaded(t);
    fill(t, kVariable - 1).Fails(CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
  {
    const CaseRow row("the variable of another module");
    Trace t;
    unloaded(t);
    t.Call(CallId::ModuleLoadData).Out(0, 0x71);
    t.Call(CallId::ModuleGetGlobal_v2).Out(0, kVariable - 0x10).Out(1, 0x20).In(2, 0x71);
    fill(t, kVariable).Fails(CUDA_ERROR_INVALID_VALUE);
    t.Call(CallId::ModuleUnload).In(0, 0x71);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
  {
    const CaseRow row("behind it");
    Trace t;
    unloaded(t);
    fill(t, kVariable + 0x100).Fails(CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
}

CUAUDIT_CASE(UseAfterRelease, ACopyThatIsDeclinedForAnotherReason) {
  const auto copy = [](Trace& t, driver::Kind kind, std::uint64_t named) {
    const Step declined = t.Call(CallId::Memcpy2D_v2).Fails(CUDA_ERROR_INVALID_VALUE);
    t.NodeContent(declined, faults::kNames, static_cast<std::uint64_t>(kind), named);
  };
  Trace t;
  t.Alloc(0x5000);
  copy(t, driver::Kind::DeviceMemory, 0x5010);
  t.Free(0x5000);
  t.Alloc(0x5000);
  copy(t, driver::Kind::DeviceMemory, 0x5010);
  t.Free(0x5000);
  copy(t, driver::Kind::DeviceMemory, 0x7000);
  t.Call(CallId::ArrayCreate_v2).Out(0, 0x80);
  copy(t, driver::Kind::Array, 0x80);
  t.Call(CallId::ArrayDestroy).In(0, 0x80);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(UseAfterRelease, AnAddressThatWasPinned) {
  Trace t;
  t.Call(CallId::MemAllocHost_v2).Out(0, 0x9000).In(1, 0x1000);
  t.Call(CallId::MemFreeHost).In(0, 0x9000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x9010);  // the driver knows it: somebody has registered what lies there
  t.Call(CallId::MemsetD8_v2).In(0, 0x9010).Fails(CUDA_ERROR_OUT_OF_MEMORY);
  t.Call(CallId::MemAllocHost_v2).Out(0, 0x9000).In(1, 0x1000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x9010).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::MemFreeHost).In(0, 0x9000);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::borrowed_test
