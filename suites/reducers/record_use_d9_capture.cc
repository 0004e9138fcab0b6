// SPDX-License-Identifier: MIT
// record_use_d9_capture.cc: record_use on a stream that is being captured.
//
// Story   D9: the proposal makes the call a no-op with a warning there. The block is freed and handed out again within the capture, and
//         the graph then has a node that reads it beside one that writes it, at every launch. Never a silent no-op: the block stays aside
//         until the graph itself orders the next owner behind the reader.
// Source  https://github.com/pytorch/pytorch/issues/181191, its third version; written anew from the facts.
#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d9_capture {
namespace {

// Captures what `body` gives the streams, from the owner's on; launches it once and waits.
template <typename Body>
CUresult CaptureAndLaunch(DriverRef driver, const Streams& streams, const Body& body) {
  CUAUDIT_STEP(driver.StreamBeginCapture(streams.owner, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUresult code = body();
  CUgraph graph = nullptr;
  CUresult ended = driver.StreamEndCapture(streams.owner, &graph);
  if (ended != CUDA_SUCCESS && graph == nullptr) (void)driver.StreamEndCapture(streams.owner, &graph);
  code = First(code, ended);
  CUgraphExec executable = nullptr;
  if (code == CUDA_SUCCESS) code = driver.GraphInstantiateWithFlags(&executable, graph, 0);
  if (code == CUDA_SUCCESS) code = driver.GraphLaunch(executable, streams.owner);
  if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(streams.owner);
  if (executable != nullptr) code = First(code, driver.GraphExecDestroy(executable));
  return graph == nullptr ? code : First(code, driver.GraphDestroy(graph));
}

template <bool no_op>
struct Pooled : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    return CaptureAndLaunch(driver, streams, [&] {
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      if (!no_op) CUAUDIT_STEP(Order(driver, streams.side, streams.owner));
      pool.Free(block);
      CUdeviceptr next = 0;
      CUAUDIT_STEP(pool.Allocate(&next));
      CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
      pool.Free(next);
      return Order(driver, streams.side, streams.owner);  // a capture ends with all its streams joined
    });
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    alloc::PoolId pool;
    CUAUDIT_STEP(allocator->CreatePool({}, &pool));
    CUAUDIT_STEP(allocator->BeginAllocateToPool(0, pool, {}));
    CUresult code = CaptureAndLaunch(driver, streams, [&] {
      for (int i = 0; i < 2; ++i) {
        CUdeviceptr block = 0;
        CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
        CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
        CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
        CUAUDIT_STEP(streams.Read(driver, block, streams.side));
        CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
        CUAUDIT_STEP(Drop(block));
      }
      return Order(driver, streams.side, streams.owner);
    });
    code = First(code, allocator->EndAllocateToPool(0, pool));
    return First(code, allocator->ReleasePool(pool));
  }
};

TEST(RecordUseD9, ANoOpWithinACaptureMakesAGraphThatRacesWithItself) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Pooled<true>>("record_use_d9"), "unordered_access device_memory");
}

TEST(RecordUseD9, AWaitWithinTheCaptureIsSilent) { EXPECT_ALLOCATION_NEUTRAL(OnPool<Pooled<false>>("record_use_d9_right")); }

// The graph does not order the second block behind the first one's reader: it gets memory of its own.
TEST(RecordUseD9, OursKeepsTheBlockAside) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d9_allocator");
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.warm_up = 1, .cycles = 3});
  EXPECT_FALSE(FitsInto(1, lifecycle));
  EXPECT_TRUE(FitsInto(2, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d9_capture
