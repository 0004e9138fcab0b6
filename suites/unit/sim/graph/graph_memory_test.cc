// SPDX-License-Identifier: MIT
// Memory that graphs own: addresses, the books, the device's budget, and what ends it.
#include <cstdint>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::graph_memory_test {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

class Owner : public Simulated {
 public:
  Owner() { EXPECT_OK(d.GraphCreate(&graph, 0)); }
  CUgraphNode Alloc() {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.bytesize = kBytes;
    CUgraphNode node = nullptr;
    EXPECT_OK(d.GraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters));
    address = parameters.dptr;
    return node;
  }
  void Instantiate(unsigned long long flags = 0) { EXPECT_OK(d.GraphInstantiateWithFlags(&executable, graph, flags)); }
  std::size_t Free() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_OK(d.MemGetInfo(&free, &total));
    return free;
  }
  std::uint64_t Memory() const { return Live(driver::Kind::StreamOrderedMemory); }

  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr address = 0;
};

TEST(GraphMemory, LivesFromTheLaunchToTheFree) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate();
  EXPECT_EQ(o.Memory(), 0U);
  EXPECT_EQ(o.d.MemsetD8(o.address, 1, kBytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_EQ(o.Memory(), 1U);
  EXPECT_OK(o.d.MemsetD8(o.address, 1, kBytes));
  EXPECT_OK(o.d.MemFreeAsync(o.address, nullptr));
  EXPECT_EQ(o.d.MemFreeAsync(o.address, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));  // before the free has run
  EXPECT_OK(o.d.CtxSynchronize(nullptr));
  EXPECT_EQ(o.Memory(), 1U);
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_EQ(o.Memory(), 0U);
}

TEST(GraphMemory, ACopyInAGraphThatOutlivedItsMemoryLosesTheContext) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate();
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  CUgraph other = nullptr;
  CUgraphExec fills = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = o.address;
  fill.elementSize = 1;
  fill.width = kBytes;
  fill.height = 1;
  EXPECT_OK(o.d.GraphCreate(&other, 0));
  EXPECT_OK(o.d.GraphAddMemsetNode(&node, other, nullptr, 0, &fill, o.context));
  EXPECT_OK(o.d.GraphInstantiateWithFlags(&fills, other, 0));
  EXPECT_OK(o.d.GraphLaunch(fills, nullptr));
  EXPECT_OK(o.d.CtxSynchronize(nullptr));
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_OK(o.d.GraphLaunch(fills, nullptr));
  EXPECT_EQ(o.d.CtxSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(GraphMemory, TheDevicePaysUntilATrim) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate();
  const std::size_t before = o.Free();
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_LT(o.Free(), before);
  EXPECT_OK(o.d.DeviceGraphMemTrim(0));
  EXPECT_LT(o.Free(), before);
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_LT(o.Free(), before);
  EXPECT_OK(o.d.DeviceGraphMemTrim(0));
  EXPECT_EQ(o.Free(), before);
}

TEST(GraphMemory, OutlivesTheContextOfItsLaunch) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_EQ(o.Memory(), 1U);
  EXPECT_OK(o.d.DevicePrimaryCtxReset(0));
  EXPECT_EQ(o.Memory(), 1U);
  CUcontext again = nullptr;
  EXPECT_OK(o.d.DevicePrimaryCtxRetain(&again, 0));
  EXPECT_OK(o.d.CtxSetCurrent(again));
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_EQ(o.Memory(), 0U);
  EXPECT_OK(o.d.GraphExecDestroy(o.executable));
  EXPECT_OK(o.d.GraphDestroy(o.graph));
}

TEST(GraphMemory, CapturedAllocationsWorkLikeOrderedOnes) {
  Owner o;
  CUstream stream = nullptr;
  CUgraph captured = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr inside = 0;
  CUdeviceptr out = 0;
  EXPECT_OK(o.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(o.d.MemAlloc(&out, 4));
  EXPECT_OK(o.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(o.d.MemAllocAsync(&inside, 4, stream));
  EXPECT_OK(o.d.MemsetD32Async(inside, 42, 1, stream));
  EXPECT_OK(o.d.MemcpyDtoDAsync(out, inside, 4, stream));
  EXPECT_OK(o.d.MemFreeAsync(inside, stream));
  EXPECT_OK(o.d.StreamEndCapture(stream, &captured));
  EXPECT_OK(o.d.GraphInstantiateWithFlags(&executable, captured, 0));
  EXPECT_OK(o.d.GraphDestroy(captured));
  for (int i = 0; i < 3; ++i) EXPECT_OK(o.d.GraphLaunch(executable, stream));
  EXPECT_OK(o.d.StreamSynchronize(stream));
  EXPECT_EQ(o.Memory(), 0U);
  unsigned value = 0;
  EXPECT_OK(o.d.MemcpyDtoH(&value, out, 4));
  EXPECT_EQ(value, 42U);
  EXPECT_OK(o.d.GraphExecDestroy(executable));
}

}  // namespace
}  // namespace cuaudit::sim::graph_memory_test
