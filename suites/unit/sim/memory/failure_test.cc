// SPDX-License-Identifier: MIT
// Failure modes of the simulated device: memory that is fragmented, and errors that surface after the call that caused them.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "faults/sim/state/world_state.h"
#include "suites/support/sim_world.h"

namespace cuaudit::sim::failure_test {
namespace {

using driver::Kind;

constexpr std::size_t kKilo = 1024;
constexpr std::size_t kMega = 1024 * kKilo;

std::size_t FreeBytes(const Simulated& sim) {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_OK(sim.d.MemGetInfo(&free, &total));
  return free;
}

// As many blocks as fit.
std::vector<CUdeviceptr> Fill(const Simulated& sim, std::size_t bytes) {
  std::vector<CUdeviceptr> blocks;
  for (CUdeviceptr p = 0; sim.d.MemAlloc(&p, bytes) == CUDA_SUCCESS;) blocks.push_back(p);
  return blocks;
}

TEST(DeviceMemory, IsGivenOutInChunks) {
  const Simulated sim({.device_bytes = 64 * kMega});
  const std::size_t before = FreeBytes(sim);
  CUdeviceptr p[4] = {};
  EXPECT_OK(sim.d.MemAlloc(&p[0], 512));
  EXPECT_EQ(before - FreeBytes(sim), 2 * kMega);
  EXPECT_OK(sim.d.MemAlloc(&p[1], 512));
  EXPECT_OK(sim.d.MemAlloc(&p[2], kMega));
  EXPECT_EQ(before - FreeBytes(sim), 2 * kMega);
  EXPECT_OK(sim.d.MemAlloc(&p[3], 3 * kMega));
  EXPECT_EQ(before - FreeBytes(sim), 6 * kMega);
  for (const CUdeviceptr at : p) EXPECT_OK(sim.d.MemFree(at));
  EXPECT_EQ(FreeBytes(sim), before);
}

TEST(DeviceMemory, FragmentedItRefusesWhatItsFreeBytesWouldHold) {
  const Simulated sim({.device_bytes = 64 * kMega});
  std::vector<CUdeviceptr> blocks = Fill(sim, 64 * kKilo);
  ASSERT_EQ(blocks.size(), 1024U);
  std::vector<CUdeviceptr> kept;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 32 == 5) {
      kept.push_back(blocks[i]);
    } else {
      EXPECT_OK(sim.d.MemFree(blocks[i]));
    }
  }
  // 62 of 64 MiB are nobody's, and no chunk is.
  CUdeviceptr p = 0;
  CUmemGenericAllocationHandle h = 0;
  CUmemAllocationProp shape{};
  shape.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  shape.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  EXPECT_EQ(FreeBytes(sim), 0U);
  EXPECT_EQ(sim.d.MemAlloc(&p, 2 * kMega), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(sim.d.MemCreate(&h, 2 * kMega, &shape, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(sim.d.MemAlloc(&p, kMega)) << "it fits beside those that stayed";
  EXPECT_OK(sim.d.MemFree(p));
  for (const CUdeviceptr at : kept) EXPECT_OK(sim.d.MemFree(at));
  EXPECT_OK(sim.d.MemAlloc(&p, 64 * kMega));
}

TEST(DeviceMemory, FreeChunksAnywhereMakeMappingsAndPools) {
  const Simulated sim({.device_bytes = 64 * kMega});
  const std::vector<CUdeviceptr> blocks = Fill(sim, 2 * kMega);
  ASSERT_EQ(blocks.size(), 32U);
  for (std::size_t i = 0; i < blocks.size(); i += 2) EXPECT_OK(sim.d.MemFree(blocks[i]));
  EXPECT_EQ(FreeBytes(sim), 32 * kMega);
  CUmemAllocationProp shape{};
  shape.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  shape.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  std::vector<CUmemGenericAllocationHandle> handles(8);
  for (CUmemGenericAllocationHandle& h : handles) EXPECT_OK(sim.d.MemCreate(&h, 2 * kMega, &shape, 0));
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.MemAllocAsync(&p, 10 * kMega, nullptr));
  EXPECT_EQ(sim.d.MemAllocAsync(&p, 10 * kMega, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  for (const CUmemGenericAllocationHandle h : handles) EXPECT_OK(sim.d.MemRelease(h));
  EXPECT_OK(sim.d.MemAllocAsync(&p, 10 * kMega, nullptr));
}

// A graph whose memory was freed: its launch is accepted, its error comes later.
struct Lost : Simulated {
  Lost() {
    CUgraph graph = nullptr;
    EXPECT_OK(d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(d.MemAlloc(&memory, 4096));
    EXPECT_OK(d.MemAlloc(&other, 4096));
    EXPECT_OK(d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(d.MemsetD8Async(memory, 1, 4096, stream));
    EXPECT_OK(d.StreamEndCapture(stream, &graph));
    EXPECT_OK(d.GraphInstantiateWithFlags(&executable, graph, 0));
    EXPECT_OK(d.GraphDestroy(graph));
    EXPECT_OK(d.MemFree(memory));
  }
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  CUdeviceptr other = 0;
  CUgraphExec executable = nullptr;
};

constexpr CUresult kLost = CUDA_ERROR_ILLEGAL_ADDRESS;

TEST(LateError, IsAnsweredByWhoWaitsAndByEverybodyAfter) {
  const Lost w;
  CUdeviceptr p = 0;
  CUstream s = nullptr;
  CUmodule m = nullptr;
  EXPECT_OK(w.d.GraphLaunch(w.executable, w.stream));
  EXPECT_OK(w.d.MemAlloc(&p, 16)) << "nothing has run yet";
  EXPECT_EQ(w.d.StreamSynchronize(w.stream), kLost);
  EXPECT_EQ(w.d.StreamSynchronize(w.stream), kLost) << "it stays";
  EXPECT_EQ(w.d.CtxSynchronize(nullptr), kLost);
  EXPECT_EQ(w.d.MemAlloc(&p, 16), kLost);
  EXPECT_EQ(w.d.MemFree(w.other), kLost);
  EXPECT_EQ(w.d.StreamCreate(&s, 0), kLost);
  EXPECT_EQ(w.d.StreamQuery(w.stream), kLost);
  EXPECT_EQ(w.d.EventRecord(w.event, w.stream), kLost);
  EXPECT_EQ(w.d.EventSynchronize(w.event), kLost);
  EXPECT_EQ(w.d.GraphLaunch(w.executable, w.stream), kLost);
  EXPECT_EQ(w.d.ModuleLoadData(&m, ""), kLost);
  int count = 0;
  CUcontext current = nullptr;
  EXPECT_OK(w.d.DeviceGetCount(&count));
  EXPECT_OK(w.d.CtxGetCurrent(&current));
  EXPECT_EQ(current, w.context);
}

TEST(LateError, OfOneContextLeavesOthersAlone) {
  const Lost w;
  CUcontext other = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(w.d.GraphLaunch(w.executable, w.stream));
  EXPECT_EQ(w.d.StreamSynchronize(w.stream), kLost);
  EXPECT_OK(w.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_OK(w.d.MemAlloc(&p, 4096));
  EXPECT_OK(w.d.MemsetD8(p, 0, 4096));
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  EXPECT_OK(w.d.CtxDestroy(other));
  EXPECT_OK(w.d.CtxSetCurrent(w.context));
  EXPECT_EQ(w.d.MemAlloc(&p, 16), kLost);
}

TEST(LateError, EndsWithAResetAndTakesEverythingAlong) {
  const Lost w;
  CUcontext again = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(w.d.GraphLaunch(w.executable, w.stream));
  EXPECT_EQ(w.d.StreamSynchronize(w.stream), kLost);
  EXPECT_OK(w.d.DevicePrimaryCtxReset(0));
  EXPECT_EQ(w.Live(Kind::DeviceMemory), 0U);
  EXPECT_EQ(w.Live(Kind::Stream), 0U);
  EXPECT_EQ(w.d.MemAlloc(&p, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_OK(w.d.DevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(again, w.context);
  EXPECT_OK(w.d.MemAlloc(&p, 16));
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
}

TEST(LateError, EndsWithTheLastReferenceToo) {
  const Lost w;
  CUcontext again = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(w.d.GraphLaunch(w.executable, w.stream));
  EXPECT_EQ(w.d.StreamSynchronize(w.stream), kLost);
  EXPECT_OK(w.d.DevicePrimaryCtxRelease(0));
  EXPECT_OK(w.d.DevicePrimaryCtxRetain(&again, 0));
  EXPECT_OK(w.d.CtxSetCurrent(again));
  EXPECT_OK(w.d.MemAlloc(&p, 16));
}

TEST(Fills, OfNothingCanBeCapturedAndNotRun) {
  Simulated sim;
  CUstream s = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(sim.d.MemsetD8Async(0, 0, 16, s), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(sim.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(sim.d.MemsetD8Async(0, 0, 16, s));
  EXPECT_OK(sim.d.StreamEndCapture(s, &graph));
  CUresult result = sim.d.GraphInstantiateWithFlags(&exec, graph, 0);
  if (result == CUDA_SUCCESS) result = sim.d.GraphLaunch(exec, s);
  if (result == CUDA_SUCCESS) result = sim.d.StreamSynchronize(s);
  EXPECT_NE(result, CUDA_SUCCESS);
}

// Leaves the world's books room for some small records of every size, and for `markers` recordings.
void FillBooks(World* world, std::size_t markers) {
  constexpr std::size_t kSmall = 512;
  constexpr std::size_t kEach = 64;
  constexpr std::size_t kMarker = (sizeof(Marker) + 15) / 16 * 16;
  std::vector<std::pair<void*, std::size_t>> room;
  for (std::size_t bytes = 16; bytes <= kSmall; bytes += 16) {
    for (std::size_t i = 0; i < (bytes == kMarker ? markers : kEach); ++i) room.emplace_back(world->arena.Allocate(bytes), bytes);
  }
  for (std::size_t bytes = std::size_t{1} << 36; bytes > kSmall; bytes /= 2) {
    while (world->arena.Allocate(bytes) != nullptr) continue;
  }
  for (std::size_t bytes = kSmall; bytes > 0; bytes -= 16) {
    while (world->arena.Allocate(bytes) != nullptr) continue;
  }
  for (const auto& [block, bytes] : room) world->arena.Free(block, bytes);
}

TEST(FullBooks, ALaunchThatIsRefusedLeavesItsEventsAsTheyWere) {
  std::size_t refused = 0;
  for (std::size_t markers = 0; markers < 5; ++markers) {
    const Simulated sim;
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec executable = nullptr;
    CUstream stream = nullptr;
    CUevent events[2] = {};
    EXPECT_OK(sim.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.GraphCreate(&graph, 0));
    for (CUevent& event : events) {
      EXPECT_OK(sim.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
      EXPECT_OK(sim.d.GraphAddEventRecordNode(&node, graph, nullptr, 0, event));
    }
    EXPECT_OK(sim.d.GraphInstantiateWithFlags(&executable, graph, 0));
    FillBooks(sim.world, markers);
    const CUresult launched = sim.d.GraphLaunch(executable, stream);
    EXPECT_TRUE(launched == CUDA_SUCCESS || launched == CUDA_ERROR_OUT_OF_MEMORY) << launched;
    if (launched != CUDA_SUCCESS) ++refused;
    EXPECT_OK(sim.d.StreamSynchronize(stream));
    for (const CUevent event : events) EXPECT_OK(sim.d.EventQuery(event)) << markers;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, 5U);
}

}  // namespace
}  // namespace cuaudit::sim::failure_test
