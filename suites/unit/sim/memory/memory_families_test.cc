// SPDX-License-Identifier: MIT
// Advice about parts of managed memory, pools of every place, arrays whose memory comes later, external memory, batches.
#include <unistd.h>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::memory_families_test {
namespace {

using driver::Kind;

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 0};

int Attribute(const Simulated& sim, CUmem_range_attribute attribute, CUdeviceptr p, std::size_t bytes) {
  int value = 77;
  EXPECT_OK(sim.d.MemRangeGetAttribute(&value, sizeof(value), attribute, p, bytes));
  return value;
}

TEST(Ranges, AdviceHoldsForThePagesItNames) {
  Simulated sim;
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.MemAllocManaged(&p, 8 * kPageBytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_OK(sim.d.MemAdvise(p + 2 * kPageBytes, 3 * kPageBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
  const auto read_mostly = [&](std::size_t first, std::size_t pages) {
    return Attribute(sim, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p + first * kPageBytes, pages * kPageBytes);
  };
  EXPECT_EQ(read_mostly(2, 3), 1);
  EXPECT_EQ(read_mostly(3, 1), 1);
  EXPECT_EQ(read_mostly(1, 2), 0);
  EXPECT_EQ(read_mostly(4, 2), 0);
  EXPECT_OK(sim.d.MemAdvise(p + 3 * kPageBytes, kPageBytes, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice));
  EXPECT_EQ(read_mostly(2, 1), 1);
  EXPECT_EQ(read_mostly(2, 3), 0);
  EXPECT_EQ(read_mostly(4, 1), 1);
  EXPECT_OK(sim.d.MemFree(p));
  EXPECT_OK(sim.d.MemAllocManaged(&p, 8 * kPageBytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(read_mostly(2, 3), 0) << "advice dies with its memory";
}

TEST(Ranges, PlacesMustAgree) {
  Simulated sim;
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.MemAllocManaged(&p, 2 * kPageBytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_OK(sim.d.MemAdvise(p, kPageBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice));
  EXPECT_OK(sim.d.MemAdvise(p + kPageBytes, kPageBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost));
  EXPECT_EQ(Attribute(sim, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, kPageBytes), 0);
  EXPECT_EQ(Attribute(sim, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p + kPageBytes, kPageBytes), CU_DEVICE_CPU);
  EXPECT_EQ(Attribute(sim, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 2 * kPageBytes), CU_DEVICE_INVALID);
}

TEST(Ranges, DiscardedMemoryHoldsNothingAnybodyWrote) {
  Simulated sim;
  CUdeviceptr p = 0;
  CUstream s = nullptr;
  std::size_t bytes = kPageBytes;
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.MemAllocManaged(&p, kPageBytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_OK(sim.d.MemsetD8Async(p, 7, kPageBytes, s));
  EXPECT_OK(sim.d.MemDiscardBatchAsync(&p, &bytes, 1, 0, s));
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_NE(*reinterpret_cast<unsigned char*>(p), 7);
  EXPECT_OK(sim.d.MemsetD8Async(p, 8, kPageBytes, s));
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(p), 8);
}

TEST(Pools, HostPoolsCostTheDeviceNothing) {
  Simulated sim;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr p = 0;
  std::size_t before = 0;
  std::size_t now = 0;
  std::size_t total = 0;
  EXPECT_OK(sim.d.MemGetInfo(&before, &total));
  EXPECT_OK(sim.d.MemPoolCreate(&pool, &properties));
  EXPECT_OK(sim.d.MemAllocFromPoolAsync(&p, kBytes, pool, nullptr));
  EXPECT_OK(sim.d.MemGetInfo(&now, &total));
  EXPECT_EQ(before, now);
  *reinterpret_cast<int*>(p) = 5;
  EXPECT_OK(sim.d.MemFreeAsync(p, nullptr));
  EXPECT_OK(sim.d.MemPoolDestroy(pool));
  EXPECT_OK(sim.d.StreamSynchronize(nullptr));
  EXPECT_EQ(sim.Live(Kind::StreamOrderedMemory), 0U);
  EXPECT_EQ(sim.Live(Kind::MemoryPool), 0U);
}

TEST(Pools, APlacesCurrentPoolFallsBackWhenItIsDestroyed) {
  Simulated sim;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  CUmemoryPool pool = nullptr;
  CUmemoryPool standard = nullptr;
  CUmemoryPool now = nullptr;
  EXPECT_OK(sim.d.MemGetDefaultMemPool(&standard, &properties.location, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_OK(sim.d.MemPoolCreate(&pool, &properties));
  EXPECT_OK(sim.d.MemSetMemPool(&properties.location, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
  EXPECT_OK(sim.d.MemGetMemPool(&now, &properties.location, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(now, pool);
  EXPECT_OK(sim.d.MemPoolDestroy(pool));
  EXPECT_OK(sim.d.MemGetMemPool(&now, &properties.location, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(now, standard);
  EXPECT_EQ(sim.d.MemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
}

TEST(Pools, ADestroyedOneThatIsMadeCurrentAnswersAndGivesNothing) {
  const Simulated sim({.device_bytes = std::uint64_t{256} << 20, .device_count = 2});
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = kDevice;
  CUmemoryPool pool = nullptr, standard = nullptr, current = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.DeviceGetDefaultMemPool(&standard, 0));
  EXPECT_OK(sim.d.MemPoolCreate(&pool, &properties));
  EXPECT_OK(sim.d.MemPoolDestroy(pool));
  EXPECT_OK(sim.d.DeviceSetMemPool(0, pool));
  EXPECT_OK(sim.d.DeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, pool);
  EXPECT_EQ(sim.d.MemAllocAsync(&p, 64, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(sim.d.MemAllocFromPoolAsync(&p, 64, standard, nullptr));
  EXPECT_EQ(sim.d.MemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.d.DeviceSetMemPool(1, pool), CUDA_ERROR_INVALID_VALUE) << "it was not that device's";
  EXPECT_OK(sim.d.DeviceSetMemPool(0, standard));
  EXPECT_OK(sim.d.DeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, standard);
  EXPECT_OK(sim.d.MemAllocAsync(&p, 64, nullptr));
  EXPECT_EQ(sim.d.GraphNodeGetType(reinterpret_cast<CUgraphNode>(pool), &type), CUDA_ERROR_INVALID_VALUE) << "a pool is no node";
  EXPECT_OK(sim.d.GraphCreate(&graph, 0));
  EXPECT_OK(sim.d.GraphAddEmptyNode(&node, graph, nullptr, 0));
  EXPECT_OK(sim.d.GraphDestroy(graph));
  EXPECT_EQ(sim.d.DeviceSetMemPool(0, reinterpret_cast<CUmemoryPool>(node)), CUDA_ERROR_INVALID_VALUE) << "a node is no pool";
  CUmemLocation device = kDevice;
  EXPECT_OK(sim.d.DeviceSetMemPool(0, pool));
  EXPECT_OK(sim.d.MemGetMemPool(&current, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(current, pool);
  EXPECT_OK(sim.d.MemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
  EXPECT_OK(sim.d.DeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, standard);
}

TEST(Arrays, ADeferredArrayHoldsWhatIsMappedBehindIt) {
  Simulated sim;
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape{64, 64, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING};
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = kDevice;
  CUmemGenericAllocationHandle h = 0;
  CUmemGenericAllocationHandle plain = 0;
  char bytes[16] = {3};
  EXPECT_OK(sim.d.Array3DCreate(&array, &shape));
  EXPECT_EQ(sim.d.MemcpyHtoA(array, 0, bytes, sizeof(bytes)), CUDA_ERROR_INVALID_VALUE) << "nothing is mapped";
  EXPECT_OK(sim.d.MemCreate(&plain, kBytes, &properties, 0));
  properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  EXPECT_OK(sim.d.MemCreate(&h, kBytes, &properties, 0));
  CUarrayMapInfo info{};
  info.resourceType = CU_RESOURCE_TYPE_ARRAY;
  info.resource.array = array;
  info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
  info.subresource.sparseLevel.extentWidth = 64;
  info.subresource.sparseLevel.extentHeight = 64;
  info.subresource.sparseLevel.extentDepth = 1;
  info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
  info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
  info.memHandle.memHandle = plain;
  info.deviceBitMask = 1;
  EXPECT_EQ(sim.d.MemMapArrayAsync(&info, 1, nullptr), CUDA_ERROR_INVALID_VALUE) << "no tile pool";
  EXPECT_OK(sim.d.MemRelease(plain));
  info.memHandle.memHandle = h;
  EXPECT_OK(sim.d.MemMapArrayAsync(&info, 1, nullptr));
  EXPECT_OK(sim.d.MemcpyHtoA(array, 0, bytes, sizeof(bytes)));
  EXPECT_OK(sim.d.MemRelease(h));
  std::size_t held = 0;
  std::size_t all = 0;
  std::size_t total = 0;
  EXPECT_OK(sim.d.MemGetInfo(&held, &total));
  EXPECT_OK(sim.d.ArrayDestroy(array));
  EXPECT_OK(sim.d.MemGetInfo(&all, &total));
  EXPECT_EQ(all - held, kBytes) << "the array held the memory until it went";
}

TEST(External, AMappedBufferKeepsTheMemory) {
  Simulated sim;
  constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = kFd;
  properties.location = kDevice;
  CUmemGenericAllocationHandle h = 0;
  CUexternalMemory memory = nullptr;
  CUdeviceptr p = 0;
  int file = -1;
  EXPECT_OK(sim.d.MemCreate(&h, kBytes, &properties, 0));
  EXPECT_OK(sim.d.MemExportToShareableHandle(&file, h, kFd, 0));
  EXPECT_OK(sim.d.MemRelease(h));
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.handle.fd = file;
  from.size = kBytes;
  EXPECT_OK(sim.d.ImportExternalMemory(&memory, &from));
  EXPECT_NE(close(file), 0) << "the descriptor is the driver's now";
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
  part.offset = kPageBytes;
  part.size = kPageBytes;
  EXPECT_OK(sim.d.ExternalMemoryGetMappedBuffer(&p, memory, &part));
  EXPECT_EQ(sim.Live(Kind::ExternalMemory), 1U);
  EXPECT_OK(sim.d.DestroyExternalMemory(memory));
  EXPECT_EQ(sim.Live(Kind::ExternalMemory), 0U);
  EXPECT_EQ(sim.d.DestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_OK(sim.d.MemsetD8(p, 1, kPageBytes));
  EXPECT_OK(sim.d.MemFree(p));
  EXPECT_EQ(sim.d.MemFree(p), CUDA_ERROR_INVALID_VALUE);
}

TEST(External, DiesWithItsContext) {
  Simulated sim;
  constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = kFd;
  properties.location = kDevice;
  CUmemGenericAllocationHandle h = 0;
  CUexternalMemory memory = nullptr;
  CUdeviceptr p = 0;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.size = kBytes;
  EXPECT_OK(sim.d.MemCreate(&h, kBytes, &properties, 0));
  EXPECT_OK(sim.d.MemExportToShareableHandle(&from.handle.fd, h, kFd, 0));
  EXPECT_OK(sim.d.ImportExternalMemory(&memory, &from));
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
  part.size = kBytes;
  EXPECT_OK(sim.d.ExternalMemoryGetMappedBuffer(&p, memory, &part));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  EXPECT_EQ(sim.Live(Kind::ExternalMemory), 0U);
  EXPECT_EQ(sim.Live(Kind::DeviceMemory), 0U);
  EXPECT_EQ(sim.Live(Kind::PhysicalMemory), 1U);
  EXPECT_OK(sim.d.MemRelease(h));
}

TEST(Batches, AllOrNothing) {
  Simulated sim;
  CUstream s = nullptr;
  CUdeviceptr to[2] = {};
  CUdeviceptr from[2] = {};
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(sim.d.MemAlloc(&to[i], 64));
    EXPECT_OK(sim.d.MemAlloc(&from[i], 64));
    EXPECT_OK(sim.d.MemsetD8(from[i], static_cast<unsigned char>(i + 1), 64));
  }
  std::size_t sizes[2] = {64, 65};
  std::size_t first = 0;
  CUmemcpyAttributes how{};
  how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  EXPECT_OK(sim.d.CtxSynchronize(nullptr));
  EXPECT_EQ(sim.d.MemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, s), CUDA_ERROR_INVALID_VALUE);
  unsigned char out = 0;
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_OK(sim.d.MemcpyDtoH(&out, to[0], 1));
  EXPECT_EQ(out, 0);
  sizes[1] = 64;
  EXPECT_OK(sim.d.MemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, s));
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_OK(sim.d.MemcpyDtoH(&out, to[1], 1));
  EXPECT_EQ(out, 2);
}

}  // namespace
}  // namespace cuaudit::sim::memory_families_test
