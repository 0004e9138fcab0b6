// SPDX-License-Identifier: MIT
// The place and cause of a death, from what the journal holds of it; and which records are none of it.
#include "harness/verdict/death.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "suites/support/journal_image.h"

namespace cuaudit::testing::death_test {
namespace {

using driver::CallId;
using faults::ProcessEvent;
using faults::RecordKind;
using harness::DeathFinding;
using harness::DeathOf;
using harness::TrialFinding;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Trace Allocated() {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Alloc(0x7000);
  return t;
}

TrialFinding Of(const Trace& trace, int signal, bool timed_out = false) {
  const JournalImage image(trace);
  const harness::Evidence trial = image.Evidence(0, signal, timed_out);
  return DeathFinding(DeathOf(trial.ending), trial);
}

bool IsLastCall(const TrialFinding& finding) { return finding.where.record_kind == RecordKind::Call; }

TEST(Death, OfASignalIsWhereItsRecordSays) {
  Trace t = Allocated();
  t.Stop(SIGSEGV, SEGV_MAPERR, 0x18);
  const TrialFinding finding = Of(t, SIGSEGV);
  EXPECT_EQ(finding.where.record_kind, RecordKind::Stop);
  EXPECT_EQ(finding.where.call, SIGSEGV);
  EXPECT_NE(finding.where_key, 0U);
  EXPECT_EQ(finding.detail, "SIGSEGV at 0x18, in the null page; its last calls were cuMemAlloc");
}

TEST(Death, NamesTheLastCallsAndNotTheFirst) {
  Trace t = Allocated();
  for (std::uint64_t address = 0x8000; address < 0xd000; address += 0x1000) t.Alloc(address);
  t.Free(0x7000);
  t.Stop(SIGSEGV, SEGV_MAPERR, 0x18);
  EXPECT_THAT(Of(t, SIGSEGV).detail, HasSubstr("its last calls were cuMemAlloc, cuMemAlloc, cuMemAlloc, cuMemAlloc, cuMemFree"));
}

TEST(Death, SaysWhatLiesAtTheAddress) {
  const struct {
    std::int64_t code;
    std::uint64_t address;
    const char* words;
  } cases[] = {{SEGV_MAPERR, 0x500000, "at an address where nothing is mapped"},
               {SEGV_ACCERR, 0x500000, "in memory that does not allow the access"},
               {SI_KERNEL, 0, "at an address that no pointer can have"},
               {SEGV_ACCERR, 0x7010, "in live device_memory"},
               {SI_TKILL, 0, "raised by a call"}};
  for (const auto& one : cases) {
    Trace t = Allocated();
    t.Stop(SIGSEGV, one.code, one.address);
    EXPECT_THAT(Of(t, SIGSEGV).detail, HasSubstr(one.words));
  }
  Trace t = Allocated();
  t.Free(0x7000);
  t.Stop(SIGSEGV, SEGV_MAPERR, 0x7010);
  EXPECT_THAT(Of(t, SIGSEGV).detail, StartsWith("SIGSEGV in released device_memory;"));
}

TEST(Death, OfAnotherSignalOrProcessTellsNothing) {
  Trace other_signal = Allocated();
  other_signal.Stop(SIGBUS, BUS_ADRERR, 0x500000);
  Trace other_process = Allocated();
  other_process.Stop(SIGSEGV, SEGV_MAPERR, 0).Process(200);
  for (const Trace& t : {other_signal, other_process}) {
    const TrialFinding finding = Of(t, SIGSEGV);
    EXPECT_TRUE(IsLastCall(finding));
    EXPECT_THAT(finding.detail, StartsWith("SIGSEGV at an unknown place: the program handles it itself"));
  }
  EXPECT_EQ(Of(Allocated(), SIGKILL).detail, "its last calls were cuMemAlloc") << "nobody can handle it";
}

TEST(Hang, IsInTheCallThatAThreadIsInside) {
  Trace t = Allocated();
  const std::uint64_t wait = t.Call(CallId::EventSynchronize).Unfinished().begin();
  t.Call(CallId::StreamCreate).Out(0, 0x20);
  t.Stop(0, SI_QUEUE);
  t.Stop(0, SI_TKILL, 0, wait).Thread(101);
  const TrialFinding finding = Of(t, SIGKILL, true);
  EXPECT_TRUE(IsLastCall(finding));
  EXPECT_EQ(finding.where.call, static_cast<std::uint16_t>(CallId::EventSynchronize));
  EXPECT_THAT(finding.detail, StartsWith("stuck in cuEventSynchronize;"));
}

TEST(Hang, OutsideOfTheDriverIsWhereTheFirstThreadIs) {
  Trace t = Allocated();
  t.Stop(0, SI_TKILL).Thread(101);
  const std::uint64_t first = t.Stop(0, SI_QUEUE).begin();
  const TrialFinding finding = Of(t, SIGKILL, true);
  EXPECT_EQ(finding.where.begin, first);
  EXPECT_THAT(finding.detail, StartsWith("stuck outside of the driver;"));
}

TEST(Hang, ThatNobodyAnswersIsInTheCallThatHasNotReturned) {
  Trace t = Allocated();
  EXPECT_THAT(Of(t, SIGKILL, true).detail, StartsWith("stuck at an unknown place;"));
  t.Call(CallId::EventSynchronize).Unfinished();
  EXPECT_THAT(Of(t, SIGKILL, true).detail, StartsWith("stuck in cuEventSynchronize;"));
}

// A crash that a handler survived is none.
TEST(Death, OfAProgramThatWentOnIsNone) {
  Trace t = Allocated();
  t.Stop(SIGSEGV, SEGV_MAPERR, 0);
  t.Event(ProcessEvent::Exit);
  const JournalImage image(t);
  EXPECT_EQ(DeathOf(image.Evidence(0).ending), harness::Verdict::Pass);
  EXPECT_THAT(Of(t, SIGABRT).detail, Not(HasSubstr("SIGSEGV")));
}

}  // namespace
}  // namespace cuaudit::testing::death_test
