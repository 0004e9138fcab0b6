// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "suites/support/trace.h"

namespace cuaudit::testing::fold_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Ledger;
using harness::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool Same(const Ledger& a, const Ledger& b) {
  const auto same_object = [](const harness::Object& x, const harness::Object& y) {
    return x.kind == y.kind && x.state == y.state && x.handle == y.handle && x.generation == y.generation && x.acquired == y.acquired &&
           x.released == y.released;
  };
  const auto same_violation = [](const harness::Violation& x, const harness::Violation& y) {
    return x.rule == y.rule && x.kind == y.kind && x.where == y.where && x.object == y.object;
  };
  return std::equal(a.objects.begin(), a.objects.end(), b.objects.begin(), b.objects.end(), same_object) &&
         std::equal(a.violations.begin(), a.violations.end(), b.violations.begin(), b.violations.end(), same_violation);
}

TEST(Fold, OfNothingIsEmpty) {
  const Ledger ledger = harness::Fold({});
  EXPECT_THAT(ledger.objects, IsEmpty());
  EXPECT_THAT(ledger.violations, IsEmpty());
  EXPECT_EQ(ledger.facts.calls.size(), 0U);
  EXPECT_TRUE(ledger.facts.processes.empty());
}

TEST(Fold, KeepsSiteBytesContextAndCycle) {
  Trace t;
  const Step alloc = t.Alloc(0x1000, 0x2000).Stack(5).Cycle(3).Context(0xa);
  const Ledger ledger = t.Fold();
  ASSERT_EQ(ledger.objects.size(), 1U);
  const harness::Object& object = ledger.objects[0];
  EXPECT_EQ(object.kind, Kind::DeviceMemory);
  EXPECT_EQ(object.bytes, 0x2000U);
  EXPECT_EQ(object.context, 0xaU);
  EXPECT_EQ(object.cycle, 3U);
  EXPECT_EQ(object.pid, kProcess);
  EXPECT_EQ(object.acquired.stack, 5U);
  EXPECT_EQ(object.acquired.begin, alloc.begin());
  EXPECT_EQ(object.parent, 0U) << "it was made from no other object";
}

TEST(Fold, NamesTheParent) {
  Trace t;
  t.Call(CallId::MemAllocFromPoolAsync).Out(0, 0x1000).In(1, 64).In(2, 0x99);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x3).In(1, 0x98);
  t.Call(CallId::GraphAddEmptyNode).Out(0, 0x4).In(1, 0x98);
  const Ledger ledger = t.Fold();
  EXPECT_EQ(ledger.objects.at(0).parent, 0x99U);
  EXPECT_EQ(ledger.objects.at(1).parent, 0x98U);
  EXPECT_EQ(ledger.objects.at(2).parent, 0x98U);
}

TEST(Fold, AHostAllocationThatFailedByItselfMakesNothing) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0, 64);
  EXPECT_THAT(t.Fold().objects, IsEmpty());
}

TEST(Fold, CountsGenerationsPerHandle) {
  Trace t;
  for (int i = 0; i < 3; ++i) {
    t.CreateStream(0x10);
    t.DestroyStream(0x10);
  }
  t.CreateStream(0x11);
  const Ledger ledger = t.Fold();
  ASSERT_EQ(ledger.objects.size(), 4U);
  EXPECT_EQ(ledger.objects[2].generation, 2U);
  EXPECT_EQ(ledger.objects[3].generation, 0U);
}

TEST(Fold, CountsCallsUnmodelledAndUnfinished) {
  Trace t;
  t.CreateStream(0x10);
  t.Call(CallId::GLInit).Fails(CUDA_ERROR_NOT_SUPPORTED).Flags(faults::kForwarded | faults::kUnmodelled);
  t.Call(CallId::CtxSynchronize).Unfinished();
  t.Call(CallId::EventCreate).Out(0, 1).Flags(faults::kForwarded | faults::kNested);
  const Ledger ledger = t.Fold();
  EXPECT_EQ(ledger.facts.calls.size(), 3U);
  EXPECT_EQ(ledger.unmodelled_calls, 1U);
  EXPECT_EQ(ledger.unfinished_calls, 1U);
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
}

TEST(Fold, IgnoresEmptyAndUnknownRecords) {
  Trace t;
  t.CreateStream(0x10);
  t.Call(static_cast<CallId>(0xffff)).Out(0, 0x11);
  t.Call(CallId::EventCreate).Out(0, 0x12).At(0, 0);
  std::vector<faults::Record> records = t.Records();
  records.emplace_back();
  const Ledger ledger = harness::Fold(records);
  EXPECT_EQ(ledger.facts.calls.size(), 1U);
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
}

TEST(Fold, DoesNotDependOnSlotOrder) {
  Trace t;
  t.Retain();
  for (std::uint64_t i = 0; i < 20; ++i) t.Alloc(0x10000 + i * 0x1000);
  for (std::uint64_t i = 0; i < 20; i += 3) t.Free(0x10000 + i * 0x1000);
  t.Free(0x10000);
  t.ReleasePrimary();
  const std::vector<faults::Record> records = t.Records();
  std::vector<faults::Record> reversed(records.rbegin(), records.rend());
  const Ledger ledger = harness::Fold(records);
  EXPECT_THAT(Wrong(ledger), ElementsAre("double_release device_memory"));
  EXPECT_TRUE(Same(ledger, harness::Fold(reversed)));
  EXPECT_TRUE(Same(ledger, harness::Fold(records)));
}

TEST(Fold, BlamesTheReferenceOfTheThreadThatReleases) {
  Trace t;
  t.Retain().Thread(1).Stack(1);
  t.Retain().Thread(2).Stack(2);
  t.ReleasePrimary().Thread(1);
  const Ledger ledger = t.Fold();
  EXPECT_EQ(ledger.objects[0].state, State::Released);
  EXPECT_EQ(ledger.objects[1].state, State::Live);
}

TEST(Fold, AHandleHandedOutAgainClosesTheOldObjectSilently) {
  Trace t;
  t.CreateStream(0x10);
  t.CreateStream(0x10);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
  EXPECT_EQ(ledger.objects[0].released.record_kind, faults::RecordKind::Empty);
}

// A journal of a long run: every tenth allocation stays, everything else goes, handles come back.
TEST(Fold, TakesALongJournal) {
  constexpr std::uint64_t kBlocks = 50000;
  Trace t;
  t.Retain();
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    t.Alloc(0x100000 + (i % 997) * 0x100000 + i, 1);
    t.Host(faults::HostCall::Allocate, 0x7000000000 + (i % 1009) * 64, 64);
    t.Host(faults::HostCall::Deallocate, 0x7000000000 + (i % 1009) * 64);
    if (i % 10 != 0) t.Free(0x100000 + (i % 997) * 0x100000 + i);
  }
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), ElementsAre("primary_context 1", "device_memory 5000"));
}

TEST(Fold, StreamOrderedMemoryOutlivesTheContextItWasTakenIn) {
  constexpr std::uint64_t kOther = 0xd0;
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, kOther).Context(0);
  t.CreateStream(0x10).Context(kOther);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x10).Context(kContext);
  t.Call(CallId::MemAllocAsync).Out(0, 0x8000).In(1, 64).In(2, 0).Context(kContext);
  t.Call(CallId::CtxDestroy_v2).In(0, kOther).Context(kContext);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 relied_on_context", "stream_ordered_memory 2"));
}

TEST(Fold, ACaptureIsOverWhenItsStreamDiedAndAFailedWaitCarriesNone) {
  constexpr std::uint64_t kStreamHandle = 0x10;
  constexpr std::uint64_t kEventHandle = 0x20;
  Trace t;
  t.Retain();
  t.CreateStream(kStreamHandle);
  t.CreateStream(kStreamHandle + 1);
  t.Call(CallId::StreamBeginCapture_v2).In(0, kStreamHandle);
  t.Call(CallId::EventRecord).In(0, kEventHandle).In(1, kStreamHandle);
  t.Call(CallId::StreamWaitEvent).In(0, kStreamHandle + 1).In(1, kEventHandle).Fails(CUDA_ERROR_INVALID_HANDLE);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, kStreamHandle + 1);
  t.Call(CallId::MemAllocAsync).Out(0, 0x8000).In(1, 64).In(2, kStreamHandle);  // the graph's
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 2", "stream_ordered_memory 1"));
  t.Call(CallId::StreamWaitEvent).In(0, 2).In(1, kEventHandle);  // the thread's own stream joins the capture
  t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0);
  t.Call(CallId::MemAllocAsync).Out(0, 0x9000).In(1, 64).In(2, 2);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 2 orphaned", "stream_ordered_memory 2"));
}

}  // namespace
}  // namespace cuaudit::testing::fold_test
