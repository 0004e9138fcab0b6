// SPDX-License-Identifier: MIT
// Descriptors that the driver makes for the program and that nobody closes, and descriptors that are closed although the driver took them
// over.
#include "suites/support/cases/descriptors.h"

#include "suites/support/cases/case.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::descriptors_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::HostCall;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::uint64_t kFd = 0x6;

CUAUDIT_CASE(Leak, ADescriptorOfEveryCallThatMakesOne) {
  for (const CallId call : kMakeDescriptors) {
    Trace t = Watched();
    Make(t, call, kFd);
    EXPECT_THAT(Left(t.Fold()), ElementsAre("file_descriptor 1"));
  }
}

// A genuine driver opens it past the wrappers. The census at the end finds the descriptor that the call has already recorded.
CUAUDIT_CASE(Leak, ADescriptorThatTheCensusFindsToo) {
  Trace t = Watched();
  Make(t, CallId::MemExportToShareableHandle, kFd);
  t.Host(HostCall::DescriptorFound, kFd).Flags(faults::kForwarded | faults::kKeptByLibrary);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("file_descriptor 1"));
  ASSERT_THAT(ledger.objects, SizeIs(1));
  EXPECT_EQ(ledger.objects[0].acquired.call, static_cast<std::uint16_t>(CallId::MemExportToShareableHandle));
  EXPECT_FALSE(ledger.objects[0].library_kept);
}

// The simulated driver opens it through the wrapper, inside of the call.
CUAUDIT_CASE(Leak, ADescriptorThatTheDriverOpenedThroughAWrapper) {
  Trace t = Watched();
  Step call = Make(t, CallId::MemPoolExportToShareableHandle, kFd);
  t.Host(HostCall::DescriptorMemory, kFd).At(call.begin() + 1, call.begin() + 2);
  call.At(call.begin(), call.begin() + 3);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("file_descriptor 1"));
}

CUAUDIT_CASE(Leak, OneOfTwoExportsOfAnAllocation) {
  Trace t = Watched();
  Make(t, CallId::MemExportToShareableHandle, kFd);
  Make(t, CallId::MemExportToShareableHandle, kFd + 1);
  t.Host(HostCall::DescriptorClose, kFd);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("file_descriptor 1"));
}

// What the driver made for the program is judged even when nobody asked for host resources.
CUAUDIT_CASE(Leak, AnExportThatOnlyTheGoodPathCloses) {
  const auto run = [](bool fails) {
    Trace t = Watched();
    Make(t, CallId::MemExportToShareableHandle, kFd);
    t.CreateStream(0x51).Stack(7);
    if (fails) t.Last().Refused();
    if (!fails) t.DestroyStream(0x51);
    if (!fails) t.Host(HostCall::DescriptorClose, kFd);
    t.CreateStream(0x52).Stack(8);  // it went on
    t.DestroyStream(0x52);
    return t;
  };
  JournalImage before(run(false));
  JournalImage after(run(true));
  before.Flags(faults::kHeapLeftOut);
  after.Flags(faults::kHeapLeftOut);
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::Leak) << Name(judgement.verdict);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].kind, Kind::FileDescriptor);
}

CUAUDIT_CASE(ClosedAfterImport, OfEveryHandleThatTheDriverTakesOver) {
  for (const CallId call : {CallId::ImportExternalMemory, CallId::ImportExternalSemaphore}) {
    Trace t = Watched();
    t.Host(HostCall::DescriptorReceived, kFd);
    Import(t, call, kFd);
    t.Host(HostCall::DescriptorClose, kFd);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("closed_after_import file_descriptor"));
  }
}

CUAUDIT_CASE(ClosedAfterImport, OfADescriptorThatTheDriverMade) {
  Trace t = Watched();
  Make(t, CallId::MemExportToShareableHandle, kFd);
  Import(t, CallId::ImportExternalMemory, kFd);
  t.Host(HostCall::DescriptorClose, kFd);
  t.Host(HostCall::DescriptorClose, kFd);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("closed_after_import file_descriptor"));
}

// The simulated driver closes it inside of the call; the number may be another file's by the time of the second close.
CUAUDIT_CASE(ClosedAfterImport, OfADescriptorThatTheDriverHasClosed) {
  Trace t = Watched();
  t.Host(HostCall::DescriptorMemory, kFd);
  Step call = Import(t, CallId::ImportExternalMemory, kFd);
  t.Host(HostCall::DescriptorClose, kFd).At(call.begin() + 1, call.begin() + 2);
  call.At(call.begin(), call.begin() + 3);
  t.Host(HostCall::DescriptorClose, kFd);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("closed_after_import file_descriptor"));
}

// A finding also where nobody asked for the host's resources.
CUAUDIT_CASE(ClosedAfterImport, OnAPathThatOnlyAFaultTakes) {
  const auto run = [](bool fails) {
    Trace t = Watched();
    t.Host(HostCall::DescriptorReceived, kFd);
    Import(t, CallId::ImportExternalMemory, kFd);
    t.Call(CallId::ExternalMemoryGetMappedBuffer).Out(0, 0x10000).In(1, kImported);
    if (fails) t.Last().Refused();
    if (fails) t.Host(HostCall::DescriptorClose, kFd);
    if (!fails) t.Free(0x10000);
    t.Call(CallId::DestroyExternalMemory).In(0, kImported);
    return t;
  };
  JournalImage before(run(false));
  JournalImage after(run(true));
  before.Flags(faults::kHeapLeftOut);
  after.Flags(faults::kHeapLeftOut);
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::Misuse) << Name(judgement.verdict);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].rule, Rule::ClosedAfterImport);
  EXPECT_EQ(judgement.findings[0].other.call, static_cast<std::uint16_t>(CallId::ImportExternalMemory));
}

}  // namespace
}  // namespace cuaudit::testing::descriptors_test
