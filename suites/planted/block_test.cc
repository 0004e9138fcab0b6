// SPDX-License-Identifier: MIT
// What is lost beside the driver's own objects: blocks of a program's pool, as it tells of them itself (cuaudit/mark.h), descriptors
// that the driver makes or takes over, and blocks of the heap that it is given.
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::block_test {
namespace {

// Blocks that the program's own pool cuts out of device memory.

using driver::CallId;
using faults::MarkKind;
using ::testing::ElementsAre;

constexpr std::uint64_t kSegment = 0x7f00'0000'0000;

void Out(Trace& t, std::uint64_t address, std::uint64_t bytes = 0x200) { t.Mark(MarkKind::BlockOut).In(0, address).In(1, bytes); }
void Back(Trace& t, std::uint64_t address) { t.Mark(MarkKind::BlockBack).In(0, address); }

CUAUDIT_CASE(Leak, ABlockThatIsNeverGivenBack) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Out(t, kSegment + 0x200);
  Back(t, kSegment);
  t.Free(kSegment);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("block 1"));
}

// The pool is gone and made anew, at the same address as it happens.
CUAUDIT_CASE(Leak, BlocksThatWereOutWhenTheirMemoryWasFreed) {
  Trace t;
  for (int i = 0; i < 3; ++i) {
    t.Alloc(kSegment, 0x10000);
    Out(t, kSegment);
    t.Free(kSegment);
  }
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("block 3"));
  EXPECT_TRUE(ledger.violations.empty());
}

CUAUDIT_CASE(UseAfterRelease, ABlockIsWrittenAfterItWasGivenBack) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment + 0x400);
  Back(t, kSegment + 0x400);
  t.Call(CallId::MemsetD8Async).In(0, kSegment + 0x410).In(2, 16).In(3, 0x65);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("use_after_release block"));
  EXPECT_EQ(ledger.objects[static_cast<std::size_t>(ledger.violations[0].object)].handle, kSegment + 0x400);
}

CUAUDIT_CASE(UseAfterRelease, AKernelIsHandedABlockThatWasGivenBack) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Back(t, kSegment);
  const Step launch = t.Call(CallId::LaunchKernel).In(8, 0x65);
  t.Arguments(launch, {kSegment + 8});
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release block"));
}

CUAUDIT_CASE(UseAfterRelease, ThatTheMemoryItselfIsGoodSaysNothingOfTheBlock) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Back(t, kSegment);
  t.Call(CallId::MemGetAddressRange_v2).Out(0, kSegment).Out(1, 0x10000).In(2, kSegment + 8);
  t.Call(CallId::MemsetD8_v2).In(0, kSegment + 8).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release block"));
}

// The pool has handed out the front of it again; the old owner uses the rest.
CUAUDIT_CASE(UseAfterRelease, TheRestOfABlockThatWasSplit) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment, 0x1000);
  Back(t, kSegment);
  Out(t, kSegment, 0x200);
  t.Call(CallId::MemsetD8_v2).In(0, kSegment).In(2, 1);
  t.Call(CallId::MemsetD8_v2).In(0, kSegment + 0x800).In(2, 1);
  Back(t, kSegment);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release block"));
}

CUAUDIT_CASE(HandedOutTwice, TheSameBlockWhileItIsOut) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Out(t, kSegment);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("handed_out_twice block"));
}

CUAUDIT_CASE(HandedOutTwice, APartOfABlockThatIsOut) {
  for (const std::uint64_t at : {0x3ffU, 0x200U, 0x201U, 0x1U}) {
    Trace t;
    t.Alloc(kSegment, 0x10000);
    Out(t, kSegment + 0x200);
    Out(t, kSegment + at);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("handed_out_twice block")) << at;
  }
  Trace around;
  Out(around, kSegment + 0x200);
  Out(around, kSegment, 0x1000);
  EXPECT_THAT(Wrong(around.Fold()), ElementsAre("handed_out_twice block"));
}

// Descriptors that the driver makes for the program and that nobody closes, and descriptors that are closed although the driver took them
// over.

using driver::Kind;
using faults::HostCall;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
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
    for (const bool seen : {true, false}) {
      Trace t = Watched();
      if (seen) t.Host(HostCall::DescriptorReceived, kFd);
      Import(t, call, kFd);
      t.Host(HostCall::DescriptorClose, kFd);
      EXPECT_THAT(Wrong(t.Fold()), ElementsAre("closed_after_import file_descriptor"));
    }
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

// Nobody saw the files opened. That the first import was said to have failed excuses no close after the second one.
CUAUDIT_CASE(ClosedAfterImport, OfTheSecondImportOfANumber) {
  for (const bool told : {true, false}) {
    Trace t = Watched();
    Step first = Import(t, CallId::ImportExternalMemory, kFd);
    if (told) first.After();
    if (told) t.Host(HostCall::DescriptorClose, kFd);
    Import(t, CallId::ImportExternalSemaphore, kFd);
    t.Host(HostCall::DescriptorClose, kFd);
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Wrong(ledger), ElementsAre("closed_after_import file_descriptor"));
    ASSERT_THAT(ledger.violations, SizeIs(1));
    EXPECT_EQ(ledger.violations[0].other.call, static_cast<std::uint16_t>(CallId::ImportExternalSemaphore));
  }
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

// A buffer is from malloc where there is no pinned memory, and the program forgets that.
CUAUDIT_CASE(UnknownHandle, ABlockOfTheHeapIsGivenToTheDriver) {
  Also(harness::Rule::Leak, driver::Kind::HostHeap);
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 64);
  t.Call(CallId::MemFreeHost).In(0, 0x5000).Fails(CUDA_ERROR_INVALID_VALUE);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("unknown_handle pinned_memory"));
  EXPECT_EQ(ledger.violations[0].object, 0) << "the report says where the block is from";
  EXPECT_THAT(Left(ledger), ElementsAre("host_heap 1"));
  EXPECT_EQ(ledger.objects[0].released, ledger.violations[0].where) << "nobody forgot to release it";
}

// Its registration failed, and the way back ends it all the same. That says nothing about the block.
CUAUDIT_CASE(UnknownHandle, ARegistrationThatIsNotThere) {
  Also(harness::Rule::Leak, driver::Kind::HostHeap);
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 64);
  t.Call(CallId::MemHostUnregister).In(0, 0x5000).Fails(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("unknown_handle host_registration"));
  EXPECT_THAT(Left(ledger), ElementsAre("host_heap 1"));
  EXPECT_EQ(ledger.violations[0].object, -1);
  EXPECT_EQ(ledger.objects[0].released, harness::Site()) << "it was forgotten";
}

}  // namespace
}  // namespace cuaudit::testing::block_test
