// SPDX-License-Identifier: MIT
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::misuse_test {
namespace {

using driver::MisuseRule;

constexpr const char* kPtx =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry fill(.param .u64 target, .param .u32 count)\n{\n ret;\n}\n"
    ".visible .entry gather(.param .align 8 .b8 both[16])\n{\n ret;\n}\n"
    ".visible .entry plain()\n{\n ret;\n}\n";

CUfunction Kernel(driver::DriverRef d, const char* name = "fill") {
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  EXPECT_OK(d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(d.ModuleGetFunction(&f, m, name));
  return f;
}

class Misused : public testing::TestWithParam<Schedule> {
 protected:
  Witnessed w{GetParam()};
};

TEST_P(Misused, TwoWritersWithoutAnOrder) {
  CUdeviceptr p = w.Memory();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemsetD8Async(p + 1000, 1, 10, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
  EXPECT_EQ(w.record.seen.at(0).object, p + 1000);
  EXPECT_EQ(w.record.seen.at(0).bytes, 10U);
}

// A value in memory that the CPU reads orders what comes after it was seen, and nothing before.
TEST(MisusedValue, ThatIsNotThereYet) {
  Witnessed w(Schedule::Lazy);
  void* host = nullptr;
  CUdeviceptr word = 0;
  EXPECT_OK(w.d.MemHostAlloc(&host, sizeof(std::uint64_t), CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_OK(w.d.MemHostGetDevicePointer(&word, host, 0));
  CUdeviceptr p = w.Memory();
  CUstream s = w.Stream();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.At(2).StreamWriteValue64(s, word, 1, 0));
  EXPECT_OK(w.At(3).MemsetD8Async(p, 2, 4096, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 3, 1);
}

TEST_P(Misused, AReaderBeforeItsWriter) {
  CUdeviceptr p = w.Memory();
  CUdeviceptr q = w.Memory();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemcpyDtoDAsync(q, p, 4096, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

TEST_P(Misused, OnceForEachPairHoweverManyBytes) {
  CUdeviceptr p = w.Memory(1 << 20);
  CUstream s = w.Stream();
  EXPECT_OK(w.At(1).MemsetD2D8Async(p, 1024, 1, 512, 1024, s));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 1 << 20, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

TEST_P(Misused, TheDefaultStreamDoesNotOrderNonBlockingOnes) {
  CUdeviceptr p = w.Memory();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemsetD8(p, 2, 4096));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

TEST_P(Misused, ASynchronousCopyDoesNotWaitForNonBlockingStreams) {
  CUdeviceptr p = w.Memory();
  int out = 0;
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemcpyDtoH(&out, p, sizeof(out)));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

TEST_P(Misused, PoolMemoryFreedOnAStreamThatDoesNotWaitForTheReader) {
  CUstream s = w.Stream();
  CUstream t = w.Stream();
  CUevent e = w.Event();
  CUdeviceptr p = 0;
  EXPECT_OK(w.d.MemAllocAsync(&p, 4096, s));
  EXPECT_OK(w.d.EventRecord(e, s));
  EXPECT_OK(w.d.StreamWaitEvent(t, e, 0));
  CUdeviceptr q = w.Memory();
  EXPECT_OK(w.At(1).MemcpyDtoDAsync(q, p, 4096, t));
  EXPECT_OK(w.At(2).MemFreeAsync(p, s));
  w.ExpectOne(MisuseRule::FreedInUse, 2, 1);
}

TEST_P(Misused, PoolMemoryFreedByTheHostWhichDoesNotWait) {
  CUstream s = w.Stream();
  CUdeviceptr p = 0;
  EXPECT_OK(w.At(1).MemAllocAsync(&p, 4096, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.At(3).MemFree(p));
  w.ExpectOne(MisuseRule::FreedInUse, 3, 2);
}

// A wait that cannot be traced is forgotten once the host has waited.
TEST(MisusedLazily, AfterTheHostWaitedForAValue) {
  Witnessed w;
  CUstream s = w.Stream();
  CUdeviceptr flag = w.Memory();
  EXPECT_OK(w.d.MemsetD8(flag, 0, 4));
  EXPECT_OK(w.d.StreamSynchronize(nullptr));
  EXPECT_OK(w.d.StreamWaitValue32(s, flag, 0, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_OK(w.d.StreamSynchronize(s));
  CUdeviceptr p = w.Memory();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 64, s));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 64, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

// What follows a wait for a value is ordered after anything, but hides nothing of what was there before.
TEST_P(Misused, BehindAWriterThatWaitedForAValue) {
  CUdeviceptr p = w.Memory();
  CUdeviceptr flag = w.Memory();
  CUstream waits = w.Stream();
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 64, w.Stream()));
  EXPECT_OK(w.d.StreamWaitValue32(waits, flag, 0, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 64, waits));
  w.ExpectNone();
  EXPECT_OK(w.At(3).MemsetD8Async(p, 1, 64, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 3, 1);
}

// Copies of such memory are refused; a kernel's arguments are nobody's business but the kernel's.
TEST(MisusedLazily, PoolMemoryUsedBehindItsFree) {
  Witnessed w;
  CUstream s = w.Stream();
  CUfunction f = Kernel(w.d);
  CUdeviceptr p = 0;
  EXPECT_OK(w.d.MemAllocAsync(&p, 4096, s));
  EXPECT_OK(w.At(1).MemFreeAsync(p, s));
  EXPECT_EQ(w.At(2).MemsetD8Async(p, 1, 4096, s), CUDA_ERROR_INVALID_VALUE);
  int count = 4;
  void* arguments[] = {&p, &count};
  EXPECT_OK(w.At(3).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr));
  w.ExpectOne(MisuseRule::FreedInUse, 3, 1);
}

TEST_P(Misused, PoolMemoryUsedBeforeItsAllocationIsReached) {
  CUstream s = w.Stream();
  CUdeviceptr p = 0;
  EXPECT_OK(w.At(1).MemAllocAsync(&p, 4096, s));
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 4096, w.Stream()));
  w.ExpectOne(MisuseRule::UsedBeforeAllocated, 2, 1);
}

TEST_P(Misused, AGraphThatReadsFreedMemory) {
  CUstream s = w.Stream();
  CUdeviceptr p = w.Memory();
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.At(2).GraphLaunch(x, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  w.ExpectNone();
  EXPECT_OK(w.d.MemFree(p));
  EXPECT_OK(w.At(3).GraphLaunch(x, s));
  w.ExpectOne(MisuseRule::GraphReadsFreed, 3, 1);
  EXPECT_EQ(w.record.seen.at(0).object, p);
}

TEST_P(Misused, AGraphWhoseBranchesWriteTheSameBytes) {
  CUdeviceptr p = w.Memory();
  CUgraph g = nullptr;
  CUgraphNode first = nullptr;
  CUgraphNode second = nullptr;
  CUgraphExec x = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = p;
  fill.elementSize = 1;
  fill.width = 64;
  fill.height = 1;
  EXPECT_OK(w.d.GraphCreate(&g, 0));
  EXPECT_OK(w.At(1).GraphAddMemsetNode(&first, g, nullptr, 0, &fill, w.sim.context));
  fill.dst = p + 32;
  EXPECT_OK(w.At(2).GraphAddMemsetNode(&second, g, nullptr, 0, &fill, w.sim.context));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  CUstream s = w.Stream();
  EXPECT_OK(w.At(3).GraphLaunch(x, s));
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
  EXPECT_OK(w.At(4).GraphLaunch(x, s));
  EXPECT_EQ(w.record.seen.size(), 1U);
}

TEST_P(Misused, AGraphThatRecordsADestroyedEvent) {
  CUgraph g = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec x = nullptr;
  CUevent e = w.Event();
  EXPECT_OK(w.d.GraphCreate(&g, 0));
  EXPECT_OK(w.At(1).GraphAddEventRecordNode(&node, g, nullptr, 0, e));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.At(2).GraphLaunch(x, w.Stream()));
  w.ExpectNone();
  EXPECT_OK(w.d.EventDestroy(e));
  EXPECT_OK(w.At(3).GraphLaunch(x, w.Stream()));
  w.ExpectOne(MisuseRule::DestroyedInUse, 3, 1);
}

TEST_P(Misused, AGraphThatCopiesFromADestroyedArray) {
  const CUDA_ARRAY3D_DESCRIPTOR shape{16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  char host[16];
  CUarray array = nullptr;
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  CUstream s = w.Stream();
  EXPECT_OK(w.d.Array3DCreate(&array, &shape));
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(w.At(1).MemcpyAtoHAsync(host, array, 0, sizeof(host), s));
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.At(2).GraphLaunch(x, s));
  w.ExpectNone();
  EXPECT_OK(w.d.ArrayDestroy(array));
  EXPECT_OK(w.At(3).GraphLaunch(x, s));
  w.ExpectOne(MisuseRule::GraphReadsFreed, 3, 1);
}

TEST_P(Misused, TwoLaunchesOfOneGraphInTwoStreams) {
  CUdeviceptr p = w.Memory();
  CUstream s = w.Stream();
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  CUgraphExec y = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(w.At(1).MemsetD8Async(p, 1, 4096, s));
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&y, g, 0));
  EXPECT_OK(w.At(2).GraphLaunch(x, s));
  EXPECT_OK(w.At(3).GraphLaunch(y, w.Stream()));
  w.ExpectOne(MisuseRule::UnorderedAccess, 3, 2);
}

TEST_P(Misused, AKernelsArgumentFreedOnAnotherStream) {
  CUfunction f = Kernel(w.d);
  CUdeviceptr p = 0;
  CUstream s = w.Stream();
  CUstream t = w.Stream();
  EXPECT_OK(w.d.MemAllocAsync(&p, 4096, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  int count = 4;
  void* arguments[] = {&p, &count};
  EXPECT_OK(w.At(1).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, t, arguments, nullptr));
  // What a kernel does with it is unknown, so another user of the bytes is no misuse.
  EXPECT_OK(w.At(2).MemsetD8Async(p, 1, 4096, s));
  w.ExpectNone();
  EXPECT_OK(w.At(3).MemFreeAsync(p, s));
  w.ExpectOne(MisuseRule::FreedInUse, 3, 1);
}

// An integer in it may look like an address. Given as one parameter, and packed.
TEST_P(Misused, AStructIsNotLookedInto) {
  CUfunction f = Kernel(w.d, "gather");
  CUdeviceptr p = 0;
  CUstream s = w.Stream();
  CUstream t = w.Stream();
  EXPECT_OK(w.d.MemAllocAsync(&p, 4096, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  std::uint64_t both[] = {p, 1};
  void* arguments[] = {both};
  EXPECT_OK(w.At(1).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, t, arguments, nullptr));
  std::size_t bytes = sizeof(both);
  void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, both, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  EXPECT_OK(w.At(2).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, t, nullptr, packed));
  EXPECT_OK(w.At(3).MemFreeAsync(p, s));
  EXPECT_OK(w.At(4).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, t, arguments, nullptr));
  w.ExpectNone();
}

TEST_P(Misused, AGraphWhoseKernelWasUnloaded) {
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  CUstream s = w.Stream();
  EXPECT_OK(w.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(w.d.ModuleGetFunction(&f, m, "plain"));
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(w.At(1).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.At(2).GraphLaunch(x, s));
  w.ExpectNone();
  EXPECT_OK(w.d.ModuleUnload(m));
  EXPECT_OK(w.At(3).GraphLaunch(x, s));
  w.ExpectOne(MisuseRule::DestroyedInUse, 3, 1);
}

// The driver waits for the context of the memory, not for others that use it.
TEST_P(Misused, MemoryFreedUnderAnotherContextsCopy) {
  CUdeviceptr p = w.Memory();
  void* pinned = nullptr;
  CUcontext other = nullptr;
  EXPECT_OK(w.d.MemAllocHost(&pinned, 4096));
  EXPECT_OK(w.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_OK(w.At(1).MemcpyDtoHAsync(pinned, p, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemFree(p));
  w.ExpectOne(MisuseRule::FreedInUse, 2, 1);
  EXPECT_OK(w.At(3).MemFreeHost(pinned));
  ASSERT_EQ(w.record.seen.size(), 2U);
  EXPECT_EQ(w.record.seen[1].rule, MisuseRule::HostFreedInUse);
  EXPECT_EQ(w.record.seen[1].origin, 3U);
  EXPECT_EQ(w.record.seen[1].other, 1U);
}

TEST_P(Misused, PhysicalMemoryUnmappedUnderAWriter) {
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr m = 0;
  CUmemGenericAllocationHandle h = 0;
  EXPECT_OK(w.d.MemAddressReserve(&m, kLarge, 0, 0, 0));
  EXPECT_OK(w.d.MemCreate(&h, kLarge, &properties, 0));
  EXPECT_OK(w.d.MemMap(m, kLarge, 0, h, 0));
  EXPECT_OK(w.d.MemSetAccess(m, kLarge, &access, 1));
  EXPECT_OK(w.At(1).MemsetD8Async(m, 1, 4096, w.Stream()));
  EXPECT_OK(w.At(2).MemUnmap(m, kLarge));
  w.ExpectOne(MisuseRule::FreedInUse, 2, 1);
}

TEST(MisusedAcross, AKernelHandedMemoryOfAnotherDevice) {
  Record record;
  WorldOptions options;
  options.device_bytes = std::uint64_t{256} << 20;
  options.device_count = 2;
  options.on_misuse = Record::Tell;
  options.origin = Record::Origin;
  options.observer = &record;
  const Simulated sim(options);
  CUcontext second = nullptr;
  CUdeviceptr there = 0;
  CUdeviceptr here = 0;
  EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&second, 1));
  EXPECT_OK(sim.d.CtxSetCurrent(second));
  EXPECT_OK(sim.d.MemAlloc(&there, 4096));
  EXPECT_OK(sim.d.CtxSetCurrent(sim.context));
  EXPECT_OK(sim.d.MemAlloc(&here, 4096));
  CUfunction f = Kernel(sim.d);
  int count = 4;
  void* arguments[] = {&here, &count};
  EXPECT_OK(sim.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT_TRUE(record.seen.empty());
  arguments[0] = &there;
  record.at = 1;
  EXPECT_OK(sim.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  ASSERT_EQ(record.seen.size(), 1U);
  EXPECT_EQ(record.seen[0].rule, MisuseRule::CrossContext);
  EXPECT_EQ(record.seen[0].object, there);
  EXPECT_EQ(record.seen[0].origin, 1U);
}

TEST(MisusedAcross, AKernelHandedATextureOfAnotherContext) {
  Witnessed w;
  CUfunction f = Kernel(w.d);
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC shape{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = w.Memory();
  resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = 64;
  CUtexObject own = 0;
  CUtexObject foreign = 0;
  CUcontext other = nullptr;
  EXPECT_OK(w.d.TexObjectCreate(&own, &resource, &shape, nullptr));
  EXPECT_OK(w.d.CtxCreate(&other, nullptr, 0, 0));
  EXPECT_OK(w.d.TexObjectCreate(&foreign, &resource, &shape, nullptr));
  EXPECT_OK(w.d.CtxSetCurrent(w.sim.context));
  int count = 4;
  void* arguments[] = {&own, &count};
  EXPECT_OK(w.At(1).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  w.ExpectNone();
  arguments[0] = &foreign;
  EXPECT_OK(w.At(2).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  w.ExpectOne(MisuseRule::CrossContext, 2, 0);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Misused, testing::ValuesIn(kSchedules), NameOf);

}  // namespace
}  // namespace cuaudit::sim::misuse_test
