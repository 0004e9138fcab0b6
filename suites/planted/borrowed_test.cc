// SPDX-License-Identifier: MIT
// What a failing path changes and does not put back, and handles that were only lent. The repaired twins are in
// suites/positive/borrowed_test.cc.
#include "suites/support/cases/borrowed.h"

#include <string>
#include <vector>

#include "suites/support/cases/borrowed_lifecycles.h"
#include "suites/support/cases/families.h"

namespace cuaudit::testing::borrowed_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Judgement;
using harness::Rule;
using ::testing::ElementsAre;

CUAUDIT_CASE(ContextNotRestored, TheCallerGoesOn) {
  ExpectNotPutBack(WorksElsewhere<Around::Works>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, OnAnotherThread) {
  ExpectNotPutBack(WorksElsewhere<Around::IsAThread>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, TheContextThatWasSetIsDestroyed) {
  ExpectNotPutBack(WorksElsewhere<Around::Destroys>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, TheWayBackFreesElsewhere) {
  ExpectNotPutBack(FreesElsewhere<WayBack::OfAFunction>, Rule::ContextNotRestored, InHelper(1, 5), 109);
}
CUAUDIT_CASE(ContextNotRestored, TheCycleEnds) { ExpectNotPutBack(WorksElsewhereInACycle<Cycle::Ends>, Rule::ContextNotRestored, 102, 0); }
CUAUDIT_CASE(ContextNotRestored, TheCycleEndsAfterARelease) {
  ExpectNotPutBack(WorksElsewhereInACycle<Cycle::Releases>, Rule::ContextNotRestored, InHelper(1, 1), 0);
}
CUAUDIT_CASE(ContextNotRestored, TheCallerWasInItsOwnForAWhile) {
  ExpectNotPutBack(StaysElsewhere<Then::PushesAndGoesOn>, Rule::ContextNotRestored, InHelper(1, 1), 109);
}
CUAUDIT_CASE(ContextNotRestored, TheCallerReleasesFirst) {
  ExpectNotPutBack(StaysElsewhere<Then::ReleasesAndGoesOn>, Rule::ContextNotRestored, InHelper(1, 1), 109);
}
CUAUDIT_CASE(ContextNotRestored, TheReleaseNeedsTheContext) {
  ExpectNotPutBack(StaysElsewhere<Then::DestroysATexture>, Rule::ContextNotRestored, InHelper(1, 1), 109);
}

// The context is right again. Only the stack is wrong.
CUAUDIT_CASE(ContextStack, TheFormerContextIsPushedOverTheOther) {
  const Judgement judgement = JudgeProgram(StaysElsewhere<Then::PushesOverIt>, false);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::ContextStack);
  EXPECT_EQ(judgement.findings[0].where.stack, InHelper(1, 6));
}

// Those of the context that could not be destroyed stay with it; the one below is the program's to pop.
CUAUDIT_CASE(ContextStack, BelowTheEntriesOfAContextThatCouldNotBeDestroyed) {
  const Judgement judgement = JudgeProgram([](Run run) { return DestroysUnderEntries(run, 1, true); }, false);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::ContextStack);
  EXPECT_EQ(judgement.findings[0].acquired.stack, 103U);
}

CUAUDIT_CASE(CaptureLeftActive, TheCallerUsesItsStream) {
  ExpectNotPutBack(CapturesItsCallersStream<Owner::UsesIt>, Rule::CaptureLeftActive, InHelper(1, 1), 106);
}
CUAUDIT_CASE(CaptureLeftActive, TheCallerOnlyAskedFirst) {
  ExpectNotPutBack(CapturesItsCallersStream<Owner::LooksAndUses>, Rule::CaptureLeftActive, InHelper(1, 1), 106);
}
CUAUDIT_CASE(CaptureLeftActive, TheStreamOfTheThread) {
  ExpectNotPutBack(CapturesItsCallersStream<Owner::IsPerThread>, Rule::CaptureLeftActive, InHelper(1, 1), 106);
}
CUAUDIT_CASE(CaptureLeftActive, AnotherContextEnds) {
  ExpectNotPutBack(CapturesItsCallersStream<Owner::EndsAnother>, Rule::CaptureLeftActive, InHelper(1, 1), 106);
}
CUAUDIT_CASE(CaptureLeftActive, TheStreamOutlivesTheCycle) { ExpectNotPutBack(CapturesInACycle<false>, Rule::CaptureLeftActive, 102, 0); }

void ExpectFound(const Lifecycle& lifecycle) {
  const Audit audit = Noted(Sweep(lifecycle));
  EXPECT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text();
}

template <typename Program>
Lifecycle Of() {
  return Lifecycle::Of<Program>("wrong").WithCurrentContext();
}

CUAUDIT_CASE(ContextNotRestored, ALifecycleInOneOtherContext) { ExpectFound(Of<WorksInOtherContexts<true, 1>>()); }
CUAUDIT_CASE(ContextNotRestored, ALifecycleInSeveralContexts) { ExpectFound(Of<WorksInOtherContexts<true, 2>>()); }
CUAUDIT_CASE(CaptureLeftActive, ALifecycleThatWaitsForItsStream) { ExpectFound(Of<RecordsAGraph<true, true>>()); }
CUAUDIT_CASE(LentReleased, ALifecycleThatDestroysTheGraphOfANode) { ExpectFound(Of<ChangesAChildGraph<true>>()); }
CUAUDIT_CASE(LentReleased, ALifecycleThatDestroysTheDefaultPool) { ExpectFound(Of<TunesTheDefaultPool<true>>()); }

// Every getter, with the call that a program might release its answer by, and the driver's answer to that.
CUAUDIT_CASE(LentReleased, EveryGetter) {
  struct Getter {
    CallId get;
    int at;
    Kind kind;
    CallId release;
    CUresult answer;
  };
  constexpr std::uint64_t kLent = 0x5000;
  const std::vector<Getter> getters = {
      {CallId::GraphChildGraphNodeGetGraph, 1, Kind::Graph, CallId::GraphDestroy, CUDA_ERROR_INVALID_VALUE},
      {CallId::StreamGetCaptureInfo_v2, 3, Kind::Graph, CallId::GraphDestroy, CUDA_SUCCESS},
      {CallId::LibraryGetModule, 0, Kind::Module, CallId::ModuleUnload, CUDA_ERROR_NOT_PERMITTED},
      {CallId::FuncGetModule, 0, Kind::Module, CallId::ModuleUnload, CUDA_SUCCESS},
      {CallId::DeviceGetDefaultMemPool, 0, Kind::MemoryPool, CallId::MemPoolDestroy, CUDA_ERROR_INVALID_VALUE},
      {CallId::ModuleGetTexRef, 0, Kind::TextureReference, CallId::TexRefDestroy, CUDA_SUCCESS},
      {CallId::CtxGetCurrent, 0, Kind::Context, CallId::CtxDestroy_v2, CUDA_ERROR_INVALID_CONTEXT},
      {CallId::StreamGetCtx, 1, Kind::Context, CallId::CtxDestroy_v2, CUDA_ERROR_INVALID_CONTEXT},
      {CallId::CtxFromGreenCtx, 0, Kind::Context, CallId::CtxDestroy_v2, CUDA_ERROR_INVALID_CONTEXT},
      {CallId::ModuleGetGlobal_v2, 0, Kind::DeviceMemory, CallId::MemFree_v2, CUDA_ERROR_INVALID_VALUE},
      {CallId::LibraryGetGlobal, 0, Kind::DeviceMemory, CallId::MemFree_v2, CUDA_ERROR_INVALID_VALUE},
      {CallId::LibraryGetManaged, 0, Kind::DeviceMemory, CallId::MemFree_v2, CUDA_ERROR_INVALID_VALUE},
      {CallId::MemHostGetDevicePointer_v2, 0, Kind::DeviceMemory, CallId::MemFree_v2, CUDA_ERROR_INVALID_VALUE},
      {CallId::DevicePrimaryCtxRetain, 0, Kind::Context, CallId::CtxDestroy_v2, CUDA_ERROR_INVALID_CONTEXT},
  };
  for (const Getter& getter : getters) {
    const CaseRow row(driver::Name(driver::BaseOf(getter.get)));
    Trace t;
    Step get = t.Call(getter.get).Out(getter.at, kLent);
    if (getter.get == CallId::StreamGetCaptureInfo_v2) get.In(1, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    Step release = t.Call(getter.release).In(0, kLent);
    if (getter.answer != CUDA_SUCCESS) release.Fails(getter.answer);
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Wrong(ledger), ElementsAre("lent_released " + std::string(driver::Name(getter.kind))));
    ASSERT_EQ(ledger.violations.size(), 1U);
    EXPECT_EQ(ledger.violations[0].other.begin, get.begin());
  }
}

CUAUDIT_CASE(LentReleased, AGraphThatWasMovedIntoANode) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x90);
  t.Call(CallId::GraphCreate).Out(0, 0x91);
  t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, 0x20).In(1, 0x90), faults::kMovedGraph, 0x91);
  t.Call(CallId::GraphDestroy).In(0, 0x91).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::GraphDestroy).In(0, 0x90);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("lent_released graph"));
}

// The bodies of a conditional node. A body may have the handle of a graph that was destroyed before.
CUAUDIT_CASE(LentReleased, ABodyOfAConditionalNode) {
  for (const bool again : {false, true}) {
    const CaseRow row(again ? "at the handle of a former graph" : "new");
    Trace t;
    t.Call(CallId::GraphCreate).Out(0, 0x90);
    if (again) {
      t.Call(CallId::GraphCreate).Out(0, 0x92);
      t.Call(CallId::GraphDestroy).In(0, 0x92);
    }
    const Step add = t.Call(CallId::GraphAddNode_v2).Out(0, 0x20).In(1, 0x90);
    for (const std::uint64_t body : {0x91U, 0x92U}) t.NodeContent(add, faults::kLends, static_cast<std::uint64_t>(Kind::Graph), body);
    t.Call(CallId::GraphAddEmptyNode).Out(0, 0x21).In(1, 0x92);
    t.Call(CallId::GraphDestroy).In(0, 0x92).Fails(CUDA_ERROR_INVALID_VALUE);
    t.Call(CallId::GraphDestroy).In(0, 0x90);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("lent_released graph"));
  }
}

// A variable of code that was unloaded, at its first byte and in the middle.
CUAUDIT_CASE(DestroyedUnderUser, AVariableOfUnloadedCode) {
  struct Getter {
    CallId load, get, unload;
    const char* kind;
  };
  const Getter getters[] = {
      {CallId::ModuleLoadData, CallId::ModuleGetGlobal_v2, CallId::ModuleUnload, "destroyed_under_user module"},
      {CallId::LibraryLoadData, CallId::LibraryGetGlobal, CallId::LibraryUnload, "destroyed_under_user library"},
      {CallId::LibraryLoadData, CallId::LibraryGetManaged, CallId::LibraryUnload, "destroyed_under_user library"},
  };
  for (const Getter& getter : getters) {
    for (const std::uint64_t at : {0x500000U, 0x5000ffU}) {
      const CaseRow row(driver::Name(driver::BaseOf(getter.get)));
      Trace t;
      t.Call(getter.load).Out(0, 0x70);
      t.Call(getter.get).Out(0, 0x500000).Out(1, 0x100).In(2, 0x70);
      t.Call(getter.unload).In(0, 0x70);
      t.Call(CallId::MemsetD8_v2).In(0, at).In(1, 1).In(2, 1).Fails(CUDA_ERROR_INVALID_VALUE);
      EXPECT_THAT(Wrong(t.Fold()), ElementsAre(getter.kind));
    }
  }
  for (const CallId use : {CallId::MemcpyHtoD_v2, CallId::MemsetD32Async, CallId::MemcpyDtoDAsync_v2}) {
    const CaseRow row(driver::Name(driver::BaseOf(use)));
    Trace t;
    t.Call(CallId::ModuleLoadData).Out(0, 0x70);
    t.Call(CallId::ModuleGetGlobal_v2).Out(0, 0x500000).Out(1, 0x100).In(2, 0x70);
    t.Call(CallId::ModuleUnload).In(0, 0x70);
    t.Call(use).In(0, 0x500010).Fails(CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("destroyed_under_user module"));
  }
}

}  // namespace
}  // namespace cuaudit::testing::borrowed_test
