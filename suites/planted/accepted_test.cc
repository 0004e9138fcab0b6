// SPDX-License-Identifier: MIT
// Misuse that the driver answers with SUCCESS, through the gate as a program would do it: the ledger tells of it.
#define __CUDA_API_VERSION_INTERNAL
#include <unistd.h>

#include "include/cuaudit/semaphore.h"
#include "suites/support/cases/case.h"
#include "suites/support/gated_world.h"

namespace cuaudit::testing::accepted_test {
namespace {

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
