// SPDX-License-Identifier: MIT
// Blocks of a program's own pool, and descriptors that the driver makes or takes over, each in the right hands.
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::block_test {
namespace {

// Pools that are in order: not a word about them.

using driver::CallId;
using faults::MarkKind;

constexpr std::uint64_t kSegment = 0x7f00'0000'0000;

void Out(Trace& t, std::uint64_t address, std::uint64_t bytes = 0x200) { t.Mark(MarkKind::BlockOut).In(0, address).In(1, bytes); }
void Back(Trace& t, std::uint64_t address) { t.Mark(MarkKind::BlockBack).In(0, address); }
void Fill(Trace& t, std::uint64_t address) { t.Call(CallId::MemsetD8_v2).In(0, address).In(2, 1); }

CUAUDIT_CASE(HandedOutTwice, AgainAfterItWasGivenBack) {
  Trace t;
  for (int i = 0; i < 3; ++i) {
    Out(t, kSegment);
    Fill(t, kSegment);
    Back(t, kSegment);
  }
  ExpectSilent(t);
}

CUAUDIT_CASE(HandedOutTwice, NeighboursThatTouch) {
  Trace t;
  Out(t, kSegment + 0x200);
  Out(t, kSegment, 0x200);
  Out(t, kSegment + 0x400);
  Back(t, kSegment + 0x200);
  Back(t, kSegment);
  Back(t, kSegment + 0x400);
  Out(t, kSegment, 0x600);  // merged
  Back(t, kSegment);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, ABlockOfTheSameMemoryHandedOutAgain) {
  const CaseRow row(driver::Kind::Block);
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment, 0x1000);
  Back(t, kSegment);
  Out(t, kSegment + 0x800);
  Fill(t, kSegment + 0x810);
  Fill(t, kSegment + 0x1000);  // behind the old block: nothing was said of it
  Back(t, kSegment + 0x800);
  t.Free(kSegment);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, TheSegmentWasFreedAndItsAddressesAreSomebodyElses) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Back(t, kSegment);
  t.Free(kSegment);
  t.Alloc(kSegment, 0x1000);
  Fill(t, kSegment);
  t.Free(kSegment);
  ExpectSilent(t);
}

// Memory that came and went on ways without records: who answers its length vouches for it.
CUAUDIT_CASE(UseAfterRelease, TheDriverVouchesForMemoryThatNobodySawAllocated) {
  Trace t;
  Out(t, kSegment);
  Back(t, kSegment);
  t.Call(CallId::MemGetAddressRange_v2).Out(0, kSegment).Out(1, 0x10000).In(2, kSegment);
  Fill(t, kSegment);
  ExpectSilent(t);
}

// A private pool keeps what a captured graph uses, although its blocks were given back.
CUAUDIT_CASE(UseAfterRelease, AGraphGoesOnWithWhatItsPoolTookBack) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x65);
  t.Call(CallId::MemsetD8Async).In(0, kSegment).In(2, 16).In(3, 0x65);
  t.Call(CallId::StreamEndCapture).In(0, 0x65).Out(1, 0x70);
  Back(t, kSegment);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x71).In(1, 0x70);
  t.Call(CallId::GraphLaunch).In(0, 0x71).In(1, 0x65);
  t.Call(CallId::GraphExecDestroy).In(0, 0x71);
  t.Call(CallId::GraphDestroy).In(0, 0x70);
  t.Free(kSegment);
  ExpectSilent(t);
}

// The audit began after it had been handed out.
CUAUDIT_CASE(DoubleRelease, ABlockThatNobodySawHandedOut) {
  Trace t;
  Back(t, kSegment);
  Out(t, kSegment);
  Back(t, kSegment);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, EveryBlockComesBackOnSomeThread) {
  Trace t;
  t.Mark(MarkKind::BlockOut).In(0, kSegment).In(1, 0x200).Thread(1);
  t.Mark(MarkKind::BlockBack).In(0, kSegment).Thread(2);
  ExpectSilent(t);
}

// Descriptors that the driver makes for the program or takes over from it, each in the right hands.

using driver::Kind;
using faults::HostCall;

constexpr std::uint64_t kFd = 0x6;

CUAUDIT_CASE(Leak, ADescriptorOfEveryCallThatMakesOneIsClosed) {
  for (const CallId call : kMakeDescriptors) {
    const CaseRow row(Kind::FileDescriptor);
    for (const HostCall close : {HostCall::DescriptorClose, HostCall::DescriptorGone}) {  // Gone: by a system call
      Trace t = Watched();
      Make(t, call, kFd);
      t.Host(HostCall::DescriptorFound, kFd);
      t.Host(close, kFd);
      ExpectSilent(t);
    }
  }
}

CUAUDIT_CASE(Leak, AnExportedDescriptorThatTheDriverTakesOverAgain) {
  Trace t = Watched();
  Make(t, CallId::MemExportToShareableHandle, kFd);
  Import(t, CallId::ImportExternalMemory, kFd);
  t.Call(CallId::DestroyExternalMemory).In(0, kImported);
  ExpectSilent(t);
}

// Nobody would see the close.
CUAUDIT_CASE(Leak, AnExportWithoutHostProbes) {
  Trace t;
  Make(t, CallId::MemExportToShareableHandle, kFd);
  ExpectSilent(t);
}

// A fabric handle is no descriptor: the call tells of none.
CUAUDIT_CASE(Leak, AnExportThatMakesNoDescriptor) {
  Trace t = Watched();
  t.Call(CallId::MemExportToShareableHandle).In(1, 0x5);
  ExpectSilent(t);
}

// The program was told that there is none. The census finds it all the same.
CUAUDIT_CASE(Leak, AnExportThatTheProgramIsToldFailed) {
  Trace t = Watched();
  Make(t, CallId::MemExportToShareableHandle, kFd).After();
  t.Host(HostCall::DescriptorFound, kFd);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, AnExportThatAnExecTakesAlong) {
  Trace t = Watched();
  t.Event(faults::ProcessEvent::Start);
  Make(t, CallId::MemExportToShareableHandle, kFd);
  t.Event(faults::ProcessEvent::Start);
  ExpectSilent(t);
}

CUAUDIT_CASE(ClosedAfterImport, TheImportFailed) {
  Trace t = Watched();
  t.Host(HostCall::DescriptorReceived, kFd);
  t.Call(CallId::ImportExternalMemory).Fails(CUDA_ERROR_UNKNOWN);
  t.Host(HostCall::DescriptorClose, kFd);
  ExpectSilent(t);
}

CUAUDIT_CASE(ClosedAfterImport, TheNumberIsAnotherFiles) {
  Trace t = Watched();
  t.Host(HostCall::DescriptorReceived, kFd);
  Import(t, CallId::ImportExternalMemory, kFd);
  t.Host(HostCall::DescriptorOpen, kFd);
  t.Host(HostCall::DescriptorClose, kFd);
  t.Call(CallId::DestroyExternalMemory).In(0, kImported);
  ExpectSilent(t);
}

// After its close the number belongs to files that the program opens past the wrappers: one is imported, the next one is closed.
CUAUDIT_CASE(ClosedAfterImport, TheNumberIsThatOfFilesThatNobodySawOpened) {
  Trace t = Watched();
  t.Host(HostCall::DescriptorReceived, kFd);
  t.Host(HostCall::DescriptorClose, kFd);
  Import(t, CallId::ImportExternalMemory, kFd);
  t.Host(HostCall::DescriptorClose, kFd);
  t.Call(CallId::DestroyExternalMemory).In(0, kImported);
  ExpectSilent(t);
}

// The driver closed it past the wrappers, so what has the number now is unknown.
CUAUDIT_CASE(ClosedAfterImport, TheCensusSawItGone) {
  Trace t = Watched();
  t.Host(HostCall::DescriptorReceived, kFd);
  Import(t, CallId::ImportExternalSemaphore, kFd);
  t.Host(HostCall::DescriptorGone, kFd);
  t.Host(HostCall::DescriptorClose, kFd);
  t.Call(CallId::DestroyExternalSemaphore).In(0, kImported);
  ExpectSilent(t);
}

// Of a dma_buf the manual does not say that the driver takes it over, so the call tells nothing.
CUAUDIT_CASE(ClosedAfterImport, TheImportTakesNothingOver) {
  Trace t = Watched();
  t.Host(HostCall::DescriptorReceived, kFd);
  t.Call(CallId::ImportExternalMemory).Out(0, kImported);
  t.Host(HostCall::DescriptorClose, kFd);
  t.Call(CallId::DestroyExternalMemory).In(0, kImported);
  ExpectSilent(t);
}

CUAUDIT_CASE(ClosedAfterImport, TheProgramIsToldThatTheImportFailed) {
  for (const bool seen : {true, false}) {  // a graphics driver makes descriptors past the wrappers
    Trace t = Watched();
    if (seen) t.Host(HostCall::DescriptorReceived, kFd);
    Import(t, CallId::ImportExternalMemory, kFd).After();
    t.Host(HostCall::DescriptorClose, kFd);
    ExpectSilent(t);
  }
}

// The driver closed the number of the first import, and nobody saw the second file get it.
CUAUDIT_CASE(ClosedAfterImport, TheProgramIsToldThatTheSecondImportOfTheNumberFailed) {
  Trace t = Watched();
  Import(t, CallId::ImportExternalMemory, kFd);
  Import(t, CallId::ImportExternalSemaphore, kFd).After();
  t.Host(HostCall::DescriptorClose, kFd);
  t.Call(CallId::DestroyExternalMemory).In(0, kImported);
  ExpectSilent(t);
}

}  // namespace
}  // namespace cuaudit::testing::block_test
