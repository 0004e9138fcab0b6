// SPDX-License-Identifier: MIT
// What graphs do to memory and to order: lifetimes among the steps, refused launches, value waits, and who the legacy stream waits for.
#include <gtest/gtest.h>

#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::graph_misuse_test {
namespace {

using driver::MisuseRule;

constexpr std::size_t kBytes = 4096;

class Graphed : public Witnessed {
 public:
  Graphed() {
    EXPECT_OK(d.GraphCreate(&graph, 0));
    EXPECT_OK(d.CtxGetCurrent(&context));
  }
  CUgraphNode Alloc(std::size_t bytes = kBytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.bytesize = bytes;
    CUgraphNode node = nullptr;
    EXPECT_OK(d.GraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters));
    address = parameters.dptr;
    return node;
  }
  CUgraphNode Fill(CUgraphNode behind) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = address;
    fill.elementSize = 1;
    fill.width = 64;
    fill.height = 1;
    CUgraphNode node = nullptr;
    EXPECT_OK(d.GraphAddMemsetNode(&node, graph, &behind, behind == nullptr ? 0 : 1, &fill, context));
    return node;
  }
  void Free(CUgraphNode behind) {
    CUgraphNode node = nullptr;
    EXPECT_OK(d.GraphAddMemFreeNode(&node, graph, &behind, 1, address));
  }
  CUgraphExec Instantiate() {
    CUgraphExec executable = nullptr;
    EXPECT_OK(d.GraphInstantiateWithFlags(&executable, graph, 0));
    return executable;
  }
  std::uint64_t Attribute(CUgraphMem_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_OK(d.DeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
  }
  CUgraph graph = nullptr;
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
};

TEST(GraphLifetime, AllocatedUsedAndFreedInOrderIsSilent) {
  Graphed w;
  w.At(1);
  const CUgraphNode alloc = w.Alloc();
  w.Free(w.Fill(alloc));
  CUgraphExec executable = w.Instantiate();
  CUstream a = w.Stream();
  CUstream b = w.Stream();
  EXPECT_OK(w.At(2).GraphLaunch(executable, a));
  EXPECT_OK(w.At(3).GraphLaunch(executable, a));
  EXPECT_OK(w.At(4).GraphLaunch(executable, b));
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  EXPECT_OK(w.At(5).GraphLaunch(executable, b));
  w.ExpectNone();
}

TEST(GraphLifetime, AFillThatNothingOrdersBeforeTheFreeIsTold) {
  Graphed w;
  const CUgraphNode alloc = w.Alloc();
  w.At(2);
  (void)w.Fill(alloc);
  w.At(3);
  w.Free(alloc);
  EXPECT_OK(w.At(4).GraphLaunch(w.Instantiate(), w.Stream()));
  w.ExpectOne(MisuseRule::FreedInUse, 3, 2);
}

TEST(GraphLifetime, AFillThatNothingOrdersAfterTheAllocationIsTold) {
  Graphed w;
  w.At(1);
  (void)w.Alloc();
  w.At(2);
  const CUgraphNode fill = w.Fill(nullptr);
  (void)fill;
  EXPECT_OK(w.At(4).GraphLaunch(w.Instantiate(), w.Stream()));
  w.ExpectOne(MisuseRule::UsedBeforeAllocated, 2, 1);
}

// Graph A allocates, graph B fills and frees.
void LaunchPair(Graphed* w, CUstream a, CUstream b) {
  CUgraph second = nullptr;
  (void)w->Alloc();
  CUgraphExec first = w->Instantiate();
  EXPECT_OK(w->d.GraphCreate(&second, 0));
  w->graph = second;
  w->Free(w->Fill(nullptr));
  CUgraphExec behind = w->Instantiate();
  EXPECT_OK(w->At(5).GraphLaunch(first, a));
  EXPECT_OK(w->At(6).GraphLaunch(behind, b));
}

TEST(GraphLifetime, UsedAndFreedByAGraphBehindTheOneThatAllocatesIsSilent) {
  Graphed w;
  CUstream a = w.Stream();
  LaunchPair(&w, a, a);
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  w.ExpectNone();
}

TEST(GraphLifetime, UsedAndFreedByAGraphInAnotherStreamIsTold) {
  Graphed w;
  LaunchPair(&w, w.Stream(), w.Stream());
  w.ExpectOne(MisuseRule::UsedBeforeAllocated, 6, 5);
}

TEST(GraphLifetime, ALaunchThatFreesWhatAnotherStreamUsesIsTold) {
  Graphed w;
  CUstream a = w.Stream();
  CUstream b = w.Stream();
  (void)w.Alloc();
  CUgraphExec first = w.Instantiate();
  EXPECT_OK(w.d.GraphCreate(&w.graph, 0));
  w.Free(w.Fill(nullptr));
  CUgraphExec frees = w.Instantiate();
  EXPECT_OK(w.At(5).GraphLaunch(first, a));
  EXPECT_OK(w.d.StreamSynchronize(a));
  EXPECT_OK(w.At(6).MemsetD8Async(w.address + 1024, 1, 64, b));
  EXPECT_OK(w.At(7).GraphLaunch(frees, a));
  w.ExpectOne(MisuseRule::FreedInUse, 7, 6);
}

TEST(RefusedLaunch, LeavesTheMemoryOfItsGraphAlone) {
  Graphed w;
  (void)w.Alloc();
  CUgraphExec executable = w.Instantiate();
  CUstream blocking = w.Stream(CU_STREAM_DEFAULT);
  CUgraph captured = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(w.d.GraphLaunch(executable, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(w.Attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0U);
  EXPECT_EQ(w.Attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 0U);
  EXPECT_EQ(w.d.StreamEndCapture(blocking, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(w.d.MemFree(w.address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(w.d.GraphLaunch(executable, nullptr));
  EXPECT_OK(w.d.MemFreeAsync(w.address, nullptr));
}

TEST(RefusedLaunch, LeavesWhatAFreeNodeWouldHaveFreed) {
  Graphed w;
  (void)w.Alloc();
  CUgraphExec first = w.Instantiate();
  EXPECT_OK(w.d.GraphCreate(&w.graph, 0));
  w.Free(w.Fill(nullptr));
  CUgraphExec frees = w.Instantiate();
  EXPECT_OK(w.d.GraphLaunch(first, nullptr));
  CUstream blocking = w.Stream(CU_STREAM_DEFAULT);
  CUgraph captured = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(w.d.GraphLaunch(frees, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(w.d.StreamEndCapture(blocking, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_OK(w.d.GraphLaunch(frees, nullptr));
  w.ExpectNone();
}

TEST(RefusedLaunch, TakesNothingWhenOneOfTwoAllocationsFindsNoRoom) {
  Graphed w;
  (void)w.Alloc(std::size_t{100} << 20);
  const CUdeviceptr fits = w.address;
  (void)w.Alloc(std::size_t{200} << 20);
  CUgraphExec executable = w.Instantiate();
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  EXPECT_OK(w.d.MemGetInfo(&before, &total));
  EXPECT_EQ(w.d.GraphLaunch(executable, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(w.d.MemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  EXPECT_EQ(w.Attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0U);
  EXPECT_EQ(w.d.MemFree(fits), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(w.d.GraphLaunch(executable, nullptr), CUDA_ERROR_OUT_OF_MEMORY);  // not: still allocated
}

// A value wait, or none, in a graph between two streams' fills.
void FillAroundWait(Graphed* w, bool waits) {
  const CUdeviceptr x = w->Memory();
  const CUdeviceptr flag = w->Memory();
  CUstream a = w->Stream();
  CUstream b = w->Stream();
  CUgraphExec executable = nullptr;
  EXPECT_OK(w->d.MemsetD32(flag, 0, 1));
  EXPECT_OK(w->At(1).MemsetD8Async(x, 1, 64, a));
  EXPECT_OK(w->At(2).StreamWriteValue32(a, flag, 7, 0));
  EXPECT_OK(w->d.StreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_RELAXED));
  w->At(3);
  EXPECT_OK(waits ? w->d.StreamWaitValue32(b, flag, 7, CU_STREAM_WAIT_VALUE_EQ) : w->d.StreamWriteValue32(b, flag, 7, 0));
  EXPECT_OK(w->At(4).MemsetD8Async(x, 2, 64, b));
  EXPECT_OK(w->d.StreamEndCapture(b, &w->graph));
  EXPECT_OK(w->d.GraphInstantiateWithFlags(&executable, w->graph, 0));
  EXPECT_OK(w->At(5).GraphLaunch(executable, b));
}

TEST(GraphBatch, WhatAGraphDoesBehindAValueWaitIsSilent) {
  Graphed w;
  FillAroundWait(&w, true);
  w.ExpectNone();
}

TEST(GraphBatch, AValueWriteWaitsForNobody) {
  Graphed w;
  FillAroundWait(&w, false);
  w.ExpectOne(MisuseRule::UnorderedAccess, 5, 1);
}

TEST(GraphBatch, AValueInFreedMemoryIsTold) {
  Graphed w;
  const CUdeviceptr flag = w.Memory();
  CUstream a = w.Stream();
  CUgraphExec executable = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(w.At(3).StreamWriteValue32(a, flag, 7, 0));
  EXPECT_OK(w.d.StreamEndCapture(a, &w.graph));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&executable, w.graph, 0));
  EXPECT_OK(w.d.MemFree(flag));
  EXPECT_OK(w.At(5).GraphLaunch(executable, a));
  w.ExpectOne(MisuseRule::GraphReadsFreed, 5, 3);
}

// A stream comes and goes, the next one takes its slot over; then the legacy stream writes what that one wrote.
void FillBesideLegacy(Witnessed* w, unsigned flags) {
  const CUdeviceptr x = w->Memory();
  const CUdeviceptr y = w->Memory();
  CUstream a = w->Stream(CU_STREAM_DEFAULT);
  EXPECT_OK(w->At(1).MemsetD8Async(y, 1, 64, a));
  EXPECT_OK(w->d.StreamSynchronize(a));
  EXPECT_OK(w->d.StreamDestroy(a));
  EXPECT_OK(w->At(2).MemsetD8Async(x, 1, 64, w->Stream(flags)));
  EXPECT_OK(w->At(3).MemsetD8Async(x, 2, 64, nullptr));
}

TEST(LegacyStream, WaitsForNoNonBlockingStreamThatTookABlockingOnesPlace) {
  Witnessed w;
  FillBesideLegacy(&w, CU_STREAM_NON_BLOCKING);
  w.ExpectOne(MisuseRule::UnorderedAccess, 3, 2);
}

TEST(LegacyStream, WaitsForABlockingStreamThatTookABlockingOnesPlace) {
  Witnessed w;
  FillBesideLegacy(&w, CU_STREAM_DEFAULT);
  w.ExpectNone();
}

TEST(ValueWait, HidesNothingOfTheWorkBeforeIt) {
  Witnessed w;
  const CUdeviceptr x = w.Memory();
  const CUdeviceptr flag = w.Memory();
  CUstream a = w.Stream();
  EXPECT_OK(w.At(1).MemsetD8Async(x, 1, 64, a));
  EXPECT_OK(w.At(2).StreamWaitValue32(a, flag, 0, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_OK(w.At(3).MemsetD8Async(x, 2, 64, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 3, 1);
}

TEST(ValueWait, OrdersWhatFollowsBehindAnything) {
  Witnessed w;
  const CUdeviceptr x = w.Memory();
  const CUdeviceptr flag = w.Memory();
  CUstream a = w.Stream();
  CUstream b = w.Stream();
  CUevent event = w.Event();
  EXPECT_OK(w.At(1).StreamWaitValue32(a, flag, 0, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_OK(w.At(2).MemsetD8Async(x, 2, 64, a));
  EXPECT_OK(w.d.EventRecord(event, a));
  EXPECT_OK(w.d.StreamWaitEvent(b, event, 0));
  EXPECT_OK(w.At(3).MemsetD8Async(x + 64, 1, 64, b));
  EXPECT_OK(w.At(4).MemsetD8Async(x, 1, 128, w.Stream()));
  w.ExpectNone();
}

}  // namespace
}  // namespace cuaudit::sim::graph_misuse_test
