// SPDX-License-Identifier: MIT
// Descriptors that the driver makes for the program or takes over from it, each in the right hands.
#include "suites/support/cases/descriptors.h"

#include "suites/support/cases/case.h"

namespace cuaudit::testing::descriptors_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::HostCall;
using ::testing::IsEmpty;

constexpr std::uint64_t kFd = 0x6;

void ExpectSilent(const Trace& t) {
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), IsEmpty());
}

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
  Trace t = Watched();
  t.Host(HostCall::DescriptorReceived, kFd);
  Import(t, CallId::ImportExternalMemory, kFd).After();
  t.Host(HostCall::DescriptorClose, kFd);
  ExpectSilent(t);
}

}  // namespace
}  // namespace cuaudit::testing::descriptors_test
