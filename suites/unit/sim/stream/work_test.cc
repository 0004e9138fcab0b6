// SPDX-License-Identifier: MIT
// Work in streams, and what client code may ask for that a driver call runs.
#include <vector>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::work_test {
namespace {

void Bump(void* argument) { ++*static_cast<int*>(argument); }
void Copy(void* argument) {
  int* const values = static_cast<int*>(argument);
  values[1] = values[0];
}

TEST(Work, BytesMoveThroughDeviceMemory) {
  Simulated sim;
  CUdeviceptr p = 0;
  std::vector<unsigned char> in(100000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7);
  std::vector<unsigned char> out(in.size());
  EXPECT_OK(sim.d.MemAlloc(&p, in.size()));
  EXPECT_OK(sim.d.MemcpyHtoD(p, in.data(), in.size()));
  EXPECT_OK(sim.d.MemcpyDtoD(p + 1000, p, 1000));
  EXPECT_OK(sim.d.MemcpyDtoH(out.data(), p, out.size()));
  EXPECT_EQ(out[500], in[500]);
  EXPECT_EQ(out[1500], in[500]);
  EXPECT_EQ(out[5000], in[5000]);
}

TEST(Work, WaitsUntilSomebodyWaits) {
  Simulated sim;
  CUstream s = nullptr;
  int ran = 0;
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.LaunchHostFunc(s, Bump, &ran));
  EXPECT_OK(sim.d.LaunchHostFunc(s, Bump, &ran));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(sim.d.StreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(sim.d.StreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(sim.d.StreamQuery(s), CUDA_SUCCESS);
  EXPECT_EQ(ran, 2);
}

TEST(Work, EventOrdersTwoStreams) {
  Simulated sim;
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUevent e = nullptr;
  int values[2] = {0, -1};
  EXPECT_OK(sim.d.StreamCreate(&first, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.StreamCreate(&second, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(first, Bump, &values[0]));
  EXPECT_OK(sim.d.EventRecord(e, first));
  EXPECT_OK(sim.d.StreamWaitEvent(second, e, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(second, Copy, values));
  EXPECT_OK(sim.d.StreamSynchronize(second));
  EXPECT_EQ(values[1], 1);
}

TEST(Work, LegacyStreamWaitsForBlockingStreamsOnly) {
  Simulated sim;
  CUstream blocking = nullptr;
  CUstream free = nullptr;
  int ran[3] = {};
  EXPECT_OK(sim.d.StreamCreate(&blocking, 0));
  EXPECT_OK(sim.d.StreamCreate(&free, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.LaunchHostFunc(blocking, Bump, &ran[0]));
  EXPECT_OK(sim.d.LaunchHostFunc(free, Bump, &ran[1]));
  EXPECT_OK(sim.d.LaunchHostFunc(nullptr, Bump, &ran[2]));
  EXPECT_OK(sim.d.StreamSynchronize(nullptr));
  EXPECT_EQ(ran[0], 1);
  EXPECT_EQ(ran[1], 0);
  EXPECT_EQ(ran[2], 1);
}

TEST(Work, FreedMemoryUnderAPendingCopyLosesTheContext) {
  Simulated sim;
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  EXPECT_OK(sim.d.StreamCreate(&first, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.StreamCreate(&second, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.MemAllocAsync(&p, 4096, first));
  EXPECT_OK(sim.d.MemAllocAsync(&q, 4096, first));
  EXPECT_OK(sim.d.MemcpyDtoDAsync(q, p, 4096, second));
  EXPECT_OK(sim.d.MemFreeAsync(p, first));
  EXPECT_OK(sim.d.StreamSynchronize(first));
  EXPECT_EQ(sim.d.StreamSynchronize(second), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sim.d.MemAlloc(&p, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(Work, CapturedWorkRunsOncePerLaunch) {
  Simulated sim;
  CUstream s = nullptr;
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  CUdeviceptr p = 0;
  int ran = 0;
  unsigned out = 0;
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.MemAlloc(&p, 64));
  EXPECT_OK(sim.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(sim.d.MemsetD32Async(p, 99, 16, s));
  EXPECT_OK(sim.d.LaunchHostFunc(s, Bump, &ran));
  EXPECT_OK(sim.d.StreamEndCapture(s, &g));
  EXPECT_OK(sim.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_EQ(ran, 0);
  EXPECT_OK(sim.d.GraphLaunch(x, s));
  EXPECT_OK(sim.d.GraphLaunch(x, s));
  EXPECT_OK(sim.d.GraphExecDestroy(x));
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_EQ(ran, 2);
  EXPECT_OK(sim.d.MemcpyDtoH(&out, p + 60, 4));
  EXPECT_EQ(out, 99U);
}

TEST(Work, UserObjectOutlivesTheLaunchUnderWay) {
  Simulated sim;
  CUstream s = nullptr;
  CUgraph g = nullptr;
  CUgraphNode n = nullptr;
  CUgraphExec x = nullptr;
  CUuserObject u = nullptr;
  int died = 0;
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.GraphCreate(&g, 0));
  EXPECT_OK(sim.d.GraphAddEmptyNode(&n, g, nullptr, 0));
  EXPECT_OK(sim.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_OK(sim.d.GraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_OK(sim.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(sim.d.GraphLaunch(x, s));
  EXPECT_OK(sim.d.GraphExecDestroy(x));
  EXPECT_OK(sim.d.GraphDestroy(g));
  EXPECT_EQ(died, 0);
  EXPECT_EQ(sim.Live(driver::Kind::UserObject), 1U);
  EXPECT_OK(sim.d.StreamSynchronize(s));
  EXPECT_EQ(died, 1);
  EXPECT_EQ(sim.Live(driver::Kind::UserObject), 0U);
}

TEST(Work, ArrayKeepsRowsApart) {
  Simulated sim;
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR shape{5, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  unsigned char in[15];
  unsigned char out[15] = {};
  for (unsigned char i = 0; i < 15; ++i) in[i] = i;
  EXPECT_OK(sim.d.ArrayCreate(&array, &shape));
  CUDA_MEMCPY2D up{};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = in;
  up.srcPitch = 5;
  up.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  up.dstArray = array;
  up.WidthInBytes = 5;
  up.Height = 3;
  EXPECT_OK(sim.d.Memcpy2D(&up));
  CUDA_MEMCPY2D down{};
  down.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  down.srcArray = array;
  down.srcXInBytes = 1;
  down.srcY = 1;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.dstHost = out;
  down.dstPitch = 3;
  down.WidthInBytes = 3;
  down.Height = 2;
  EXPECT_OK(sim.d.Memcpy2D(&down));
  EXPECT_EQ(out[0], 6);
  EXPECT_EQ(out[5], 13);
  down.srcY = 2;
  EXPECT_EQ(sim.d.Memcpy2D(&down), CUDA_ERROR_INVALID_VALUE);
}

TEST(Work, TwoMappingsOfOneHandleShareBytes) {
  Simulated sim;
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUdeviceptr p = 0;
  CUmemGenericAllocationHandle h = 0;
  unsigned char out = 0;
  EXPECT_OK(sim.d.MemAddressReserve(&p, 2 * kBytes, 0, 0, 0));
  EXPECT_OK(sim.d.MemCreate(&h, kBytes, &properties, 0));
  EXPECT_OK(sim.d.MemMap(p, kBytes, 0, h, 0));
  EXPECT_OK(sim.d.MemMap(p + kBytes, kBytes, 0, h, 0));
  EXPECT_EQ(sim.d.MemsetD8(p, 9, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(sim.d.MemSetAccess(p, 2 * kBytes, &access, 1));
  EXPECT_OK(sim.d.MemsetD8(p + 5, 9, 1));
  EXPECT_OK(sim.d.MemcpyDtoH(&out, p + kBytes + 5, 1));
  EXPECT_EQ(out, 9);
  EXPECT_OK(sim.d.MemUnmap(p, 2 * kBytes));
  EXPECT_OK(sim.d.MemRelease(h));
  EXPECT_OK(sim.d.MemAddressFree(p, 2 * kBytes));
  EXPECT_EQ(sim.Live(driver::Kind::Mapping), 0U);
  EXPECT_EQ(sim.Live(driver::Kind::PhysicalMemory), 0U);
  EXPECT_EQ(sim.Live(driver::Kind::AddressReservation), 0U);
}

TEST(Work, AnEventOfAnEndedCaptureIsInvalidUntilRecordedAgain) {
  Simulated sim;
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUgraph g = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(sim.d.EventRecord(e, s));
  EXPECT_OK(sim.d.StreamEndCapture(s, &g));
  EXPECT_EQ(sim.d.EventQuery(e), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.d.EventSynchronize(e), CUDA_ERROR_INVALID_VALUE);
  CUgraph h = nullptr;
  EXPECT_OK(sim.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(sim.d.StreamWaitEvent(s, e, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.d.StreamEndCapture(s, &h), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_OK(sim.d.EventRecord(e, s));
  EXPECT_OK(sim.d.EventSynchronize(e));
}

TEST(Work, ACaptureOfANonBlockingStreamToleratesSynchronousCopies) {
  Simulated sim;
  CUstream s = nullptr;
  CUdeviceptr p = 0;
  CUgraph g = nullptr;
  void* pinned = nullptr;
  int value = 7;
  EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(sim.d.MemAlloc(&p, 16));
  EXPECT_OK(sim.d.MemAllocHost(&pinned, 16));
  EXPECT_OK(sim.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(sim.d.MemcpyHtoD(p, &value, sizeof(value)));
  EXPECT_OK(sim.d.MemcpyDtoH(&value, p, sizeof(value)));
  EXPECT_OK(sim.d.MemcpyHtoD(p, pinned, 16));
  EXPECT_OK(sim.d.StreamEndCapture(s, &g));
  CUstream blocking = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&blocking, CU_STREAM_DEFAULT));
  EXPECT_OK(sim.d.StreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(sim.d.MemcpyHtoD(p, &value, sizeof(value)), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(sim.d.StreamEndCapture(blocking, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// What client code may ask for that a driver call runs: host functions, callbacks, destructors of user objects.

struct Inner {
  explicit Inner(Schedule schedule) : sim({.device_bytes = std::uint64_t{256} << 20, .schedule = schedule}) {
    EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
  }
  // Runs `function` in a host function of s, to its end.
  void Run(CUhostFn function) {
    EXPECT_OK(sim.d.LaunchHostFunc(s, function, this));
    EXPECT_OK(sim.d.StreamSynchronize(s));
  }
  Simulated sim;
  CUstream s = nullptr;
  CUstream t = nullptr;
  CUevent e = nullptr;
  CUresult result = CUDA_ERROR_UNKNOWN;
  int count = 0;
};

class Insides : public testing::TestWithParam<Schedule> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Insides, testing::Values(Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial));

TEST_P(Insides, AnEventRecordedInsideIsReachedLater) {
  Inner in(GetParam());
  in.Run([](void* argument) {
    Inner& inner = *static_cast<Inner*>(argument);
    inner.result = inner.sim.d.EventRecord(inner.e, inner.t);
  });
  EXPECT_OK(in.result);
  EXPECT_OK(in.sim.d.EventSynchronize(in.e));
  EXPECT_OK(in.sim.d.EventQuery(in.e));
}

TEST_P(Insides, AFunctionQueuedInsideRunsOnce) {
  Inner in(GetParam());
  in.Run([](void* argument) {
    Inner& inner = *static_cast<Inner*>(argument);
    inner.result = inner.sim.d.LaunchHostFunc(
        inner.t, [](void* outer) { ++static_cast<Inner*>(outer)->count; }, argument);
  });
  EXPECT_OK(in.result);
  EXPECT_OK(in.sim.d.StreamSynchronize(in.t));
  EXPECT_EQ(in.count, 1);
}

TEST_P(Insides, ItsOwnStreamIsBusyAndAnotherGoesOnWhileItPolls) {
  Inner in(GetParam());
  EXPECT_OK(in.sim.d.LaunchHostFunc(
      in.t, [](void* outer) { ++static_cast<Inner*>(outer)->count; }, &in));
  in.Run([](void* argument) {
    Inner& inner = *static_cast<Inner*>(argument);
    EXPECT_EQ(inner.sim.d.StreamQuery(inner.s), CUDA_ERROR_NOT_READY);
    for (int i = 0; i < 100 && inner.result != CUDA_SUCCESS; ++i) inner.result = inner.sim.d.StreamQuery(inner.t);
    EXPECT_EQ(inner.count, 1);
    // A function nested in this one has ended; this one is still a host function.
    int devices = 0;
    EXPECT_EQ(inner.sim.d.DeviceGetCount(&devices), CUDA_ERROR_NOT_PERMITTED);
  });
  EXPECT_OK(in.result);
}

TEST_P(Insides, TheDefaultStreamIsRefused) {
  Inner in(GetParam());
  in.Run([](void* argument) {
    Inner& inner = *static_cast<Inner*>(argument);
    inner.result = inner.sim.d.StreamQuery(nullptr);
  });
  EXPECT_EQ(in.result, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_OK(in.sim.d.StreamQuery(nullptr));
}

TEST_P(Insides, ADestructorMayAskForNothing) {
  Inner in(GetParam());
  CUuserObject object = nullptr;
  const CUhostFn destroy = [](void* argument) {
    Inner& inner = *static_cast<Inner*>(argument);
    inner.result = inner.sim.d.EventQuery(inner.e);
  };
  EXPECT_OK(in.sim.d.UserObjectCreate(&object, &in, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_OK(in.sim.d.UserObjectRelease(object, 1));
  EXPECT_EQ(in.result, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_OK(in.sim.d.EventQuery(in.e));
}

}  // namespace
}  // namespace cuaudit::sim::work_test
