// SPDX-License-Identifier: MIT
// What faults do to the books: refused, after, sticky, for each sort of call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/planted/kind_cases.h"
#include "suites/unit/ledger/trace.h"

namespace cuaudit::testing {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Ledger;
using harness::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The lifecycle of every kind whose release is a driver call, with the last record changed.
std::vector<faults::Record> WithLast(const KindCase& c, std::uint16_t flags, CUresult result) {
  Trace t;
  c.acquire(t);
  c.release(t);
  std::vector<faults::Record> records = t.Records();
  if (records.back().kind == faults::RecordKind::Host) return {};
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
    if (records.back().kind == faults::RecordKind::Host) continue;
    records.back().flags = faults::kInjected | faults::kForwarded;
    records.back().result = CUDA_ERROR_LAUNCH_FAILED;
    const Ledger ledger = harness::Fold(records);
    EXPECT_THAT(ledger.objects, IsEmpty()) << driver::Name(c.kind);
    EXPECT_THAT(Wrong(ledger), IsEmpty()) << driver::Name(c.kind);
  }
}

TEST(InjectedFault, AContextLostForRealRefusesReleasesToo) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 release_refused"));
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

}  // namespace
}  // namespace cuaudit::testing
