// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>

#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::leak_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Rule;
using harness::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string One(Kind kind) { return std::string(driver::Name(kind)) + " 1"; }

TEST(EveryLeakableKind, HasAPlantedCase) {
  for (const Kind kind : LeakableKinds()) {
    const auto& cases = KindCases();
    const bool found = std::any_of(cases.begin(), cases.end(), [kind](const KindCase& c) { return c.kind == kind; });
    EXPECT_TRUE(found) << "kind '" << driver::Name(kind) << "' has no planted leak in kind_cases.cc";
  }
}

CUAUDIT_CASE(Leak, OneObjectOfEveryKindStaysAlive) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::ContextStackEntry) continue;  // its own rule
    const CaseRow row(c.kind);
    Trace t;
    c.acquire(t);
    EXPECT_THAT(Left(t.Fold()), ElementsAre(One(c.kind)));
  }
}

CUAUDIT_CASE(Leak, TheSecondOfTwoIsTheOneNamed) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::ContextStackEntry) continue;
    const CaseRow row(c.kind);
    Trace t;
    c.acquire(t);
    c.release(t);
    c.acquire(t);
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Left(ledger), ElementsAre(One(c.kind)));
    EXPECT_EQ(ledger.objects.back().generation, 1U) << driver::Name(c.kind);
  }
}

// The sweep's view: the fault-free run releases the object, the faulted one returns early.
CUAUDIT_CASE(Leak, AnEarlyReturnAfterTheFaultLosesEveryKind) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::ContextStackEntry) continue;
    const CaseRow row(c.kind);
    Trace rehearsal;
    c.acquire(rehearsal);
    rehearsal.CreateStream(0x51);
    rehearsal.DestroyStream(0x51);
    c.release(rehearsal);
    Trace trial;
    c.acquire(trial);
    trial.CreateStream(0).Refused();
    trial.CreateStream(0x52);
    trial.DestroyStream(0x52);
    const JournalImage before(rehearsal);
    const JournalImage after(trial);
    const harness::Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
    EXPECT_EQ(judgement.verdict, Verdict::Leak) << driver::Name(c.kind);
    ASSERT_EQ(judgement.findings.size(), 1U) << driver::Name(c.kind);
    EXPECT_EQ(judgement.findings[0].rule, Rule::Leak);
    EXPECT_EQ(judgement.findings[0].kind, c.kind);
    EXPECT_EQ(judgement.findings[0].count, 1U);
  }
}

CUAUDIT_CASE(Leak, EveryExtraReferenceCounts) {
  Trace t;
  t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  t.Call(CallId::MemRetainAllocationHandle).Out(0, 0x5);
  t.Call(CallId::MemRelease).In(0, 0x5);
  t.Host(faults::HostCall::Dlopen, 0x7);
  t.Host(faults::HostCall::Dlopen, 0x7);
  t.Host(faults::HostCall::Dlclose, 0x7);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 3);
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 2);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("physical_memory 1", "user_object 1", "dlopen_reference 1"));
  EXPECT_EQ(ledger.objects.back().references, 1U);
}

// A driver opens the library that the program has open, and keeps it: not a reference to take for the program's.
CUAUDIT_CASE(Leak, ALibraryIsMissedWhereItWasOpened) {
  Trace before, after;
  for (Trace* t : {&before, &after}) {
    t->Host(faults::HostCall::Dlopen, 0x7, 0xA);
    t->Host(faults::HostCall::Dlopen, 0x7, 0xD);
  }
  before.CreateStream(0x51);
  before.DestroyStream(0x51);
  before.Host(faults::HostCall::Dlclose, 0x7, 0xA);
  EXPECT_EQ(before.Fold().objects.front().state, harness::State::Released);
  after.CreateStream(0).Refused();
  after.CreateStream(0x52);
  after.DestroyStream(0x52);
  const JournalImage clean(before), failed(after);
  const harness::Judgement judgement = Judge(clean.Evidence(), failed.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Leak);
  EXPECT_EQ(judgement.findings[0].kind, Kind::DlopenReference);
}

CUAUDIT_CASE(Leak, AFailedReleaseLeavesTheObjectToTheProgram) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1"));
}

CUAUDIT_CASE(Leak, MovedReferencesLeaveTheRestWithTheCaller) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 2);
  t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("user_object 1"));
}

CUAUDIT_CASE(Leak, TheGraphTakesItsOwnReferenceWithoutMove) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, 0);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("user_object 1"));
}

CUAUDIT_CASE(Leak, PitchedMemoryCountsItsPitch) {
  Trace t;
  t.Call(CallId::MemAllocPitch_v2).Out(0, 0x1000).Out(1, 512).In(2, 100).In(3, 4).In(4, 4);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("device_memory 1"));
  EXPECT_EQ(ledger.objects.at(0).bytes, 2048U);
}

CUAUDIT_CASE(Leak, ACaptureEndsWithItsStream) {
  Trace t;
  t.CreateStream(0x5);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.DestroyStream(0x5);
  t.CreateStream(0x5);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x5);
  t.DestroyStream(0x5);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, ACaptureDiesWithTheContextOfItsStream) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.CreateStream(0x5).Context(0xa);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  t.CreateStream(0x5);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x5);
  t.DestroyStream(0x5);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 relied_on_context", "stream_ordered_memory 1"));
}

}  // namespace
}  // namespace cuaudit::testing::leak_test
