// SPDX-License-Identifier: MIT
// What is ordered, by whatever means CUDA has for it: nothing may be said of any of these under any schedule.
#include <thread>

#include "faults/sim/state/world_state.h"
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::ordered_test {
namespace {

constexpr std::size_t kBytes = 4096;

class Ordered : public testing::TestWithParam<Schedule> {
 protected:
  ~Ordered() override { w.ExpectNone(); }
  void Fill(CUdeviceptr to, CUstream stream) { EXPECT_OK(w.At(++count).MemsetD8Async(to, 1, kBytes, stream)); }
  void Copy(CUdeviceptr to, CUdeviceptr from, CUstream stream, std::size_t bytes = kBytes) {
    EXPECT_OK(w.At(++count).MemcpyDtoDAsync(to, from, bytes, stream));
  }
  void Order(CUstream before, CUstream after) {
    CUevent e = w.Event();
    EXPECT_OK(w.d.EventRecord(e, before));
    EXPECT_OK(w.d.StreamWaitEvent(after, e, 0));
    EXPECT_OK(w.d.EventDestroy(e));
  }
  Witnessed w{GetParam()};
  std::uint64_t count = 0;
  CUdeviceptr p = w.Memory(1 << 20);
  CUdeviceptr q = w.Memory(1 << 20);
  CUstream s = w.Stream();
  CUstream t = w.Stream();
};

TEST_P(Ordered, OneStream) {
  Fill(p, s);
  Copy(q, p, s);
  Fill(p, s);
}

TEST_P(Ordered, AnEventThatIsDestroyedAtOnce) {
  Fill(p, s);
  Order(s, t);
  Copy(q, p, t);
  Order(t, s);
  Fill(p, s);
}

// The CPU reads the value without a driver call; before it is there, nothing may follow.
TEST_P(Ordered, AValueThatTheCpuHasRead) {
  void* host = nullptr;
  CUdeviceptr word = 0;
  EXPECT_OK(w.d.MemHostAlloc(&host, sizeof(std::uint64_t), CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_OK(w.d.MemHostGetDevicePointer(&word, host, 0));
  auto* const value = static_cast<std::uint64_t*>(host);
  *value = 0;
  Fill(p, s);
  EXPECT_OK(w.d.StreamWriteValue64(s, word, 1, 0));
  EXPECT_EQ(__atomic_load_n(value, __ATOMIC_ACQUIRE) == 1, GetParam() == Schedule::Fifo || *value == 1);
  if (*value == 1) Fill(p, t);
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  Fill(p, t);
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  EXPECT_OK(w.d.MemFreeHost(host));
}

TEST_P(Ordered, AThirdStreamBetween) {
  CUstream between = w.Stream();
  Fill(p, s);
  Order(s, between);
  Order(between, t);
  Fill(p, t);
}

TEST_P(Ordered, AnEventRecordedAgainKeepsTheEarlierWait) {
  CUevent e = w.Event();
  Fill(p, s);
  EXPECT_OK(w.d.EventRecord(e, s));
  EXPECT_OK(w.d.StreamWaitEvent(t, e, 0));
  Fill(q, s);
  EXPECT_OK(w.d.EventRecord(e, s));
  Fill(p, t);
}

TEST_P(Ordered, TwoReadersAndThenAWriterBehindBoth) {
  Fill(p, s);
  Order(s, t);
  Copy(q, p, s);
  Copy(q + kBytes, p, t);
  Order(t, s);
  Fill(p, s);
}

TEST_P(Ordered, DisjointBytesOfOneAllocation) {
  Fill(p, s);
  Fill(p + kBytes, t);
  Copy(p + 3 * kBytes, p, s, 100);
  Copy(p + 3 * kBytes + 100, p + kBytes, t, 100);
}

TEST_P(Ordered, InterleavedColumns) {
  EXPECT_OK(w.At(1).MemsetD2D8Async(p, 128, 1, 64, 100, s));
  EXPECT_OK(w.At(2).MemsetD2D8Async(p + 64, 128, 2, 64, 100, t));
}

TEST_P(Ordered, HalvesOfAnArray) {
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR shape{64, 64, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  EXPECT_OK(w.d.ArrayCreate(&array, &shape));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = p;
  copy.srcPitch = 64;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 32;
  copy.Height = 64;
  EXPECT_OK(w.At(1).Memcpy2DAsync(&copy, s));
  copy.dstXInBytes = 32;
  EXPECT_OK(w.At(2).Memcpy2DAsync(&copy, t));
}

TEST_P(Ordered, TheHostWaitsForAStream) {
  Fill(p, s);
  EXPECT_OK(w.d.StreamSynchronize(s));
  Fill(p, t);
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  Fill(p, s);
}

TEST_P(Ordered, TheHostWaitsForAnEvent) {
  CUevent e = w.Event();
  Fill(p, s);
  EXPECT_OK(w.d.EventRecord(e, s));
  Fill(q, s);
  EXPECT_OK(w.d.EventSynchronize(e));
  Fill(p, t);
}

TEST_P(Ordered, TheHostPolls) {
  CUevent e = w.Event();
  Fill(p, s);
  EXPECT_OK(w.d.EventRecord(e, s));
  while (w.d.EventQuery(e) == CUDA_ERROR_NOT_READY) continue;
  Fill(p, t);
  while (w.d.StreamQuery(t) == CUDA_ERROR_NOT_READY) continue;
  Fill(p, s);
}

TEST_P(Ordered, AnotherThreadTakesOver) {
  Fill(p, s);
  EXPECT_OK(w.d.StreamSynchronize(s));
  std::thread([this] {
    EXPECT_OK(w.d.CtxSetCurrent(w.sim.context));
    Fill(p, t);
    EXPECT_OK(w.d.StreamSynchronize(t));
  }).join();
  Fill(p, s);
}

TEST_P(Ordered, TheLegacyStreamIsABarrierForBlockingOnes) {
  CUstream a = w.Stream(0);
  CUstream b = w.Stream(0);
  Fill(p, a);
  EXPECT_OK(w.At(++count).MemsetD8(q, 1, 16));
  Fill(p, b);
  Fill(q, b);
  Fill(p, nullptr);
  Fill(q, CU_STREAM_PER_THREAD);
  Fill(p, CU_STREAM_PER_THREAD);
  Fill(p, nullptr);
}

TEST_P(Ordered, ASynchronousCopyIsDoneWhenItReturns) {
  const int in = 1;
  int out = 0;
  EXPECT_OK(w.At(++count).MemcpyHtoD(p, &in, sizeof(in)));
  Copy(q, p, s);
  EXPECT_OK(w.d.StreamSynchronize(s));
  EXPECT_OK(w.At(++count).MemcpyDtoH(&out, q, sizeof(out)));
  Fill(q, t);
  EXPECT_EQ(out, 1);
}

TEST_P(Ordered, APageableDownloadIsDoneWhenItReturns) {
  int out = 0;
  EXPECT_OK(w.At(++count).MemcpyDtoHAsync(&out, p, sizeof(out), s));
  Fill(p, t);
}

TEST_P(Ordered, MemFreeWaitsForTheContext) {
  Fill(p, s);
  Fill(q, t);
  EXPECT_OK(w.At(++count).MemFree(q));
  EXPECT_OK(w.At(++count).MemFree(p));
}

TEST_P(Ordered, PoolMemoryHandedOverAndFreedBehindItsReaders) {
  CUdeviceptr m = 0;
  EXPECT_OK(w.At(++count).MemAllocAsync(&m, kBytes, s));
  Fill(m, s);
  Order(s, t);
  Copy(q, m, t);
  EXPECT_OK(w.At(++count).MemFreeAsync(m, t));
  EXPECT_OK(w.At(++count).MemAllocAsync(&m, kBytes, s));
  Fill(m, s);
  Order(s, t);
  Copy(q, m, t);
  Order(t, s);
  EXPECT_OK(w.At(++count).MemFreeAsync(m, s));
  EXPECT_OK(w.At(++count).MemAllocAsync(&m, kBytes, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  Fill(m, t);
  EXPECT_OK(w.d.StreamSynchronize(t));
  EXPECT_OK(w.At(++count).MemFree(m));
}

TEST_P(Ordered, StreamsAndEventsDestroyedWhileBusy) {
  CUstream gone = w.Stream();
  CUevent e = w.Event();
  Fill(p, gone);
  EXPECT_OK(w.d.EventRecord(e, gone));
  EXPECT_OK(w.d.StreamDestroy(gone));
  EXPECT_OK(w.d.StreamWaitEvent(s, e, 0));
  EXPECT_OK(w.d.EventDestroy(e));
  Fill(p, s);
  EXPECT_OK(w.d.StreamDestroy(s));
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  Fill(p, t);
}

TEST_P(Ordered, StreamsThatComeAndGo) {
  for (int i = 0; i < 300; ++i) {
    CUstream stream = w.Stream();
    Fill(p, stream);
    Order(stream, s);
    Order(s, t);
    EXPECT_OK(w.d.StreamDestroy(stream));
    if (i % 7 == 0) {
      EXPECT_OK(w.d.StreamSynchronize(t));
    }
    CUstream next = w.Stream();
    Order(t, next);
    Copy(q, p, next);
    Order(next, t);
    EXPECT_OK(w.d.StreamSynchronize(t));
    EXPECT_OK(w.d.StreamDestroy(next));
  }
}

TEST_P(Ordered, AGraphLaunchedAgainInItsStream) {
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  Fill(p, s);
  Order(s, t);
  Copy(q, p, t);
  Fill(p + kBytes, s);
  Order(t, s);
  Fill(p, s);
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  Fill(p, s);
  EXPECT_OK(w.At(++count).GraphLaunch(x, s));
  EXPECT_OK(w.At(++count).GraphLaunch(x, s));
  Fill(q, s);
  EXPECT_OK(w.d.GraphExecDestroy(x));
}

// Only one launch of an executable graph runs at a time, in whatever streams; uploads come behind them too.
TEST_P(Ordered, AGraphLaunchedInAnotherStream) {
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  int turns = 0;
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  Fill(p, s);
  EXPECT_OK(w.d.LaunchHostFunc(
      s, [](void* n) { ++*static_cast<int*>(n); }, &turns));
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.At(++count).GraphLaunch(x, s));
  EXPECT_OK(w.At(++count).GraphLaunch(x, t));
  Fill(p, t);
  EXPECT_OK(w.d.StreamSynchronize(t));
  EXPECT_EQ(turns, 2);
  EXPECT_OK(w.At(++count).GraphLaunch(x, s));
  EXPECT_OK(w.At(++count).GraphUpload(x, t));
  Fill(p, t);
  EXPECT_OK(w.d.GraphExecDestroy(x));
  EXPECT_OK(w.d.StreamSynchronize(t));
  EXPECT_EQ(turns, 3);
}

TEST_P(Ordered, AGraphThatRecordsAndWaits) {
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  CUgraphNode nodes[2] = {};
  CUevent before = w.Event();
  CUevent after = w.Event();
  EXPECT_OK(w.d.GraphCreate(&g, 0));
  EXPECT_OK(w.d.GraphAddEventWaitNode(&nodes[0], g, nullptr, 0, before));
  EXPECT_OK(w.d.GraphAddEventRecordNode(&nodes[1], g, &nodes[0], 1, after));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  CUstream third = w.Stream();
  Fill(p, s);
  EXPECT_OK(w.d.EventRecord(before, s));
  EXPECT_OK(w.At(++count).GraphLaunch(x, t));
  EXPECT_OK(w.d.StreamWaitEvent(third, after, 0));
  Fill(p, third);
}

TEST_P(Ordered, AGraphOnMemoryMappedAgainAtTheSameAddress) {
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr m = 0;
  EXPECT_OK(w.d.MemAddressReserve(&m, kLarge, 0, 0, 0));
  const auto map = [&] {
    CUmemGenericAllocationHandle h = 0;
    EXPECT_OK(w.d.MemCreate(&h, kLarge, &properties, 0));
    EXPECT_OK(w.d.MemMap(m, kLarge, 0, h, 0));
    EXPECT_OK(w.d.MemSetAccess(m, kLarge, &access, 1));
    EXPECT_OK(w.d.MemRelease(h));
  };
  map();
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  Fill(m, s);
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.d.GraphLaunch(x, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  EXPECT_OK(w.d.MemUnmap(m, kLarge));
  map();
  EXPECT_OK(w.d.GraphLaunch(x, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
}

TEST_P(Ordered, AValueInMemoryMayOrderAnything) {
  CUdeviceptr flag = w.Memory();
  CUstream third = w.Stream();
  EXPECT_OK(w.d.StreamWaitValue32(t, flag, 7, CU_STREAM_WAIT_VALUE_EQ));
  Copy(q, p, t);
  Order(t, third);
  Fill(p + kBytes, third);
  Fill(p, s);
  Fill(p + kBytes, s);
  EXPECT_OK(w.d.StreamWriteValue32(s, flag, 7, 0));
  EXPECT_OK(w.d.CtxSynchronize(nullptr));
  Fill(p, t);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Ordered, testing::ValuesIn(kSchedules), NameOf);

// Many allocations and fragments in flight: what is kept does not grow with what has been.
TEST(OrderedForLong, HistoryIsForgotten) {
  Witnessed w(Schedule::Fifo);
  CUstream s = w.Stream();
  CUstream t = w.Stream();
  CUevent e = w.Event();
  CUdeviceptr p = w.Memory(std::size_t{32} << 20);
  for (std::uint64_t i = 0; i < 200000; ++i) {
    ASSERT_EQ(w.At(i).MemsetD8Async(p + i * 97 % (std::size_t{31} << 20), 1, 64, s), CUDA_SUCCESS);
    if (i % 1000 == 0) {
      ASSERT_EQ(w.d.EventRecord(e, s), CUDA_SUCCESS);
      ASSERT_EQ(w.d.EventSynchronize(e), CUDA_SUCCESS);
      ASSERT_EQ(w.d.MemsetD8Async(p + (std::size_t{31} << 20), 1, 64, t), CUDA_SUCCESS);
    }
  }
  w.ExpectNone();
  EXPECT_LT(w.sim.world->spans, 10000U);
}

}  // namespace
}  // namespace cuaudit::sim::ordered_test
