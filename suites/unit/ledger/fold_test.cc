// SPDX-License-Identifier: MIT
// A journal folded into objects and facts, whole and in parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/ledger/facts.h"
#include "harness/ledger/folding.h"
#include "harness/ledger/ledger.h"
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
  const std::uint64_t again = t.CreateStream(0x10).begin();
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
  EXPECT_EQ(ledger.objects[0].released.record_kind, faults::RecordKind::Empty);
  EXPECT_EQ(ledger.objects[0].released.begin, again);
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

using faults::Record;
using harness::Folding;

// Trace::Fold cuts the traces of all other tests too.
TEST(Folding, ACopyGoesOnByItself) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.CreateStream(0x20);
  t.DestroyStream(0x10);
  t.DestroyStream(0x20);
  const std::vector<Record> records = t.Records();
  const std::span<const Record> all(records);
  Folding begun;
  ASSERT_TRUE(begun.Add(all.first(3)));
  Folding first(begun);
  Folding second(begun);
  EXPECT_THAT(Left(*first.Finish(all.subspan(3, 1))), ElementsAre("primary_context 1", "stream 1"));
  EXPECT_THAT(Left(*second.Finish({})), ElementsAre("primary_context 1", "stream 2"));
  ASSERT_TRUE(begun.Add(all.subspan(3, 2)));
  EXPECT_THAT(Left(*begun.Finish({})), ElementsAre("primary_context 1")) << "what its copies did is not in it";
}

TEST(Folding, WhatWasReleasedBeforeTheCopyIsStaleInIt) {
  Trace t;
  t.Alloc(0x1000);
  t.Free(0x1000);
  t.Free(0x1000);
  const std::vector<Record> records = t.Records();
  Folding begun;
  ASSERT_TRUE(begun.Add(std::span(records).first(2)));
  Folding copy(begun);
  const std::optional<harness::Ledger> ledger = copy.Finish(std::span(records).subspan(2));
  ASSERT_TRUE(ledger.has_value());
  EXPECT_THAT(Wrong(*ledger), ElementsAre("double_release device_memory"));
  EXPECT_EQ(ledger->violations[0].object, 0);
}

TEST(Folding, DeclinesWhatCannotBeFoldedInParts) {
  Trace t;
  t.CreateStream(0x10);
  t.CreateStream(0x20);
  std::vector<Record> records = t.Records();
  const std::span<const Record> all(records);
  records[1].end = 0;
  Folding unfinished;
  EXPECT_FALSE(unfinished.Add(all)) << "it may return later";
  ASSERT_TRUE(unfinished.Add(all.first(1)));
  const std::optional<harness::Ledger> ledger = unfinished.Finish(all.subspan(1));
  ASSERT_TRUE(ledger.has_value()) << "the last ones need not return";
  EXPECT_EQ(ledger->unfinished_calls, 1U);

  records = t.Records();
  Folding backwards;
  ASSERT_TRUE(backwards.Add(std::span(records).subspan(1)));
  EXPECT_FALSE(backwards.Add(std::span(records).first(1))) << "older than what was folded";
  EXPECT_FALSE(backwards.Finish(std::span(records).first(1)).has_value());

  records[0].begin = 0;
  Folding unwritten;
  EXPECT_FALSE(unwritten.Add(std::span(records))) << "it may be written later";
}

using faults::MarkKind;
using faults::ProcessEvent;
using harness::Facts;

constexpr std::uint32_t kOther = 71;

TEST(Facts, CallsOfTheProgramAreInTheOrderInWhichTheyBegan) {
  Trace t;
  t.CreateStream(0x10).At(5, 6);
  t.CreateStream(0x20).At(3, 4);
  t.CreateStream(0x30).At(7, 8).Flags(faults::kForwarded | faults::kNested);
  t.CreateStream(0x40).At(0, 0);
  EXPECT_THAT(t.Fold().facts.calls, ElementsAre(1, 0)) << "neither the nested one nor the one that was never begun";
}

TEST(Facts, ThreadsOfOneProcessAndProcessesThatCallAreToldApart) {
  Trace one;
  one.CreateStream(0x10);
  one.CreateStream(0x20);
  one.Event(ProcessEvent::Fork, kOther, kProcess);
  EXPECT_FALSE(one.Fold().facts.threaded) << "the child calls nothing";
  Trace threads;
  threads.CreateStream(0x10);
  threads.CreateStream(0x20).Thread(kThread + 1);
  EXPECT_TRUE(threads.Fold().facts.threaded);
  Trace processes;
  processes.CreateStream(0x10);
  processes.CreateStream(0x20).Process(kOther);
  EXPECT_TRUE(processes.Fold().facts.threaded);
}

TEST(Facts, OfSeveralHitsOfAFaultTheEarliestCounts) {
  Trace t;
  t.CreateStream(0x10).Refused().At(7, 8);
  t.CreateStream(0x20).Refused().At(3, 4);
  t.CreateStream(0x30).Refused().At(9, 10);
  const Facts facts = t.Fold().facts;
  EXPECT_EQ(facts.hits[0].record, 1U);
  EXPECT_EQ(facts.hits[0].begin, 3U);
  EXPECT_EQ(facts.hits[1].begin, 0U);
}

// The host probes number the requests that can be refused. The others come from code that is not the program's own.
TEST(Facts, HostRequestsWithoutANumberAreForeign) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x1000, 64);
  t.Host(faults::HostCall::Allocate, 0x2000, 64);
  t.Host(faults::HostCall::ThreadCreate, 0x3000);
  std::vector<faults::Record> records = t.Records();
  records[0].occurrence = 1;
  const Facts facts = harness::FactsOf(records);
  constexpr auto kMemory = static_cast<std::size_t>(harness::Asked::Memory);
  constexpr auto kThread = static_cast<std::size_t>(harness::Asked::Thread);
  EXPECT_THAT(facts.asked[kMemory], ElementsAre(0));
  EXPECT_EQ(facts.foreign[kMemory], 1U);
  EXPECT_THAT(facts.asked[kThread], IsEmpty());
  EXPECT_EQ(facts.foreign[kThread], 1U);
}

TEST(Facts, ClosesOfDescriptorsAreNotedInTheOrderOfTheClock) {
  Trace t;
  t.Host(faults::HostCall::DescriptorOpen, 4);
  t.Host(faults::HostCall::DescriptorClose, 4).At(9, 10);
  t.Host(faults::HostCall::DescriptorClose, 5).At(7, 8);
  EXPECT_THAT(t.Fold().facts.closes, ElementsAre(2, 1));
}

TEST(Facts, ChildrenThatWroteNoEndVanished) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kOther, kProcess);
  EXPECT_THAT(t.Fold().facts.Vanished(), ElementsAre(kOther)) << "the first process ends where we see it";
  t.Event(ProcessEvent::Exit, kOther);
  EXPECT_THAT(t.Fold().facts.Vanished(), IsEmpty());
}

TEST(Facts, WhoNeverCallsTheDriverIsAHelper) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kOther, kProcess);
  EXPECT_FALSE(t.Fold().facts.IsSubject(kOther));
  EXPECT_TRUE(t.Fold().facts.IsSubject(kProcess)) << "the program itself";
  t.CreateStream(0x10).Process(kOther);
  EXPECT_TRUE(t.Fold().facts.IsSubject(kOther));
  EXPECT_TRUE(Facts().IsSubject(kOther)) << "nothing is known";
}

TEST(Facts, CyclesReachToTheLastOneThatAnyMarkNames) {
  Trace t;
  t.Mark(MarkKind::CycleBegin).Cycle(1).At(1, 1);
  t.Mark(MarkKind::CycleEnd).Cycle(1).At(2, 2);
  t.Mark(MarkKind::Phase).Cycle(2).At(3, 3);
  const Facts facts = t.Fold().facts;
  ASSERT_EQ(facts.cycles.size(), 2U);
  EXPECT_EQ(facts.cycles[0].end, 2U);
  EXPECT_EQ(facts.cycles[1].begin, 0U);
}

TEST(Facts, NobodyAskedForAreNotNoted) {
  Trace t;
  t.CreateStream(0x10);
  const harness::Ledger whole = t.Fold();
  harness::Ledger objects = harness::FoldObjects(t.Records());
  EXPECT_EQ(objects.facts, Facts());
  objects.facts = whole.facts;
  EXPECT_EQ(objects, whole);
}

TEST(Facts, OfAPartCountFromItsFirstRecord) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.CreateStream(0x10);
  t.CreateStream(0x20).Refused();
  const std::vector<faults::Record> records = t.Records();
  EXPECT_EQ(harness::FactsOf(records), harness::Fold(records).facts);
  const Facts part = harness::FactsOf(std::span(records).subspan(1));
  EXPECT_THAT(part.calls, ElementsAre(0, 1));
  EXPECT_EQ(part.hits[0].record, 1U);
}

// The mapped part of external memory ends with the context that the memory was imported in.
TEST(External, IsMappedWhileNoContextIsCurrent) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xb);
  t.Call(CallId::ImportExternalMemory).Out(0, 0x60).Context(0xb);
  t.Call(CallId::ExternalMemoryGetMappedMipmappedArray).Out(0, 0x1000).In(1, 0x60).Context(0);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xb);
  EXPECT_EQ(t.Fold().objects.back().state, harness::State::Orphaned);
}

}  // namespace
}  // namespace cuaudit::testing::fold_test
