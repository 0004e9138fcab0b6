// SPDX-License-Identifier: MIT
// Objects that live longer or shorter than a program may think: references, ranges, contexts in contexts.
#include "suites/support/cases/case.h"

namespace cuaudit::testing::lifetimes_test {
namespace {

using driver::CallId;
using faults::HostCall;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CUAUDIT_CASE(UseAfterRelease, AUserObjectIsNotHeldByTheGraphsOfAnotherAtItsAddress) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  for (int i = 0; i < 2; ++i) {
    t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
    if (i == 0) t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  }
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
  t.Call(CallId::UserObjectRetain).In(0, 0x9).In(1, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release user_object"));
}

CUAUDIT_CASE(UseAfterRelease, AReleasedAllocationIsMapped) {
  Trace t;
  t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  t.Call(CallId::MemRelease).In(0, 0x5);
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release physical_memory"));
}

CUAUDIT_CASE(Leak, TheMappingBehindTheOneThatWasUnmapped) {
  Trace t;
  t.Call(CallId::MemMap).In(0, 0x10000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemMap).In(0, 0x11000).In(1, 0x1000).In(3, 0x5);
  t.Call(CallId::MemUnmap).In(0, 0x10000).In(1, 0x1000);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("mapping 1"));
}

CUAUDIT_CASE(DoubleRelease, OfAPoolThatAQueryAnsweredToo) {
  Trace t;
  t.Call(CallId::MemPoolCreate).Out(0, 0x33);
  t.Call(CallId::DeviceGetMemPool).Out(0, 0x33);
  t.Call(CallId::MemPoolDestroy).In(0, 0x33);
  t.Call(CallId::MemPoolDestroy).In(0, 0x33).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("double_release memory_pool"));
}

CUAUDIT_CASE(Leak, OneOfTwoAttachmentsOfAContext) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.Call(CallId::CtxAttach).Out(0, 0xa);
  t.Call(CallId::CtxDetach).In(0, 0xa).Context(0xa);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("context 1"));
  const Aside aside;
  t.Call(CallId::CtxAttach).Out(0, 0xa);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  EXPECT_THAT(Left(t.Fold()), IsEmpty()) << "destroying ends it for all";
}

CUAUDIT_CASE(ContextStack, ADestroyedContextIsOffTheStack) {
  Trace t;
  t.Push(0xd).Context(0xc);
  t.Pop(0xd).Context(0xd);
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0xc);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  t.Pop(0xc).Context(0xc);  // the caller's
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

CUAUDIT_CASE(Leak, ALibraryThatCouldNotBeClosed) {
  Trace t;
  t.Host(HostCall::Dlopen, 0x7);
  t.Host(HostCall::Dlclose, 0x7).Fails(CUDA_ERROR_UNKNOWN);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("dlopen_reference 1"));
}

CUAUDIT_CASE(Orphaned, WhatOutlivedItsGreenContextDiesWithThePrimaryOne) {
  Trace t;
  t.Retain();
  t.Call(CallId::GreenCtxCreate).Out(0, 0x6e).In(1, 0x77).In(2, 0).In(3, 1);
  t.Call(CallId::CtxFromGreenCtx).Out(0, 0x6f).In(1, 0x6e);
  t.Call(CallId::EventCreate).Out(0, 0x11).Context(0x6f);
  t.Call(CallId::GreenCtxDestroy).In(0, 0x6e);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("event 1 orphaned"));
}

#if CUDA_VERSION >= 12050
CUAUDIT_CASE(Leak, MemoryOfAGreenContextsStreamOutlivesThePrimaryOne) {
  Trace t;
  t.Retain();
  t.Call(CallId::GreenCtxCreate).Out(0, 0x6e).In(1, 0x77).In(2, 0).In(3, 1);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, 0x51).In(1, 0x6e).In(2, 1).In(3, 0);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x51);
  t.DestroyStream(0x51);
  t.Call(CallId::GreenCtxDestroy).In(0, 0x6e);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}
#endif

// The plan is to blame for the one whose destruction it refused, also where its handle came back.
CUAUDIT_CASE(ReleaseRefused, AChildOfAContextThatIsGone) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.ReleasePrimary();
  t.Retain();
  t.CreateStream(0x10);
  t.DestroyStream(0x10);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 release_refused"));
}

}  // namespace
}  // namespace cuaudit::testing::lifetimes_test
