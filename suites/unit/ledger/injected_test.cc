// SPDX-License-Identifier: MIT
// What faults do to the books: refused, after, sticky, for each sort of call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/ledger/kept_contexts.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::injected_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Ledger;
using harness::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// The lifecycle of every kind whose release is a driver call, with the last record changed.
std::vector<faults::Record> WithLast(const KindCase& c, std::uint16_t flags, CUresult result) {
  Trace t;
  c.acquire(t);
  c.release(t);
  std::vector<faults::Record> records = t.Records();
  if (records.back().kind != faults::RecordKind::Call) return {};
  records.back().flags = flags;
  records.back().result = result;
  return records;
}

TEST(InjectedFault, ARefusedReleaseOfAnyKindIsMarked) {
  for (const KindCase& c : KindCases()) {
    const std::vector<faults::Record> records = WithLast(c, faults::kInjected, CUDA_ERROR_INVALID_VALUE);
    if (records.empty()) continue;
    const Ledger ledger = harness::Fold(records);
    EXPECT_THAT(Left(ledger), ElementsAre(std::string(driver::Name(c.kind)) + " 1 release_refused"));
    EXPECT_THAT(Wrong(ledger), IsEmpty()) << driver::Name(c.kind);
  }
}

TEST(InjectedFault, AReleaseThatFailedAfterwardsIsDone) {
  for (const KindCase& c : KindCases()) {
    const std::vector<faults::Record> records = WithLast(c, faults::kInjected | faults::kForwarded, CUDA_ERROR_LAUNCH_FAILED);
    if (records.empty()) continue;
    const Ledger ledger = harness::Fold(records);
    EXPECT_THAT(Left(ledger), IsEmpty()) << driver::Name(c.kind);
    EXPECT_THAT(Wrong(ledger), IsEmpty()) << driver::Name(c.kind);
  }
}

TEST(InjectedFault, AnAcquisitionOfAnyKindThatFailedAfterwardsIsNotTheProgramsLeak) {
  for (const KindCase& c : KindCases()) {
    Trace t;
    c.acquire(t);
    std::vector<faults::Record> records = t.Records();
    if (records.back().kind != faults::RecordKind::Call) continue;
    records.back().flags = faults::kInjected | faults::kForwarded;
    records.back().result = CUDA_ERROR_LAUNCH_FAILED;
    const Ledger ledger = harness::Fold(records);
    EXPECT_THAT(ledger.objects, IsEmpty()) << driver::Name(c.kind);
    EXPECT_THAT(Wrong(ledger), IsEmpty()) << driver::Name(c.kind);
  }
}

// The program owes nothing for a context that it was told it did not get; what it took there goes with it all the same.
TEST(InjectedFault, AContextThatNobodyOwnsTakesItsObjectsAlong) {
  constexpr std::uint64_t kDenied = 0xd0;
  Trace t;
  t.Call(CallId::CtxCreate_v4).Out(0, kDenied).After();
  t.CreateStream(0x10).Context(kDenied);
  t.CreateStream(0x11);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 2"));
  t.Call(CallId::CtxDestroy_v2).In(0, kDenied).Context(kDenied);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1", "stream 1 orphaned"));
  t.DestroyStream(0x11);
  t.Call(CallId::CtxDestroy_v2).In(0, kContext).Refused(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
}

TEST(InjectedFault, AContextLostForRealRefusesReleasesToo) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 release_refused"));
}

// Such a close is declined in any run: what it leaves is not the plan's, and no other context would have helped.
TEST(InjectedFault, AFailedReleaseOfAnotherSortOfMemoryIsNoTryOfTheRightOne) {
  constexpr std::uint64_t kMemory = 0x10000;
  const auto run = [](bool opened, auto fails) {
    Trace t;
    t.CreateStream(0x10);
    t.DestroyStream(0x10).Refused(CUDA_ERROR_INVALID_HANDLE);
    if (opened) {
      t.Call(CallId::IpcOpenMemHandle_v2).Out(0, kMemory);
    } else {
      t.Alloc(kMemory, 64);
    }
    fails(opened ? t.Free(kMemory) : t.Call(CallId::IpcCloseMemHandle).In(0, kMemory));
    return t.Fold();
  };
  for (const bool opened : {false, true}) {
    const std::string left = opened ? "ipc_memory 1" : "device_memory 1";
    const auto expect_alive = [&](auto fails) {
      const Ledger ledger = run(opened, fails);
      EXPECT_THAT(Left(ledger), UnorderedElementsAre("stream 1 release_refused", left));
      EXPECT_THAT(Wrong(ledger), IsEmpty());
    };
    expect_alive([](Step close) { close.Refused(CUDA_ERROR_INVALID_VALUE); });
    expect_alive([](Step close) { close.Fails(CUDA_ERROR_INVALID_VALUE); });
    expect_alive([](Step close) { close.Context(0).Fails(CUDA_ERROR_INVALID_CONTEXT); });
    // A driver that takes it is believed.
    EXPECT_THAT(Left(run(opened, [](Step) {})), ElementsAre("stream 1 release_refused"));
  }
}

TEST(InjectedFault, TheRefusedObjectKeepsItsMarkWhenItsContextDies) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Refused(CUDA_ERROR_INVALID_HANDLE);
  t.ReleasePrimary();
  t.DestroyStream(0x10).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1 release_refused"));
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_TRUE(
      std::any_of(ledger.objects.begin(), ledger.objects.end(), [](const harness::Object& object) { return object.died_with_context; }));
}

TEST(InjectedFault, TheOuterReferenceIsNotBlamedForTheRefusedInnerOne) {
  Trace t;
  t.Retain().Stack(1);
  t.Retain().Stack(2);
  t.ReleasePrimary().Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.ReleasePrimary();
  const Ledger ledger = t.Fold();
  EXPECT_EQ(ledger.objects[0].state, State::Released);
  EXPECT_EQ(ledger.objects[1].state, State::ReleaseRefused);
}

TEST(InjectedFault, TheOlderAllocationReferenceIsNotBlamedForTheRefusedOne) {
  Trace t;
  t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  t.Call(CallId::MemRetainAllocationHandle).Out(0, 0x5);
  t.Call(CallId::MemRelease).In(0, 0x5).Refused(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::MemRelease).In(0, 0x5);
  const Ledger ledger = t.Fold();
  EXPECT_EQ(ledger.objects[0].state, State::Released);
  EXPECT_EQ(ledger.objects[1].state, State::ReleaseRefused);
}

TEST(InjectedFault, ARefusedHostAllocationMakesNothing) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 64).Refused();
  EXPECT_THAT(t.Fold().objects, IsEmpty());
}

TEST(InjectedFault, AnUnfinishedReleaseIsNotHeldAgainstTheProgram) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Unfinished();
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), IsEmpty());
  EXPECT_EQ(ledger.unfinished_calls, 1U);
}

// The caller saw an error, the driver wrote the handle all the same: giving it back is no second release of its former owner.
TEST(InjectedFault, WhatFailedAfterwardsMayBeReleasedAtAReusedHandle) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::PrimaryContext || c.kind == Kind::ContextStackEntry) continue;  // counted, without handles of their own
    Trace t;
    c.acquire(t);
    c.release(t);
    const std::size_t reused = t.Records().size();
    c.acquire(t);
    c.release(t);
    std::vector<faults::Record> records = t.Records();
    if (records.back().kind != faults::RecordKind::Call) continue;
    records[reused].flags = faults::kInjected | faults::kForwarded;
    records[reused].result = CUDA_ERROR_LAUNCH_FAILED;
    const Ledger ledger = harness::Fold(records);
    EXPECT_THAT(Wrong(ledger), IsEmpty()) << driver::Name(c.kind);
    EXPECT_THAT(Left(ledger), IsEmpty()) << driver::Name(c.kind);
  }
}

TEST(InjectedFault, WhatFailedAfterwardsEndsTheOwnerOfItsHandleThere) {
  Trace t;
  t.CreateStream(0x10);
  const std::uint64_t at = t.CreateStream(0x10).After().begin();
  const Ledger ledger = t.Fold();
  ASSERT_EQ(ledger.objects.size(), 1U);
  EXPECT_EQ(ledger.objects[0].released.record_kind, faults::RecordKind::Empty);
  EXPECT_EQ(ledger.objects[0].released.begin, at);
}

TEST(InjectedFault, MemoryThatFailedAfterwardsIsNotItsFormerOwners) {
  Trace t;
  t.Alloc(0x10000, 0x1000);
  t.Free(0x10000);
  t.Alloc(0x10000, 0x800).After();
  t.Call(CallId::MemsetD8_v2).In(0, 0x10400).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  t.Call(CallId::MemsetD8_v2).In(0, 0x10c00).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

TEST(InjectedFault, WhatTheDriverDeclinesAfterARefusedReleaseWaitsForIt) {
  Trace t;
  t.Call(CallId::MemAddressReserve).Out(0, 0x10000).In(1, 0x2000);
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000).Refused(CUDA_ERROR_INVALID_VALUE);
  const Step declined = t.Call(CallId::MemAddressFree).In(0, 0x10000).In(1, 0x2000).Fails(CUDA_ERROR_INVALID_VALUE);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("address_reservation 1 release_refused", "mapping 1 release_refused"));
  EXPECT_EQ(ledger.objects[0].released.begin, declined.begin());
}

TEST(InjectedFault, ARefusedEndOfCaptureMakesTheDriverDeclineToo) {
  Trace t;
  t.CreateStream(0x10);
  t.Alloc(0x1000);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x10);
  t.Call(CallId::StreamEndCapture).In(0, 0x10).Refused(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  t.Free(0x1000).Fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1", "device_memory 1 release_refused"));
}

TEST(InjectedFault, AMappingThatFailedAfterwardsMakesTheDriverDeclineToo) {
  Trace t;
  t.Call(CallId::MemAddressReserve).Out(0, 0x10000).In(1, 0x2000);
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5).After();
  t.Call(CallId::MemAddressFree).In(0, 0x10000).In(1, 0x2000).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("address_reservation 1 release_refused"));
}

// What is queued then becomes nodes, and memory of a node comes to life at a launch alone.
TEST(InjectedFault, ACaptureThatWasDeniedIsUnderWay) {
  Trace t;
  t.CreateStream(0x10);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x10).After();
  t.Call(CallId::MemAllocAsync).Out(0, 0x2000).In(1, 0x100).In(2, 0x10);
  Trace ended = t;
  ended.Call(CallId::StreamEndCapture).In(0, 0x10).Fails(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  t.Call(CallId::StreamDestroy_v2).In(0, 0x10);
  t.CreateStream(0x10);
  for (Trace* const one : {&t, &ended}) {
    one->Call(CallId::MemAllocAsync).Out(0, 0x3000).In(1, 0x100).In(2, 0x10);
    EXPECT_THAT(Left(one->Fold()), ElementsAre("stream 1", "stream_ordered_memory 1"));
  }
}

// A program that leaves its own capture open has nobody else to blame.
TEST(InjectedFault, WhatTheDriverDeclinesWithoutARefusedReleaseIsALeak) {
  Trace t;
  t.CreateStream(0x10);
  t.Alloc(0x1000);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x10);
  t.Call(CallId::MemsetD8Async).In(0, 0x1000).In(3, 0x10).Refused();
  t.Free(0x1000).Fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1", "device_memory 1"));
}

TEST(InjectedFault, AWaitThatFailedAfterwardsLeavesNothingToDeclineFor) {
  Trace t;
  t.Alloc(0x1000);
  t.Call(CallId::CtxSynchronize).After();
  t.Free(0x1000).Fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("device_memory 1"));
}

// A context that its creator could not destroy would have taken along what was made in it meanwhile.
TEST(UndestroyedContexts, EndWhatWasMadeInThem) {
  harness::Ledger ledger;
  harness::Object& context = ledger.objects.emplace_back();
  context.kind = driver::Kind::Context;
  context.state = harness::State::ReleaseRefused;
  context.pid = 100;
  context.handle = 0xa;
  context.acquired.begin = 10;
  context.released.begin = 50;
  const harness::UndestroyedContexts contexts(ledger);
  harness::Object inside = {.kind = driver::Kind::Stream, .pid = 100, .context = 0xa};
  inside.acquired.begin = 20;
  ASSERT_NE(contexts.EndOf(inside), nullptr);
  EXPECT_EQ(contexts.EndOf(inside)->begin, 50U);
  harness::Object other = inside;
  other.state = harness::State::Orphaned;
  EXPECT_EQ(contexts.EndOf(other), nullptr) << "it has ended";
  for (const std::uint64_t begin : {5U, 60U}) {
    other = inside;
    other.acquired.begin = begin;
    EXPECT_EQ(contexts.EndOf(other), nullptr) << "made at " << begin;
  }
  other = inside;
  other.pid = 200;
  EXPECT_EQ(contexts.EndOf(other), nullptr) << "of another process";
  other = inside;
  other.context = 0xb;
  other.parent = 0xa;
  EXPECT_EQ(contexts.EndOf(other), nullptr) << "a number that is no context";
  other.kind = driver::Kind::PeerAccess;
  EXPECT_NE(contexts.EndOf(other), nullptr) << "the peer is one of its two contexts";
}

// cuCtxDetach of the last reference ends a context. Of one whose creation was denied the driver alone counts them.
TEST(DeniedContext, EndsWithItsLastDetachment) {
  for (const bool attached : {false, true}) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xb).After();
    if (attached) t.Call(CallId::CtxAttach).Out(0, 0xb).Context(0xb).After();
    t.Call(CallId::StreamCreate).Out(0, 0x51).Context(0xb);
    t.Call(CallId::CtxDetach).In(0, 0xb).Context(0xb);
    EXPECT_THAT(Left(t.Fold()), ElementsAre(attached ? "stream 1" : "stream 1 orphaned"));
    if (attached) t.Call(CallId::CtxDetach).In(0, 0xb).Context(0xb);
    EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
  }
}

TEST(AttachedContext, WhoseDestructionIsRefusedIsNoLeak) {
  for (const bool detaches : {false, true}) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xb).Context(0);
    t.Call(CallId::CtxAttach).Out(0, 0xb).Context(0xb);
    if (detaches) t.Call(CallId::CtxDetach).In(0, 0xb).Context(0xb).Refused();
    t.Call(CallId::CtxDestroy_v2).In(0, 0xb).Context(0xb).Refused();
    EXPECT_THAT(Left(t.Fold()), ElementsAre("context 2 release_refused")) << detaches;
  }
}

TEST(AttachedContext, EndsWithItsLastDetachmentWhenAnEarlierEndWasRefused) {
  for (const CallId end : {CallId::CtxDestroy_v2, CallId::CtxDetach}) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xb).Context(0);
    t.Call(CallId::CtxAttach).Out(0, 0xb).Context(0xb);
    t.Call(CallId::StreamCreate).Out(0, 0x51).Context(0xb);
    t.Call(end).In(0, 0xb).Context(0xb).Refused();
    t.Call(CallId::CtxDetach).In(0, 0xb).Context(0xb);
    EXPECT_THAT(Left(t.Fold()), ElementsAre("context 1 release_refused", "stream 1")) << driver::Name(end);
    t.Call(CallId::CtxDetach).In(0, 0xb).Context(0xb);
    EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 relied_on_context")) << driver::Name(end);
  }
}

TEST(DeniedContext, EndsWithWhatIsInItWhenThatIsDeniedToo) {
  for (const CallId end : {CallId::CtxDestroy_v2, CallId::CtxDetach}) {
    Trace t;
    t.Call(CallId::CtxCreate_v4).Out(0, 0xb).After();
    t.Call(CallId::StreamCreate).Out(0, 0x51).Context(0xb);
    t.Call(end).In(0, 0xb).Context(0xb).After();
    EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
  }
}

TEST(DeniedContext, IsNotWhatAnotherOneHasMade) {
  for (const CallId denied : {CallId::CtxAttach, CallId::CtxSetCurrent}) {
    Trace t;
    t.Call(denied).Out(0, 0xb).Context(0xb).After();
    t.Call(CallId::StreamCreate).Out(0, 0x51).Context(0xb);
    t.Call(CallId::CtxDetach).In(0, 0xb).Context(0xb);
    EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1")) << "the context was there before, and stays";
  }
}

}  // namespace
}  // namespace cuaudit::testing::injected_test
