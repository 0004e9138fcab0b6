// SPDX-License-Identifier: MIT
// Lifecycles that look suspicious and are right: references, contexts and graphs.
#include "suites/support/cases/case.h"

namespace cuaudit::testing::references_test {
namespace {

using driver::CallId;
using faults::HostCall;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CUAUDIT_CASE(OverReleasedPrimary, EveryRetainIsReleasedByWhomever) {
  Trace t;
  t.Retain().Thread(1);
  t.Retain().Thread(2);
  t.ReleasePrimary().Thread(3);
  t.ReleasePrimary().Thread(1);
  ExpectSilent(t);
}

// The second thread retains while the first is still releasing: the context never dies.
CUAUDIT_CASE(OverReleasedPrimary, HandedOverBetweenThreads) {
  Trace t;
  t.Retain().Thread(1).At(1, 2);
  t.CreateStream(0x10).At(3, 4);
  t.ReleasePrimary().Thread(1).At(10, 13);
  t.Retain().Thread(2).At(11, 14);
  t.DestroyStream(0x10).At(20, 21);
  t.ReleasePrimary().Thread(2).At(22, 23);
  ExpectSilent(t);
}

CUAUDIT_CASE(OverReleasedPrimary, ReleasedAfterAReset) {
  Trace t;
  t.Retain();
  t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0);
  t.ReleasePrimary();
  ExpectSilent(t);
}

// The call answers the context and says that it failed. A program that goes by the context gives back what the driver counts, others leave
// it.
CUAUDIT_CASE(OverReleasedPrimary, AReferenceThatIsSaidNotToBeThere) {
  for (const bool beside : {false, true}) {
    Trace t;
    if (beside) t.Retain();
    t.Retain().After();
    t.ReleasePrimary().Refused();
    t.ReleasePrimary();
    if (beside) t.ReleasePrimary();
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(Orphaned, TheRuntimeHoldsThePrimaryContextToo) {
  Trace t;
  t.CreateStream(0x10);  // in a context that is current although nobody retained it
  t.Retain();
  t.ReleasePrimary();
  t.Call(CallId::StreamSynchronize).In(0, 0x10);
  t.DestroyStream(0x10);
  ExpectSilent(t);
}

CUAUDIT_CASE(Orphaned, KindsThatOutliveTheirContext) {
  Trace t;
  t.Retain();
  t.Call(CallId::MemPoolCreate).Out(0, 0x20);
  t.Call(CallId::GraphCreate).Out(0, 0x21);
  t.Call(CallId::MemCreate).Out(0, 0x22).In(1, 0x1000);
  t.ReleasePrimary();
  t.Call(CallId::MemRelease).In(0, 0x22);
  t.Call(CallId::GraphDestroy).In(0, 0x21);
  t.Call(CallId::MemPoolDestroy).In(0, 0x20);
  ExpectSilent(t);
}

CUAUDIT_CASE(OverReleasedReference, RetainedAndReleasedInSteps) {
  Trace t;
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 2);
  t.Call(CallId::UserObjectRetain).In(0, 0x9).In(1, 3);
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 4);
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  t.Call(CallId::MemRetainAllocationHandle).Out(0, 0x5);
  t.Call(CallId::MemRelease).In(0, 0x5);
  t.Call(CallId::MemRelease).In(0, 0x5);
  t.Host(HostCall::Dlopen, 0x7);
  t.Host(HostCall::Dlopen, 0x7);
  t.Host(HostCall::Dlclose, 0x7);
  t.Host(HostCall::Dlclose, 0x7);
  ExpectSilent(t);
}

// Opened, or initialised by PTHREAD_MUTEX_INITIALIZER, where nobody saw it: the C library had something to release.
CUAUDIT_CASE(DoubleRelease, WhatCameBackUnseen) {
  Trace t;
  t.Host(HostCall::Dlopen, 0x7);
  t.Host(HostCall::Dlclose, 0x7).In(2, 1);
  t.Host(HostCall::Dlclose, 0x7).In(2, 1);
  t.Host(HostCall::MutexInit, 0x5010);
  t.Host(HostCall::MutexDestroy, 0x5010).In(2, 1);
  t.Host(HostCall::MutexDestroy, 0x5010).In(2, 1);
  ExpectSilent(t);
}

// The call answers the handle and says that it failed. The reference may be given back, in one or two attempts, or left.
CUAUDIT_CASE(DoubleRelease, AReferenceThatIsSaidNotToBeThere) {
  for (const bool gives_back : {true, false}) {
    Trace t;
    t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
    t.Call(CallId::MemRetainAllocationHandle).Out(0, 0x5).After();
    t.Call(CallId::MemRelease).In(0, 0x5);
    if (gives_back) {
      t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5).Fails(CUDA_ERROR_OUT_OF_MEMORY);
      t.Call(CallId::MemRelease).In(0, 0x5).Refused(CUDA_ERROR_INVALID_VALUE);
      t.Call(CallId::MemRelease).In(0, 0x5);
    }
    ExpectSilent(t);
  }
}

// Handed over: opened by one, closed by another.
CUAUDIT_CASE(OverReleasedReference, ALibraryIsClosedByAnother) {
  Trace t;
  t.Host(HostCall::Dlopen, 0x7, 0xA);
  t.Host(HostCall::Dlopen, 0x7, 0xB);
  t.Host(HostCall::Dlclose, 0x7, 0xC);
  t.Host(HostCall::Dlclose, 0x7, 0xA);
  ExpectSilent(t);
}

CUAUDIT_CASE(OverReleasedReference, AMovedReferenceDiesWithItsGraphs) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  t.Call(CallId::GraphClone).Out(0, 0x2).In(1, 0x1);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  t.Call(CallId::UserObjectRetain).In(0, 0x9).In(1, 1);  // the clone keeps it alive
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  t.Call(CallId::GraphReleaseUserObject).In(0, 0x2).In(1, 0x9).In(2, 1);
  t.Call(CallId::GraphDestroy).In(0, 0x2);
  ExpectSilent(t);
}

CUAUDIT_CASE(OverReleasedReference, ARefusedMoveLeavesTheReferenceWithTheCaller) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE).Refused();
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, CreatedAndDestroyedWithoutPop) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, AFloatingContext) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.Pop(0xa).Context(0xa);
  t.Push(0xa).Context(0);
  t.Pop(0xa).Context(0xa);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, DestroyedWhilePushed) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Thread(1);
  t.Push(0xa).Context(0).Thread(2);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Thread(1);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, SetCurrentAloneIsNeverCounted) {
  Trace t;
  t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0);
  t.Call(CallId::CtxSetCurrent).In(0, 0xb).Context(0xa);
  t.Pop(0xb).Context(0xb);
  t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, SetCurrentNullPopsThePushed) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xa);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, PoppedByADestructorWhenTheDriverIsGone) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Event(faults::ProcessEvent::Exit);
  t.Pop(0).Context(0xa).Fails(CUDA_ERROR_DEINITIALIZED);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, TheCallersContextIsTakenAwayAndPutBack) {
  Trace t;
  t.Pop(0xc).Context(0xc);
  t.Push(0xa).Context(0);
  t.Pop(0xa).Context(0xa);
  t.Push(0xc).Context(0);
  ExpectSilent(t);
}

CUAUDIT_CASE(ContextStack, ACyclePutsBackOrDestroysWhatItPops) {
  for (const bool destroys : {false, true}) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xc).Context(0);
    t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
    t.Pop(0xc).Context(0xc).Cycle(1);
    if (destroys) {
      t.Call(CallId::CtxDestroy_v2).In(0, 0xc).Context(0).Cycle(1);
      t.Call(CallId::CtxCreate_v2).Out(0, 0xd).Context(0).Cycle(1);
    } else {
      t.Push(0xa).Context(0).Cycle(1);
      t.Pop(0xa).Context(0xa).Cycle(1);
      t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0).Cycle(1);
    }
    t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
    t.Call(CallId::CtxDestroy_v2).In(0, destroys ? 0xd : 0xc).Context(destroys ? 0xd : 0xc);
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(ContextStack, ARefusedPopIsNotTheProgramsImbalance) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Push(0xb).Context(0xa);
  t.Pop(0).Context(0xb).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.Pop(0xb).Context(0xb);  // meant for the outer one
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), ElementsAre("context_stack_entry 1 release_refused"));
}

CUAUDIT_CASE(ContextStack, ARefusedPopIsTriedAgain) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Pop(0).Context(0xa).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.Pop(0xa).Context(0xa);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, NodesDieWithTheirGraph) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::GraphAddEmptyNode).Out(0, 0x2).In(1, 0x1);
  t.Call(CallId::GraphAddEmptyNode).Out(0, 0x3).In(1, 0x1);
  t.Call(CallId::GraphDestroyNode).In(0, 0x2);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  ExpectSilent(t);
  const harness::Ledger ledger = t.Fold();
  for (const harness::Object& object : ledger.objects) EXPECT_EQ(object.state, harness::State::Released);
}

CUAUDIT_CASE(UseAfterRelease, TheOwnerLivesUntilTheLastLaunch) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  const Step node = t.Call(CallId::GraphAddKernelNode_v2).Out(0, 0x2).In(1, 0x1);
  t.Arguments(node, {0x10000});
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x3).In(1, 0x1);
  t.Call(CallId::GraphLaunch).In(0, 0x3);
  t.Call(CallId::GraphLaunch).In(0, 0x3);
  t.Call(CallId::GraphExecDestroy).In(0, 0x3);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  t.Free(0x10000);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, AnUpdatedNodeForgetsTheOldOwner) {
  Trace t;
  t.Alloc(0x10000);
  t.Alloc(0x20000);
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  const Step node = t.Call(CallId::GraphAddKernelNode_v2).Out(0, 0x2).In(1, 0x1);
  t.Arguments(node, {0x10000});
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x3).In(1, 0x1);
  const Step set = t.Call(CallId::GraphExecKernelNodeSetParams_v2).In(0, 0x3).In(1, 0x2);
  t.Arguments(set, {0x20000});
  t.Free(0x10000);
  t.Call(CallId::GraphLaunch).In(0, 0x3);
  t.Call(CallId::GraphExecDestroy).In(0, 0x3);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  t.Free(0x20000);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, ADestroyedNodeTakesItsArgumentsAlong) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  const Step node = t.Call(CallId::GraphAddKernelNode_v2).Out(0, 0x2).In(1, 0x1);
  t.Arguments(node, {0x10000});
  t.Call(CallId::GraphDestroyNode).In(0, 0x2);
  t.Free(0x10000);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x3).In(1, 0x1);
  t.Call(CallId::GraphLaunch).In(0, 0x3);
  t.Call(CallId::GraphExecDestroy).In(0, 0x3);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, MemoryAllocatedAndFreedInsideACapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x8);
  t.Call(CallId::MemAllocAsync).Out(0, 0x10000).In(1, 0x1000).In(2, 0x8);
  t.Call(CallId::MemsetD8Async).In(0, 0x10000).In(3, 0x8);
  t.Call(CallId::MemFreeAsync).In(0, 0x10000).In(1, 0x8);
  t.Call(CallId::StreamEndCapture).In(0, 0x8).Out(1, 0x1);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x3).In(1, 0x1);
  t.Call(CallId::GraphLaunch).In(0, 0x3).In(1, 0x8);
  t.Call(CallId::GraphExecDestroy).In(0, 0x3);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  ExpectSilent(t);
}

CUAUDIT_CASE(DoubleRelease, ACaptureIntoAGraphMakesNoSecondGraph) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::StreamBeginCaptureToGraph).In(0, 0x8).In(1, 0x1);
  t.Call(CallId::StreamEndCapture).In(0, 0x8).Out(1, 0x1);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  ExpectSilent(t);
}

CUAUDIT_CASE(UseAfterRelease, AnUpdatedChildGraphForgetsTheOldOne) {
  Trace t;
  t.Alloc(0x10000);
  t.Alloc(0x20000);
  for (const std::uint64_t child : {0x1U, 0x2U}) {
    t.Call(CallId::GraphCreate).Out(0, child);
    const Step node = t.Call(CallId::GraphAddKernelNode_v2).Out(0, child << 4).In(1, child);
    t.Arguments(node, {child << 16});
  }
  t.Call(CallId::GraphCreate).Out(0, 0x5);
  t.Call(CallId::GraphAddChildGraphNode).Out(0, 0x51).In(1, 0x5).In(4, 0x1);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x6).In(1, 0x5);
  t.Call(CallId::GraphExecChildGraphNodeSetParams).In(0, 0x6).In(1, 0x51).In(2, 0x2);
  t.Free(0x10000);
  t.Call(CallId::GraphLaunch).In(0, 0x6);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  const Aside aside;
  t.Free(0x20000);
  t.Call(CallId::GraphLaunch).In(0, 0x6);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

// A handle is no address, whatever lies above it.
CUAUDIT_CASE(DestroyedUnderUser, AStreamsHandleBelowRegisteredMemoryThatIsGone) {
  Trace t;
  t.Host(HostCall::Allocate, 0x10000, 0x4000);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x10000).In(1, 0x4000);
  t.Host(HostCall::Deallocate, 0x10000);
  t.Call(CallId::MemcpyDtoDAsync_v2).In(0, 0x700000).In(1, 0x800000).In(2, 0x4000).In(3, 0xf000);
  t.Call(CallId::MemHostUnregister).In(0, 0x10000);
  ExpectSilent(t);
}

// One thread's free has not returned yet when another is given the same address.
CUAUDIT_CASE(DoubleRelease, AHostBlockIsRecycledAcrossThreads) {
  Trace t;
  t.Host(HostCall::Allocate, 0x5000, 64).Thread(1).At(1, 2);
  t.Host(HostCall::Deallocate, 0x5000).Thread(1).At(10, 13);
  t.Host(HostCall::Allocate, 0x5000, 64).Thread(2).At(11, 12);
  t.Host(HostCall::Deallocate, 0x5000).Thread(2).At(20, 21);
  ExpectSilent(t);
}

CUAUDIT_CASE(Leak, AThreadThatDetachesItself) {
  Trace t;
  t.Host(HostCall::ThreadCreate, 0x7001);
  t.Host(HostCall::ThreadDetachSelf, 0x7001);
  ExpectSilent(t);
}

}  // namespace
}  // namespace cuaudit::testing::references_test
