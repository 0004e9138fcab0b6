// SPDX-License-Identifier: MIT
// What contexts and processes are to the books: the stack of contexts, green contexts, children.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/trace.h"

namespace cuaudit::testing::contexts_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ContextStack, APopThatFailedTakesNothing) {
  Trace t;
  t.Push(0xa);
  t.Pop(0xa).Fails(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the entry is still there at the end";
  t.Pop(0xa);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

// A green context that nobody has viewed has no context to be current.
TEST(PeerAccess, WithoutAContextIsNotTheGreenContexts) {
  Trace t;
  t.Retain(0xa, 0);
  t.Call(CallId::GreenCtxCreate).Out(0, 0x60).In(2, 0).Context(0xa);
  t.Call(CallId::CtxEnablePeerAccess).In(0, 0xb).Context(0);
  EXPECT_EQ(t.Fold().objects.back().kind, driver::Kind::PeerAccess);
  EXPECT_EQ(t.Fold().objects.back().context, 0U);
}

// A thread meant the context that the plan refused, until it chooses or makes another one, or none, or until the next cycle.
TEST(PeerAccess, IsMeantInTheContextThatThePlanRefused) {
  enum class Then { Nothing, IsRefused, Set, SetNone, Push, Create, Cycle, AnotherThread };
  for (const Then then :
       {Then::Nothing, Then::IsRefused, Then::Set, Then::SetNone, Then::Push, Then::Create, Then::Cycle, Then::AnotherThread}) {
    Trace t;
    t.Call(CallId::CtxEnablePeerAccess).In(0, 0xb).Context(0xa);
    t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0xb).Refused();
    if (then == Then::Set) t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0xb);
    if (then == Then::SetNone) t.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xb);
    if (then == Then::Create) {
      t.Call(CallId::CtxCreate_v2).Out(0, 0xd).Context(0xb);
      t.Call(CallId::CtxDestroy_v2).In(0, 0xd).Context(0xd);
    }
    if (then == Then::Cycle) t.Mark(faults::MarkKind::CycleBegin).Cycle(2);
    if (then == Then::Push) {
      t.Push(0xc).Context(0xb);
      t.Pop(0xc).Context(0xc);
    }
    Step disable = t.Call(CallId::CtxDisablePeerAccess).In(0, 0xb).Context(0xc).Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    if (then == Then::IsRefused) disable.Refused();
    if (then == Then::AnotherThread) disable.Thread(kThread + 1);
    const bool meant = then == Then::Nothing || then == Then::IsRefused;
    EXPECT_THAT(Left(t.Fold()), ElementsAre(meant ? "peer_access 1 release_refused" : "peer_access 1")) << static_cast<int>(then);
  }
}

TEST(ContextStack, APopFromADriverThatIsTornDownTakesNothing) {
  Trace t;
  t.Pop(0xa).Fails(CUDA_ERROR_DEINITIALIZED);
  t.Push(0xb);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the push put back nothing";
}

// A caller pushes, and a function makes a context of its own and destroys it. The caller's pop takes what the plan left on the stack.
class NestedContext : public ::testing::Test {
 protected:
  NestedContext() {
    t_.Push(0xa);
    t_.Call(CallId::CtxCreate_v2).Out(0, 0xb);
  }
  Step Destroy() { return t_.Call(CallId::CtxDestroy_v2).In(0, 0xb); }
  Trace t_;
};

TEST_F(NestedContext, ItsRefusedDestructionLeavesTheEntryBelow) {
  Destroy().Refused();
  t_.Pop(0xb);
  EXPECT_THAT(Wrong(t_.Fold()), IsEmpty());
  EXPECT_THAT(Left(t_.Fold()), ElementsAre("context 1 release_refused", "context_stack_entry 1 release_refused"));
}

TEST_F(NestedContext, ItsRefusedPopLeavesTheEntryBelow) {
  t_.Pop(0xb).Refused();
  t_.Pop(0xb);
  EXPECT_THAT(Wrong(t_.Fold()), IsEmpty());
  EXPECT_THAT(Left(t_.Fold()), ElementsAre("context 1", "context_stack_entry 1 release_refused"));
}

TEST_F(NestedContext, ASecondDestructionLeavesNothingToTheCaller) {
  Destroy().Refused();
  Destroy();
  EXPECT_THAT(Wrong(t_.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the caller has not popped yet";
  t_.Pop(0xa);
  EXPECT_THAT(Wrong(t_.Fold()), IsEmpty());
  EXPECT_THAT(Left(t_.Fold()), IsEmpty());
}

TEST_F(NestedContext, ItsDestructionSettlesItsRefusedPop) {
  t_.Pop(0xb).Refused();
  Destroy();
  EXPECT_THAT(Wrong(t_.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the caller has not popped yet";
}

TEST(ContextStack, TheDestructionOfAPushedContextSettlesItsRefusedPop) {
  Trace t;
  t.Push(0xa);
  t.Call(CallId::CtxCreate_v2).Out(0, 0xb);
  t.Pop(0xb);
  t.Push(0xb);
  t.Pop(0xb).Refused();
  t.Call(CallId::CtxDestroy_v2).In(0, 0xb);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the caller has not popped yet";
}

TEST(ContextStack, EntriesStayWithTheContextThatCouldNotBeDestroyed) {
  for (const bool another : {false, true}) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xb);
    if (another) t.Push(0xa);
    for (int entries = 0; entries < 3; ++entries) t.Push(0xb);
    t.Call(CallId::CtxDestroy_v2).In(0, 0xb).Refused();
    EXPECT_EQ(Wrong(t.Fold()).size(), another ? 1U : 0U) << "that of another context would not have gone with it";
    EXPECT_THAT(Left(t.Fold()), ::testing::Contains("context_stack_entry 3 release_refused"));
  }
}

TEST(ContextStack, APopTakesWhatADeniedPushPutThere) {
  Trace t;
  t.Push(0xa);
  t.Pop(0xa);
  t.Push(0xb).After();
  t.Pop(0xb);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  t.Pop(0xc);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "only one entry was denied";
}

constexpr std::uint64_t kGreen = 0x6e;
constexpr std::uint64_t kView = 0x6f;
constexpr std::uint64_t kStream = 0x51;
constexpr std::uint64_t kPlain = 0x52;
constexpr std::uint64_t kMemory = 0x1000;
constexpr std::uint64_t kLegacy = 1;  // CU_STREAM_LEGACY

void CreateGreen(Trace& t) { t.Call(CallId::GreenCtxCreate).Out(0, kGreen).In(1, 0x77).In(2, 0).In(3, 1); }
void DestroyGreen(Trace& t) { t.Call(CallId::GreenCtxDestroy).In(0, kGreen); }

Step AllocAsync(Trace& t, std::uint64_t address, std::uint64_t stream) {
  return t.Call(CallId::MemAllocAsync).Out(0, address).In(1, 0x100).In(2, stream);
}

#if CUDA_VERSION >= 12050
TEST(GreenContexts, TakeTheirStreamsWithThem) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, kStream).In(1, kGreen).In(2, 1).In(3, 0);
  t.CreateStream(kPlain);
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1", "stream 1 orphaned"));
}

TEST(GreenContexts, LeaveNothingWhenTheirStreamsWentFirst) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, kStream).In(1, kGreen).In(2, 1).In(3, 0);
  t.DestroyStream(kStream);
  DestroyGreen(t);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, LeaveMemoryOfTheirStreamsToItsPool) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, kStream).In(1, kGreen).In(2, 1).In(3, 0);
  AllocAsync(t, kMemory, kStream).Context(0);
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1 orphaned", "stream_ordered_memory 1"));
  t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1 orphaned", "stream_ordered_memory 1"));
}
#endif

TEST(GreenContexts, LeaveMemoryThatWasTakenWhileTheyWereCurrent) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Alloc(kMemory).Context(kView);
  t.CreateStream(kStream).Context(kView);
  DestroyGreen(t);
  t.Free(kMemory);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1 orphaned"));
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, KeepThePrimaryContextsObjectsAlive) {
  Trace t;
  t.Retain();
  t.CreateStream(kPlain);
  CreateGreen(t);
  t.ReleasePrimary();
  t.DestroyStream(kPlain);
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, TheLastOfThemEndsThePrimaryContext) {
  Trace t;
  t.Retain();
  t.CreateStream(kPlain);
  CreateGreen(t);
  t.ReleasePrimary();
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
}

// As H200s have it (contract questions green_stream.standard_*).
TEST(GreenContexts, HaveOneStandardStreamUnderBothItsNamesAndACaptureTakesIt) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Push(kView);
  t.Push(kView).Thread(kThread + 1);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0);
  AllocAsync(t, 0x1000, kLegacy);
  AllocAsync(t, 0x2000, 0);
  AllocAsync(t, 0x3000, kLegacy).Thread(kThread + 1);
  t.Pop(kView).Thread(kThread + 1);
  t.Pop(kView);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "green_context 1"));
  AllocAsync(t, 0x4000, 0);  // on the primary context's
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream_ordered_memory 1", "green_context 1"));
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, EndTheCaptureOfTheirStandardStream) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Push(kView);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0);
  t.Pop(kView);
  DestroyGreen(t);
  CreateGreen(t);  // at the same place
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Push(kView);
  AllocAsync(t, 0x1000, 0);
  t.Pop(kView);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream_ordered_memory 1", "green_context 1"));
}

using faults::ProcessEvent;
using harness::Ledger;

constexpr std::uint32_t kChild = 200;

TEST(Processes, HaveAccountsOfTheirOwn) {
  Trace t;
  t.CreateStream(0x10);
  t.CreateStream(0x10).Process(kChild);
  t.DestroyStream(0x10).Process(kChild);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_EQ(ledger.objects.at(0).state, harness::State::Live);
  EXPECT_EQ(ledger.objects.at(1).state, harness::State::Released);
}

TEST(Processes, TheChildNeverLeaksWhatItInherited) {
  Trace t;
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.Event(ProcessEvent::Exit, kChild).Process(kChild);
  t.DestroyStream(0x10);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}

TEST(Processes, TheChildLeaksWhatItMade) {
  Trace t;
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x10).Process(kChild);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
  EXPECT_EQ(ledger.objects.at(0).pid, kChild);
}

TEST(Processes, WhatTheParentMadeAfterTheForkIsUnknownToTheChild) {
  Trace t;
  t.CreateStream(0x11);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Process(kChild).Fails(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle stream"));
}

TEST(Processes, GrandchildrenInheritToo) {
  Trace t;
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.Event(ProcessEvent::Fork, 300, kChild);
  t.DestroyStream(0x10).Process(300).Fails(CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(Processes, GrandchildrenInheritOnlyWhatWasThereAtTheFirstFork) {
  Trace t;
  t.CreateStream(0x11);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, 300, kChild);
  t.DestroyStream(0x10).Process(300).Fails(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle stream"));
}

TEST(Processes, ANewImageUnderTheSameNumberStartsEmpty) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Start);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_HANDLE);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("unknown_handle stream"));
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
}

TEST(Processes, ANewImageHasNothingThatTheOldOneHadOfTheHost) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Host(faults::HostCall::Map, 0x5000, 4096);
  t.Host(faults::HostCall::ThreadCreate, 0x6000);
  t.Event(ProcessEvent::Start);
  t.Host(faults::HostCall::DescriptorOpen, 0x7);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("file_descriptor 1"));
}

// The probes come up in each image; a forked child goes on with its parent's.
TEST(Processes, ImagesThatCallTheDriverUnseenByTheHostProbesAreCounted) {
  Trace t;
  const auto looks = [&](std::uint32_t pid) { t.Host(faults::HostCall::Looking, 0).Process(pid); };
  t.Event(ProcessEvent::Start);
  looks(kProcess);
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x11).Process(kChild);
  t.Event(ProcessEvent::Start, 300);
  looks(300);  // and calls nothing
  EXPECT_EQ(t.Fold().host_unseen, 0U);
  t.Event(ProcessEvent::Start, 301);  // calls nothing, and nobody looks
  EXPECT_EQ(t.Fold().host_unseen, 0U);
  t.Event(ProcessEvent::Start, 300);  // exec, without our preload
  t.CreateStream(0x12).Process(300);
  EXPECT_EQ(t.Fold().host_unseen, 1U);
}

TEST(Processes, WhatTheRuntimeReleasesAtExitOrphansNothing) {
  for (const bool by_runtime : {false, true}) {
    Trace t;
    t.Retain();
    t.CreateStream(0x10);
    t.Event(ProcessEvent::Exit);
    if (by_runtime) t.Event(ProcessEvent::RuntimeExit);
    t.ReleasePrimary().Fails(CUDA_ERROR_DEINITIALIZED);
    const Ledger ledger = t.Fold();
    EXPECT_EQ(ledger.objects[0].state, harness::State::Released);
    EXPECT_EQ(ledger.objects[1].state, by_runtime ? harness::State::Live : harness::State::Orphaned);
  }
}

TEST(Processes, OnlyTheFirstOnesExitCounts) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.Event(ProcessEvent::Exit, kChild);
  EXPECT_EQ(t.Fold().facts.processes.front().exit, 0U);
  t.Event(ProcessEvent::Exit);
  EXPECT_NE(t.Fold().facts.processes.front().exit, 0U);
}

}  // namespace
}  // namespace cuaudit::testing::contexts_test
