// SPDX-License-Identifier: MIT
// Lifecycles that look suspicious and are right: handles and addresses.
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"

namespace cuaudit::testing::handles_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::HostCall;
using ::testing::ElementsAre;

CUAUDIT_CASE(Leak, EveryKindReleasedByItsOwnCall) {
  for (const KindCase& c : KindCases()) {
    const CaseRow row(c.kind);
    Trace t;
    c.acquire(t);
    c.release(t);
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(Leak, AcquisitionsThatNeverSucceeded) {
  Trace t;
  t.CreateStream(0).Refused();
  t.CreateStream(0).Fails(CUDA_ERROR_OUT_OF_MEMORY);
  t.CreateStream(0x10).Unfinished();
  t.CreateStream(0).After();  // the caller cannot know the stream that the driver made
  t.Retain().After();
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, ReleasedByTheExitHandlers) {
  Trace t;
  t.CreateStream(0x10);
  t.Event(faults::ProcessEvent::Exit);
  t.DestroyStream(0x10);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, TheDriverWasAlreadyGone) {
  Trace t;
  t.CreateStream(0x10);
  t.Event(faults::ProcessEvent::Exit);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_DEINITIALIZED);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, ThreeKindsOfPointerShareOneFree) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::MemAllocManaged).Out(0, 0x20000).In(1, 0x1000);
  t.Call(CallId::MemAllocAsync).Out(0, 0x30000).In(1, 0x1000);
  t.Free(0x10000);
  t.Free(0x20000);
  t.Free(0x30000);
  t.Alloc(0x10000);
  t.Call(CallId::MemFreeAsync).In(0, 0x10000);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, OneUnmapReleasesTheWholeRange) {
  Trace t;
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemMap).In(0, 0x11000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x2000);
  ExpectSilent(t);
}

// Two threads: the new owner's creation returns before the old owner's destruction does.
CUAUDIT_CASE(DoubleRelease, AHandleIsRecycledAcrossThreads) {
  Trace t;
  t.CreateStream(0x10).Thread(1).At(1, 2);
  t.DestroyStream(0x10).Thread(1).At(10, 13);
  t.CreateStream(0x10).Thread(2).At(9, 12);
  t.Call(CallId::StreamSynchronize).In(0, 0x10).Thread(2).At(14, 15);
  t.DestroyStream(0x10).Thread(2).At(16, 17);
  ExpectSilent(t);
}

CUAUDIT_CASE(DoubleRelease, SlotOrderIsNotTime) {
  Trace t;
  t.DestroyStream(0x10).At(20, 21);
  t.CreateStream(0x10).At(10, 11);
  ExpectSilent(t);
}

// `after`: the object is gone and the program was told that it is not. What it then does with it, it does in good faith.
CUAUDIT_CASE(DoubleRelease, AReleaseThatIsSaidToHaveFailedIsTriedAgain) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).After();
  t.Call(CallId::StreamSynchronize).In(0, 0x10).Fails(CUDA_ERROR_INVALID_HANDLE);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_HANDLE);
  t.Alloc(0x1000);
  t.Free(0x1000).After();
  t.Free(0x1000).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Retain();
  t.ReleasePrimary().After();
  t.ReleasePrimary().Fails(CUDA_ERROR_INVALID_CONTEXT);
  ExpectSilent(t);
}

CUAUDIT_CASE(DoubleRelease, ARefusedReleaseIsTriedAgain) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Refused(CUDA_ERROR_INVALID_HANDLE);
  t.DestroyStream(0x10);
  ExpectSilent(t);
}

CUAUDIT_CASE(DoubleRelease, WhatMayHaveBeenMappedIsUnmapped) {
  Trace t;
  t.Call(CallId::MemAddressReserve).Out(0, 0x10000).In(1, 0x1000).In(3, 0x10000);
  for (int i = 0; i < 2; ++i) {
    t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
    t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000);
    t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5).Refused(CUDA_ERROR_OUT_OF_MEMORY);
    t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000);
  }
  t.Call(CallId::MemAddressFree).In(0, 0x10000).In(1, 0x1000);
  ExpectSilent(t);
}

CUAUDIT_CASE(DoubleRelease, HostBlocksComeBackAtTheSameAddress) {
  Trace t;
  for (int i = 0; i < 3; ++i) {
    t.Host(HostCall::Allocate, 0x5000, 64);
    t.Host(HostCall::Deallocate, 0x5000);
  }
  ExpectSilent(t);
}

// A driver accepts that, and the level stays (mipmapped.level_destroyed_twice).
CUAUDIT_CASE(DoubleRelease, LevelOfAMipmappedArray) {
  Trace t;
  t.Call(CallId::MipmappedArrayCreate).Out(0, 0x40);
  t.Call(CallId::MipmappedArrayGetLevel).Out(0, 0x41).In(1, 0x40);
  t.Call(CallId::ArrayDestroy).In(0, 0x41);
  t.Call(CallId::ArrayDestroy).In(0, 0x41);
  t.Call(CallId::MemcpyHtoA).In(0, 0x41);
  t.Call(CallId::MipmappedArrayDestroy).In(0, 0x40);
  ExpectSilent(t);
}

CUAUDIT_CASE(UnknownHandle, NullAndHandlesFromQueries) {
  Trace t;
  t.Free(0);
  t.Call(CallId::MemFreeHost).In(0, 0).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Host(HostCall::Deallocate, 0);
  t.Call(CallId::DeviceGetMemPool).Out(0, 0x33);
  t.Call(CallId::MemPoolDestroy).In(0, 0x33).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::MipmappedArrayGetLevel).Out(0, 0x34);
  t.Call(CallId::ArrayDestroy).In(0, 0x34).Fails(CUDA_ERROR_INVALID_HANDLE);
  t.Call(CallId::GraphicsSubResourceGetMappedArray).Out(0, 0x35);
  t.Call(CallId::ArrayDestroy).In(0, 0x35).Fails(CUDA_ERROR_INVALID_HANDLE);
  t.DestroyStream(0).Fails(CUDA_ERROR_INVALID_HANDLE);
  ExpectSilent(t);
}

CUAUDIT_CASE(UnknownHandle, TheDriverVouchesForWhatTheRuntimeMade) {
  Trace t;
  t.DestroyStream(0x77);
  t.Free(0x88000);
  ExpectSilent(t);
}

// A node of a clone, which no call made, of a graph that has memory nodes; memory of before in a context that was lost.
CUAUDIT_CASE(UnknownHandle, TheDriverSpeaksOfSomethingElse) {
  Trace t;
  t.Call(CallId::GraphDestroyNode).In(0, 0x61).Fails(CUDA_ERROR_NOT_SUPPORTED);
  t.Free(0x88000).Fails(CUDA_ERROR_ILLEGAL_ADDRESS);
  ExpectSilent(t);
}

CUAUDIT_CASE(UnknownHandle, HostThingsOlderThanTheProbe) {
  Trace t;
  t.Host(HostCall::Deallocate, 0x5000);
  t.Host(HostCall::Dlclose, 0x6000);
  t.Host(HostCall::MutexDestroy, 0x7000);
  ExpectSilent(t);
}

// The other threads of a program that ends are stopped wherever they are.
CUAUDIT_CASE(UnknownHandle, TheProgramEndsWhileAnotherThreadFrees) {
  Trace t;
  t.Host(HostCall::Deallocate, 0x5000).Unfinished().Thread(7);
  t.Event(faults::ProcessEvent::Exit);
  ExpectSilent(t);
}

CUAUDIT_CASE(UnknownHandle, TheProgramDiesInTheFreeOfItsOwnBlock) {
  Trace t;
  t.Host(HostCall::Allocate, 0x5000, 64);
  t.Host(HostCall::Deallocate, 0x5000).Unfinished();
  ExpectSilent(t);
}

CUAUDIT_CASE(UnknownHandle, TheChildReleasesWhatItsParentMade) {
  Trace t;
  t.CreateStream(0x10);
  t.Retain();
  t.Event(faults::ProcessEvent::Fork, 200, kProcess);
  t.DestroyStream(0x10).Process(200).Fails(CUDA_ERROR_NOT_INITIALIZED);
  t.ReleasePrimary().Process(200).Fails(CUDA_ERROR_NOT_INITIALIZED);
  t.DestroyStream(0x10);
  t.ReleasePrimary();
  ExpectSilent(t);
}

CUAUDIT_CASE(UnknownHandle, MemoryThatAGraphNodeAllocated) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::GraphAddMemAllocNode).Out(0, 0x2).In(1, 0x1);
  t.Free(0x90000).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, TheAddressBelongsToANewAllocation) {
  Trace t;
  t.Alloc(0x10000, 0x2000);
  t.Free(0x10000);
  t.Alloc(0x11000, 0x1000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x11800).In(2, 1);
  t.Free(0x11000);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, TheAddressBelongsToTheHostNow) {
  Trace t;
  t.Alloc(0x10000, 0x2000);
  t.Free(0x10000);
  t.Host(HostCall::Allocate, 0x10000, 0x1000);
  t.Call(CallId::Memcpy).In(0, 0x10010).In(1, 0x10020).In(2, 8);
  t.Host(HostCall::Deallocate, 0x10000);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, OneAllocationSeenTwice) {
  Trace t;
  t.Alloc(0x10000, 0x1000);
  t.Call(CallId::MemPoolImportPointer).Out(0, 0x10800);
  t.Call(CallId::MemFreeAsync).In(0, 0x10800);
  t.Call(CallId::MemsetD8_v2).In(0, 0x10800).In(2, 1);
  t.Free(0x10000);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, AskingAboutAnAddressIsNoUse) {
  Trace t;
  t.Alloc(0x10000);
  t.Free(0x10000);
  t.Call(CallId::PointerGetAttribute).In(2, 0x10000).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::MemAddressReserve).Out(0, 0x10000).In(1, 0x1000).In(3, 0x10000);
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000);
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemSetAccess).In(0, 0x10000).In(1, 0x1000);
  t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000);
  t.Call(CallId::MemAddressFree).In(0, 0x10000).In(1, 0x1000);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, FreedInStreamOrderWhileWorkIsPending) {
  Trace t;
  t.CreateStream(0x10);
  t.Call(CallId::MemAllocAsync).Out(0, 0x10000).In(1, 0x1000).In(2, 0x10);
  t.Call(CallId::MemsetD8Async).In(0, 0x10000).In(3, 0x10);
  t.Call(CallId::MemFreeAsync).In(0, 0x10000).In(1, 0x10);
  t.Call(CallId::StreamSynchronize).In(0, 0x10);
  t.DestroyStream(0x10);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, ADestructionThatTheDriverDeclined) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_VALUE);
  t.Call(CallId::StreamSynchronize).In(0, 0x10);
  t.DestroyStream(0x10);
  ExpectSilent(t);
}

CUAUDIT_CASE(WrongContext, StreamsMayBeDestroyedFromAnotherContext) {
  Trace t;
  t.CreateStream(0x10).Context(0xa);
  t.DestroyStream(0x10).Context(0xb);
  t.Alloc(0x1000).Context(0xa);
  t.Free(0x1000).Context(0);
  ExpectSilent(t);
}

CUAUDIT_CASE(WrongContext, ARefusedReleaseSaysNothingAboutTheContext) {
  Trace t;
  t.Call(CallId::ModuleLoadData).Out(0, 0x30).Context(0xa);
  t.Call(CallId::ModuleUnload).In(0, 0x30).Context(0xb).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.Call(CallId::ModuleUnload).In(0, 0x30).Context(0xa);
  ExpectSilent(t);
}

CUAUDIT_CASE(MutexFreed, DestroyedBeforeItsMemoryWasFreed) {
  Trace t;
  t.Host(HostCall::Allocate, 0x5000, 64);
  t.Host(HostCall::MutexInit, 0x5010);
  t.Host(HostCall::MutexDestroy, 0x5010);
  t.Host(HostCall::Deallocate, 0x5000);
  ExpectSilent(t);
}

CUAUDIT_CASE(MutexLocked, DestroyedAgainAfterUnlock) {
  Trace t;
  for (int i = 0; i < 2; ++i) {
    t.Host(HostCall::MutexInit, 0x5010);
    t.Host(HostCall::MutexDestroy, 0x5010);
  }
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, AGlobalOfAModuleWhereMemoryWasFreed) {
  Trace t;
  t.Alloc(0x10000, 0x1000);
  t.Free(0x10000);
  t.Call(CallId::ModuleLoadData).Out(0, 0x77);
  t.Call(CallId::ModuleGetGlobal_v2).Out(0, 0x10100).Out(1, 64).In(2, 0x77);
  t.Call(CallId::MemcpyHtoD_v2).In(0, 0x1013f).In(2, 1);
  t.Call(CallId::ModuleUnload).In(0, 0x77);
  ExpectSilent(t);
  const Aside aside;
  t.Call(CallId::MemcpyHtoD_v2).In(0, 0x10140).In(2, 1);  // past the global
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, ImportedMemoryWhereMemoryWasFreed) {
  Trace t;
  t.Alloc(0x10000, 0x10000);
  t.Free(0x10000);
  t.Call(CallId::IpcOpenMemHandle_v2).Out(0, 0x10000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x14000).In(2, 16);
  t.Call(CallId::IpcCloseMemHandle).In(0, 0x10000);
  t.Alloc(0x40000, 0x10000);
  t.Free(0x40000);
  t.Call(CallId::ExternalMemoryGetMappedBuffer).Out(0, 0x40000).In(1, 0x5);
  t.Call(CallId::MemsetD8_v2).In(0, 0x44000).In(2, 16);
  t.Free(0x40000);
  ExpectSilent(t);
}

// What the host does with the addresses is only known when its allocations are recorded.
CUAUDIT_CASE(UseAfterRelease, TheHostReusesPinnedAddresses) {
  for (const bool probed : {false, true}) {
    Trace t;
    t.Call(CallId::MemHostAlloc).Out(0, 0x20000).In(1, 0x1000);
    t.Call(CallId::MemFreeHost).In(0, 0x20000);
    if (probed) t.Host(HostCall::Allocate, 0x20040, 0x100);
    t.Call(CallId::Memcpy).In(0, 0x20080).In(1, 0x500000).In(2, 16);
    if (probed) t.Host(HostCall::Deallocate, 0x20040);
    ExpectSilent(t);
    const Aside aside;
    t.Call(CallId::Memcpy).In(0, 0x20800).In(1, 0x500000).In(2, 16);
    EXPECT_EQ(Wrong(t.Fold()).size(), probed ? 1U : 0U);
  }
}

CUAUDIT_CASE(UseAfterRelease, PinnedMemoryWhileItLives) {
  const CaseRow row(driver::Kind::PinnedMemory);
  Trace t;
  t.Host(HostCall::Allocate, 0x5000, 64);
  t.Call(CallId::MemHostAlloc).Out(0, 0x20000).In(1, 0x1000);
  t.Call(CallId::MemsetD8_v2).In(0, 0x20010).In(2, 16);
  t.Call(CallId::MemFreeHost).In(0, 0x20000);
  t.Host(HostCall::Deallocate, 0x5000);
  ExpectSilent(t);
}

// The buffer outlives the handle that it was mapped by.
CUAUDIT_CASE(UseAfterRelease, ExternalMemoryMappedWhileItLives) {
  const CaseRow row(driver::Kind::ExternalMemory);
  Trace t;
  t.Call(CallId::ImportExternalMemory).Out(0, 0x5);
  t.Call(CallId::ExternalMemoryGetMappedBuffer).Out(0, 0x10000).In(1, 0x5);
  t.Call(CallId::DestroyExternalMemory).In(0, 0x5);
  t.Call(CallId::MemsetD8_v2).In(0, 0x10000).In(2, 16);
  t.Free(0x10000);
  ExpectSilent(t);
}

}  // namespace
}  // namespace cuaudit::testing::handles_test
