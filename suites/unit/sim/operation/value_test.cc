// SPDX-License-Identifier: MIT
#include <thread>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::value_test {
namespace {

struct Words {
  explicit Words(Schedule schedule = Schedule::Lazy, std::uint32_t patience_ms = 0)
      : sim({.device_bytes = std::uint64_t{256} << 20, .schedule = schedule, .patience_ms = patience_ms}) {
    EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.MemAlloc(&p, 4096));
    EXPECT_OK(sim.d.MemsetD8(p, 0, 4096));
    EXPECT_OK(sim.d.CtxSynchronize(nullptr));
  }
  unsigned Read(std::size_t offset) {
    unsigned value = 0;
    EXPECT_OK(sim.d.MemcpyDtoH(&value, p + offset, sizeof(value)));
    return value;
  }
  Simulated sim;
  CUstream s = nullptr;
  CUstream t = nullptr;
  CUdeviceptr p = 0;
};

class Values : public testing::TestWithParam<Schedule> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Values, testing::Values(Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial));

TEST_P(Values, AWaitHoldsItsStreamUntilAnotherWrites) {
  Words w(GetParam());
  EXPECT_OK(w.sim.d.StreamWaitValue32(w.s, w.p, 5, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_OK(w.sim.d.MemsetD32Async(w.p + 64, 9, 1, w.s));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(w.sim.d.StreamQuery(w.s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(w.Read(64), 0U);
  EXPECT_OK(w.sim.d.StreamWriteValue32(w.t, w.p, 5, 0));
  EXPECT_OK(w.sim.d.StreamSynchronize(w.s));
  EXPECT_EQ(w.Read(64), 9U);
}

TEST_P(Values, AWriteIsDoneBeforeTheFreeThatIsQueuedBehindIt) {
  Words w(GetParam());
  CUdeviceptr lent = 0;
  EXPECT_OK(w.sim.d.MemAllocAsync(&lent, 64, w.s));
  EXPECT_OK(w.sim.d.StreamWriteValue32(w.s, lent, 5, 0));
  EXPECT_OK(w.sim.d.StreamWaitValue32(w.s, lent, 5, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_OK(w.sim.d.MemcpyDtoDAsync(w.p, lent, 4, w.s));
  EXPECT_OK(w.sim.d.MemFreeAsync(lent, w.s));
  EXPECT_OK(w.sim.d.StreamSynchronize(w.s));
  EXPECT_EQ(w.Read(0), 5U);
}

TEST_P(Values, ABatchIsDoneInItsOrder) {
  Words w(GetParam());
  CUstreamBatchMemOpParams operations[3] = {};
  operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = w.p;
  operations[0].writeValue.value = 1;
  operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = w.p + 4;
  operations[1].waitValue.value = 1;
  operations[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[2].writeValue.address = w.p + 8;
  operations[2].writeValue.value = 1;
  EXPECT_OK(w.sim.d.StreamBatchMemOp(w.s, 3, operations, 0));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(w.sim.d.StreamQuery(w.s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(w.Read(0), 1U);
  EXPECT_EQ(w.Read(8), 0U);
  EXPECT_OK(w.sim.d.StreamWriteValue32(w.t, w.p + 4, 1, 0));
  EXPECT_OK(w.sim.d.CtxSynchronize(nullptr));
  EXPECT_EQ(w.Read(8), 1U);
}

TEST_P(Values, NobodyWritesSoTheWaitIsGivenUpAndTheContextIsLost) {
  Words w(GetParam());
  EXPECT_OK(w.sim.d.StreamWaitValue32(w.s, w.p, 5, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_EQ(w.sim.d.StreamSynchronize(w.s), CUDA_ERROR_LAUNCH_TIMEOUT);
  CUdeviceptr q = 0;
  EXPECT_EQ(w.sim.d.MemAlloc(&q, 64), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_P(Values, EndingTheContextEndsTheWait) {
  Words w(GetParam(), 1000000);
  CUcontext c = nullptr;
  CUstream s = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(w.sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(w.sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(w.sim.d.MemAlloc(&p, 64));
  EXPECT_OK(w.sim.d.StreamWaitValue32(s, p, 5, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_OK(w.sim.d.CtxDestroy(c));
  EXPECT_OK(w.sim.d.StreamSynchronize(w.s));  // the other context is as it was
}

TEST_P(Values, AnotherThreadMayWriteWhatTheHostWaitsFor) {
  Words w(GetParam(), 1000000);
  EXPECT_OK(w.sim.d.StreamWaitValue32(w.s, w.p, 5, CU_STREAM_WAIT_VALUE_EQ));
  std::thread other([&] {
    EXPECT_OK(w.sim.d.CtxSetCurrent(w.sim.context));
    EXPECT_OK(w.sim.d.StreamWriteValue32(w.t, w.p, 5, 0));
  });
  EXPECT_OK(w.sim.d.StreamSynchronize(w.s));
  other.join();
}

TEST_P(Values, TheHostMayWriteMemoryThatItSharesWithTheDevice) {
  Words w(GetParam());
  void* shared = nullptr;
  CUdeviceptr address = 0;
  EXPECT_OK(w.sim.d.MemHostAlloc(&shared, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_OK(w.sim.d.MemHostGetDevicePointer(&address, shared, 0));
  *static_cast<volatile unsigned*>(shared) = 0;
  EXPECT_OK(w.sim.d.StreamWaitValue32(w.s, address, 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_EQ(w.sim.d.StreamQuery(w.s), CUDA_ERROR_NOT_READY);
  *static_cast<volatile unsigned*>(shared) = 1;
  EXPECT_OK(w.sim.d.StreamSynchronize(w.s));
}

TEST(Value, ComparesAsAsked) {
  Words w;
  struct Row {
    unsigned now, value, flags;
    bool passes;
  };
  for (const Row& row :
       {Row{3, 0xfffffff0U, CU_STREAM_WAIT_VALUE_GEQ, true}, Row{3, 4, CU_STREAM_WAIT_VALUE_GEQ, false},
        Row{6, 2, CU_STREAM_WAIT_VALUE_AND, true}, Row{6, 1, CU_STREAM_WAIT_VALUE_AND, false}, Row{6, 7, CU_STREAM_WAIT_VALUE_EQ, false}}) {
    CUstream s = nullptr;
    EXPECT_OK(w.sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(w.sim.d.StreamWriteValue32(w.t, w.p, row.now, 0));
    EXPECT_OK(w.sim.d.StreamSynchronize(w.t));
    EXPECT_OK(w.sim.d.StreamWaitValue32(s, w.p, row.value, row.flags));
    (void)w.sim.d.StreamQuery(s);
    EXPECT_EQ(w.sim.d.StreamQuery(s), row.passes ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY) << row.now << ' ' << row.value << ' ' << row.flags;
    EXPECT_OK(w.sim.d.StreamDestroy(s));
  }
}

}  // namespace
}  // namespace cuaudit::sim::value_test
