// SPDX-License-Identifier: MIT
// Misuse that the driver answers with SUCCESS, through the gate as a program would do it: the ledger tells of it.
#define __CUDA_API_VERSION_INTERNAL
#include <unistd.h>

#include "include/cuaudit/semaphore.h"
#include "suites/support/cases/case.h"
#include "suites/support/gated_world.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::accepted_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Program {
  faults::GatedWorld gated;
  driver::DriverRef d = gated.driver();
  Program() { gated.Start(); }
  harness::Ledger End() {
    EXPECT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    return harness::Fold(gated.Records());
  }
};

// A driver says success as often as it is asked. The first success is the retry of a release that is said to have failed.
CUAUDIT_CASE(DoubleRelease, AcceptedAfterTheRetryOfADeniedOne) {
  Trace t;
  t.Call(CallId::ImportExternalMemory).Out(0, 0xe0);
  const std::uint64_t denied = t.Call(CallId::DestroyExternalMemory).In(0, 0xe0).After().begin();
  t.Call(CallId::DestroyExternalMemory).In(0, 0xe0);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  t.Call(CallId::DestroyExternalMemory).In(0, 0xe0);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("double_release external_memory"));
  EXPECT_EQ(ledger.violations[0].other.begin, denied);
  EXPECT_FALSE(ledger.violations[0].believed);
}

CUAUDIT_CASE(DoubleRelease, AcceptedAfterOneThatCameTooLate) {
  Also(harness::Rule::UseAfterRelease, driver::Kind::ExternalMemory);
  Trace t;
  t.Retain();
  t.Call(CallId::ImportExternalMemory).Out(0, 0xe0);
  t.ReleasePrimary();
  t.Call(CallId::DestroyExternalMemory).In(0, 0xe0).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  t.Call(CallId::DestroyExternalMemory).In(0, 0xe0);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release external_memory"));
  t.Call(CallId::DestroyExternalMemory).In(0, 0xe0);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release external_memory", "double_release external_memory"));
}

// One denied release is an excuse for the object that a retry took, and for the one that its owner took when it tried again; not for all
// that have the address later.
CUAUDIT_CASE(DoubleRelease, OfEachBufferAfterOneThatWasDenied) {
  for (const unsigned buffers : {1U, 2U, 3U, 4U}) {
    Trace rehearsal;
    Trace trial;
    for (Trace* const t : {&rehearsal, &trial}) {
      t->Alloc(0x1000);
      Step first = t->Free(0x1000).Stack(2);
      if (t == &trial) first.After();
      for (unsigned buffer = 0; buffer < buffers; ++buffer) {
        t->Alloc(0x1000);
        t->Free(0x1000).Stack(3);
        if (t == &trial) t->Free(0x1000).Stack(2).Fails(CUDA_ERROR_INVALID_VALUE);
      }
    }
    const harness::Judgement judgement = Judge(rehearsal, trial);
    if (buffers <= 2) {
      EXPECT_THAT(judgement.findings, IsEmpty());
      continue;
    }
    ASSERT_FALSE(judgement.findings.empty());
    EXPECT_EQ(judgement.findings[0].rule, harness::Rule::DoubleRelease);
  }
}

// On the first device a retain is said to have failed. What is used after the end of another device's context is no matter of that.
CUAUDIT_CASE(UseAfterRelease, InTheContextOfAnotherDeviceThanTheDeniedOne) {
  Trace t;
  t.Retain(0xa, 0);
  t.Retain(0xb, 1);
  t.CreateStream(0x10).Context(0xb);
  t.Retain(0xa, 0).After();
  t.ReleasePrimary(1);
  t.DestroyStream(0x10).Context(0).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  t.ReleasePrimary(0);
  t.ReleasePrimary(0);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("use_after_release stream"));
  EXPECT_FALSE(ledger.violations[0].believed);
}

CUAUDIT_CASE(DoubleRelease, AcceptedOfATexture) {
  for (const int times : {1, 2}) {
    Program p;
    CUdeviceptr memory = 0;
    CUtexObject texture = 0;
    ASSERT_EQ(p.d.MemAlloc(&memory, 4096), CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {memory, CU_AD_FORMAT_FLOAT, 1, 4096};
    const CUDA_TEXTURE_DESC how = {};
    ASSERT_EQ(p.d.TexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
    for (int i = 0; i < times; ++i) EXPECT_EQ(p.d.TexObjectDestroy(texture), CUDA_SUCCESS);
    EXPECT_EQ(p.d.MemFree(memory), CUDA_SUCCESS);
    const harness::Ledger ledger = p.End();
    EXPECT_THAT(Left(ledger), IsEmpty());
    if (times == 1) {
      EXPECT_THAT(Wrong(ledger), IsEmpty());
    }
    if (times == 2) {
      EXPECT_THAT(Wrong(ledger), ElementsAre("double_release texture_object"));
    }
  }
}

CUAUDIT_CASE(OverReleasedReference, AcceptedOfAUserObject) {
  for (const unsigned count : {1U, 2U}) {
    Program p;
    CUuserObject object = nullptr;
    ASSERT_EQ(p.d.UserObjectCreate(
                  &object, nullptr, [](void*) {}, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
              CUDA_SUCCESS);
    EXPECT_EQ(p.d.UserObjectRelease(object, count), CUDA_SUCCESS);
    const harness::Ledger ledger = p.End();
    EXPECT_THAT(Left(ledger), IsEmpty());
    if (count == 1) {
      EXPECT_THAT(Wrong(ledger), IsEmpty());
    }
    if (count == 2) {
      EXPECT_THAT(Wrong(ledger), ElementsAre("over_released_reference user_object"));
    }
  }
}

CUAUDIT_CASE(OverReleasedReference, AcceptedOfAGraph) {
  Program p;
  CUgraph graph = nullptr;
  CUuserObject object = nullptr;
  ASSERT_EQ(p.d.GraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(p.d.UserObjectCreate(
                &object, nullptr, [](void*) {}, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_SUCCESS);
  EXPECT_EQ(p.d.GraphReleaseUserObject(graph, object, 1), CUDA_SUCCESS);
  EXPECT_EQ(p.d.UserObjectRelease(object, 1), CUDA_SUCCESS);
  EXPECT_EQ(p.d.GraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_THAT(Wrong(p.End()), ElementsAre("over_released_reference user_object"));
}

CUAUDIT_CASE(Orphaned, AnImportedSemaphore) {
  for (const bool destroys : {true, false}) {
    Program p;
    CUexternalSemaphore semaphore = nullptr;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC from = {};
    from.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    from.handle.fd = cuaudit_semaphore_create(0);
    ASSERT_EQ(p.d.ImportExternalSemaphore(&semaphore, &from), CUDA_SUCCESS);
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = {};
    signal.params.fence.value = 1;
    EXPECT_EQ(p.d.SignalExternalSemaphoresAsync(&semaphore, &signal, 1, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(p.d.CtxSynchronize(nullptr), CUDA_SUCCESS);
    if (destroys) {
      EXPECT_EQ(p.d.DestroyExternalSemaphore(semaphore), CUDA_SUCCESS);
    }
    const harness::Ledger ledger = p.End();
    EXPECT_THAT(Wrong(ledger), IsEmpty());
    if (destroys) {
      EXPECT_THAT(Left(ledger), IsEmpty());
    }
    if (!destroys) {
      EXPECT_THAT(Left(ledger), ElementsAre("external_semaphore 1 orphaned"));
    }
  }
}

// A copy is another graph: the one it was made of is still the program's.
CUAUDIT_CASE(Leak, AChildGraphThatWasCopied) {
  Program p;
  CUgraph parent = nullptr;
  CUgraph child = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_EQ(p.d.GraphCreate(&parent, 0), CUDA_SUCCESS);
  ASSERT_EQ(p.d.GraphCreate(&child, 0), CUDA_SUCCESS);
  CUgraphNodeParams parameters = {};
  parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
  parameters.graph.graph = child;
#if CUDA_VERSION >= 13000
  ASSERT_EQ(p.d.GraphAddNode(&node, parent, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
#else
  ASSERT_EQ(p.d.GraphAddNode(&node, parent, nullptr, 0, &parameters), CUDA_SUCCESS);
#endif
  EXPECT_EQ(p.d.GraphDestroy(parent), CUDA_SUCCESS);
  const harness::Ledger ledger = p.End();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), ElementsAre("graph 1"));
}

}  // namespace
}  // namespace cuaudit::testing::accepted_test
