// SPDX-License-Identifier: MIT
// What work waits for and writes: values in memory, and semaphores of other interfaces.
#include <fcntl.h>

#include <thread>

#include "include/cuaudit/semaphore.h"
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

// Semaphores of another interface, in streams and in graphs.

using driver::Kind;

constexpr auto kBinary = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
constexpr auto kTimeline = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;

struct Interop {
  explicit Interop(CUexternalSemaphoreHandleType type, Schedule schedule = Schedule::Lazy, std::uint32_t patience_ms = 0)
      : sim({.device_bytes = std::uint64_t{256} << 20, .schedule = schedule, .patience_ms = patience_ms}),
        outside(cuaudit_semaphore_create(0)) {
    EXPECT_OK(sim.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.MemAlloc(&p, 64));
    EXPECT_OK(sim.d.MemsetD8(p, 0, 64));
    EXPECT_OK(sim.d.CtxSynchronize(nullptr));
    EXPECT_OK(Import(dup(outside), type, &semaphore));
  }
  ~Interop() { close(outside); }
  Interop(const Interop&) = delete;
  Interop& operator=(const Interop&) = delete;
  CUresult Import(int fd, CUexternalSemaphoreHandleType type, CUexternalSemaphore* out) const {
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC from{};
    from.type = type;
    from.handle.fd = fd;
    return sim.d.ImportExternalSemaphore(out, &from);
  }
  CUresult Signal(CUstream stream, std::uint64_t value) {
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS how{};
    how.params.fence.value = value;
    return sim.d.SignalExternalSemaphoresAsync(&semaphore, &how, 1, stream);
  }
  CUresult Wait(CUstream stream, std::uint64_t value) {
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS how{};
    how.params.fence.value = value;
    return sim.d.WaitExternalSemaphoresAsync(&semaphore, &how, 1, stream);
  }
  int Byte() const {
    unsigned char byte = 0;
    EXPECT_OK(sim.d.MemcpyDtoH(&byte, p, 1));
    return byte;
  }
  std::uint64_t Value() const {
    std::uint64_t value = 0;
    EXPECT_EQ(cuaudit_semaphore_value(outside, &value), 0);
    return value;
  }
  Simulated sim;
  int outside;
  CUstream s = nullptr;
  CUstream t = nullptr;
  CUdeviceptr p = 0;
  CUexternalSemaphore semaphore = nullptr;
};

class Semaphores : public testing::TestWithParam<Schedule> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Semaphores, testing::Values(Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial));

TEST_P(Semaphores, AWaitHoldsItsStreamUntilAnotherStreamSignals) {
  Interop i(kTimeline, GetParam());
  EXPECT_OK(i.Wait(i.s, 2));
  EXPECT_OK(i.sim.d.MemsetD8Async(i.p, 9, 1, i.s));
  EXPECT_OK(i.Signal(i.t, 1));
  EXPECT_OK(i.sim.d.StreamSynchronize(i.t));
  for (int k = 0; k < 8; ++k) EXPECT_EQ(i.sim.d.StreamQuery(i.s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(i.Byte(), 0);
  EXPECT_OK(i.Signal(i.t, 2));
  EXPECT_OK(i.sim.d.StreamSynchronize(i.s));
  EXPECT_EQ(i.Byte(), 9);
}

TEST_P(Semaphores, TheOtherInterfaceSignalsAndSees) {
  Interop i(kTimeline, GetParam());
  EXPECT_OK(i.Wait(i.s, 5));
  EXPECT_OK(i.Signal(i.s, 6));
  EXPECT_EQ(i.sim.d.StreamQuery(i.s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuaudit_semaphore_signal(i.outside, 5), 0);
  EXPECT_OK(i.sim.d.StreamSynchronize(i.s));
  EXPECT_EQ(i.Value(), 6U);
}

TEST_P(Semaphores, ABinaryOneIsSetBackByItsWait) {
  Interop i(kBinary, GetParam());
  EXPECT_OK(i.Signal(i.s, 0));
  EXPECT_OK(i.sim.d.StreamSynchronize(i.s));
  EXPECT_EQ(i.Value(), 1U);
  EXPECT_OK(i.Wait(i.t, 0));
  EXPECT_OK(i.sim.d.StreamSynchronize(i.t));
  EXPECT_EQ(i.Value(), 0U);
}

TEST_P(Semaphores, AWaitThatNobodyEverSignalsIsGivenUp) {
  Interop i(kTimeline, GetParam());
  EXPECT_OK(i.Wait(i.s, 1));
  EXPECT_EQ(i.sim.d.StreamSynchronize(i.s), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_P(Semaphores, DestroyedUnderAQueuedSignalTheContextIsLost) {
  Interop i(kTimeline, GetParam());
  EXPECT_OK(i.Wait(i.s, 1));  // holds the signal back under every schedule
  EXPECT_OK(i.Signal(i.s, 2));
  EXPECT_OK(i.sim.d.DestroyExternalSemaphore(i.semaphore));
  EXPECT_EQ(i.sim.d.StreamSynchronize(i.s), CUDA_ERROR_EXTERNAL_DEVICE);
}

TEST(Semaphore, WhatIsImportedIsCountedOnceAndItsDescriptorIsTheDrivers) {
  Interop i(kTimeline);
  EXPECT_EQ(i.sim.Live(Kind::ExternalSemaphore), 1U);
  const int given = dup(i.outside);
  CUexternalSemaphore second = nullptr;
  EXPECT_OK(i.Import(given, kBinary, &second));
  EXPECT_EQ(fcntl(given, F_GETFD), -1);
  EXPECT_EQ(i.sim.Live(Kind::ExternalSemaphore), 2U);
  EXPECT_OK(i.sim.d.DestroyExternalSemaphore(second));
  EXPECT_EQ(i.sim.d.DestroyExternalSemaphore(second), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(i.sim.Live(Kind::ExternalSemaphore), 1U);
  EXPECT_OK(i.sim.d.DevicePrimaryCtxReset(0));  // takes it along
  EXPECT_EQ(i.sim.Live(Kind::ExternalSemaphore), 0U);
}

TEST(Semaphore, WhatIsNoSemaphoreIsLeftAlone) {
  const Interop i(kTimeline);
  CUexternalSemaphore none = nullptr;
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(i.Import(ends[0], kTimeline, &none), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(fcntl(ends[0], F_GETFD) >= 0, true);
  close(ends[0]);
  close(ends[1]);
}

TEST(Semaphore, NodesSignalAndWait) {
  Interop i(kTimeline);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphNode nodes[2] = {};
  EXPECT_OK(i.sim.d.GraphCreate(&graph, 0));
  CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS how{};
  how.params.fence.value = 7;
  const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal{&i.semaphore, &how, 1};
  EXPECT_OK(i.sim.d.GraphAddExternalSemaphoresSignalNode(&nodes[0], graph, nullptr, 0, &signal));
  CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS until{};
  until.params.fence.value = 7;
  CUgraphNodeParams wait{};
  wait.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
  wait.extSemWait = {&i.semaphore, &until, 1};
  EXPECT_OK(i.sim.d.GraphAddNode(&nodes[1], graph, nodes, nullptr, 1, &wait));
  how.params.fence.value = 99;  // was copied
  CUDA_EXT_SEM_SIGNAL_NODE_PARAMS seen{};
  EXPECT_OK(i.sim.d.GraphExternalSemaphoresSignalNodeGetParams(nodes[0], &seen));
  ASSERT_EQ(seen.numExtSems, 1U);
  EXPECT_EQ(seen.extSemArray[0], i.semaphore);
  EXPECT_EQ(seen.paramsArray[0].params.fence.value, 7U);
  EXPECT_OK(i.sim.d.GraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_OK(i.sim.d.GraphLaunch(executable, i.s));
  EXPECT_OK(i.sim.d.StreamSynchronize(i.s));
  EXPECT_EQ(i.Value(), 7U);

  how.params.fence.value = 8;
  EXPECT_OK(i.sim.d.GraphExecExternalSemaphoresSignalNodeSetParams(executable, nodes[0], &signal));
  EXPECT_OK(i.sim.d.GraphLaunch(executable, i.s));
  EXPECT_OK(i.sim.d.StreamSynchronize(i.s));
  EXPECT_EQ(i.Value(), 8U);
  const CUexternalSemaphore two[] = {i.semaphore, i.semaphore};
  const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS both[] = {how, how};
  const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS more{const_cast<CUexternalSemaphore*>(two), both, 2};
  EXPECT_EQ(i.sim.d.GraphExecExternalSemaphoresSignalNodeSetParams(executable, nodes[0], &more), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(i.sim.d.GraphExecExternalSemaphoresSignalNodeSetParams(executable, nodes[1], &signal), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(i.sim.d.GraphExecDestroy(executable));
  EXPECT_OK(i.sim.d.GraphDestroy(graph));
}

TEST(Semaphore, AWaitInAGraphFindsItsValueOrTheContextIsLost) {
  Interop i(kTimeline);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  EXPECT_OK(i.sim.d.StreamBeginCapture(i.s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(i.Wait(i.s, 3));
  EXPECT_OK(i.sim.d.StreamEndCapture(i.s, &graph));
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  CUgraphNodeType type{};
  EXPECT_OK(i.sim.d.GraphGetNodes(graph, &node, &count));
  EXPECT_OK(i.sim.d.GraphNodeGetType(node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
  EXPECT_OK(i.sim.d.GraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_EQ(cuaudit_semaphore_signal(i.outside, 3), 0);
  EXPECT_OK(i.sim.d.GraphLaunch(executable, i.s));
  EXPECT_OK(i.sim.d.StreamSynchronize(i.s));
  EXPECT_EQ(cuaudit_semaphore_signal(i.outside, 0), 0);
  EXPECT_OK(i.sim.d.GraphLaunch(executable, i.s));
  EXPECT_EQ(i.sim.d.StreamSynchronize(i.s), CUDA_ERROR_LAUNCH_TIMEOUT);
}

}  // namespace
}  // namespace cuaudit::sim::value_test
