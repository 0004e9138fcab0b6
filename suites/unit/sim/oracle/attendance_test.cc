// SPDX-License-Identifier: MIT
// Who runs what the CPU waits for without a driver call: RunUnattended, called here as the drop-in's thread calls it.
#include "suites/support/sim_world.h"

namespace cuaudit::sim::attendance_test {
namespace {

struct Attended {
  int asked = 0;
  bool agrees = true;
};

WorldOptions With(Schedule schedule, Attended* attended) {
  WorldOptions options;
  options.device_bytes = std::uint64_t{256} << 20;
  options.schedule = schedule;
  options.observer = attended;
  options.on_awaited = [](void* observer) {
    Attended* const at = static_cast<Attended*>(observer);
    ++at->asked;
    return at->agrees;
  };
  return options;
}

void Bump(void* argument) { ++*static_cast<int*>(argument); }

struct Queue {
  explicit Queue(const Simulated& sim) {
    EXPECT_OK(sim.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.MemAlloc(&memory, 4096));
  }
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};

TEST(Attendance, AskedForOnceAndOnlyForWhatTheCpuSees) {
  Attended attended;
  Simulated sim(With(Schedule::Lazy, &attended));
  const Queue queue(sim);
  void* pinned = nullptr;
  EXPECT_OK(sim.d.MemAllocHost(&pinned, 4096));
  EXPECT_OK(sim.d.MemsetD8Async(queue.memory, 1, 4096, queue.stream));
  EXPECT_OK(sim.d.MemcpyHtoDAsync(queue.memory, pinned, 4096, queue.stream));
  EXPECT_EQ(attended.asked, 0);
  EXPECT_OK(sim.d.MemcpyDtoHAsync(pinned, queue.memory, 4096, queue.stream));
  EXPECT_EQ(attended.asked, 1);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  EXPECT_EQ(attended.asked, 1);
}

TEST(Attendance, StepsInAfterAWholeIntervalWithoutACall) {
  for (const Schedule schedule : {Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial}) {
    Attended attended;
    Simulated sim(With(schedule, &attended));
    const Queue queue(sim);
    int count = 0;
    EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
    EXPECT_OK(sim.d.MemsetD8Async(queue.memory, 1, 4096, queue.stream));
    EXPECT_EQ(count, 0) << "the caller may hold what the function takes";
    Attendance attendance;
    EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U) << "queued less than an interval ago";
    EXPECT_EQ(RunUnattended(sim.world, &attendance), 1U) << "and no more than what the CPU may wait for";
    EXPECT_EQ(count, 1);
    EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U);
  }
}

TEST(Attendance, CallsPutItOffButNotForEver) {
  Attended attended;
  Simulated sim(With(Schedule::Lazy, &attended));
  const Queue queue(sim);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  Attendance attendance;
  EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U);
  int rounds = 0;
  for (; count == 0 && rounds < 100; ++rounds) {
    CUcontext current = nullptr;
    EXPECT_OK(sim.d.CtxGetCurrent(&current));
    EXPECT_EQ(RunUnattended(sim.world, &attendance), rounds == 9 ? 1U : 0U);
  }
  EXPECT_EQ(rounds, 10);
}

TEST(Attendance, AWaitRunsTheFunctionItselfAndOthersLast) {
  Attended attended;
  Simulated sim(With(Schedule::Fifo, &attended));
  const Queue queue(sim);
  const Queue other(sim);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  EXPECT_OK(sim.d.MemsetD8Async(other.memory, 1, 4096, other.stream));
  EXPECT_OK(sim.d.StreamSynchronize(other.stream));
  EXPECT_EQ(count, 0);
  EXPECT_OK(sim.d.StreamSynchronize(queue.stream));
  EXPECT_EQ(count, 1);
}

TEST(Attendance, NobodyThereLeavesEverythingAsItWas) {
  Attended attended{0, false};
  Simulated sim(With(Schedule::Fifo, &attended));
  const Queue queue(sim);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  EXPECT_EQ(count, 1);
  EXPECT_EQ(attended.asked, 1);
}

TEST(Attendance, AValueThatNobodyWroteYetIsWaitedFor) {
  Attended attended;
  Simulated sim(With(Schedule::Lazy, &attended));
  const Queue queue(sim);
  void* pinned = nullptr;
  EXPECT_OK(sim.d.MemAllocHost(&pinned, 4096));
  *static_cast<volatile unsigned*>(pinned) = 0;
  CUdeviceptr flag = 0;
  EXPECT_OK(sim.d.MemHostGetDevicePointer(&flag, pinned, 0));
  int count = 0;
  EXPECT_OK(sim.d.StreamWaitValue32(queue.stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  Attendance attendance;
  for (int i = 0; i < 30; ++i) EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U);
  *static_cast<volatile unsigned*>(pinned) = 1;
  EXPECT_EQ(RunUnattended(sim.world, &attendance), 2U);
  EXPECT_EQ(count, 1);
  EXPECT_OK(sim.d.StreamSynchronize(queue.stream));
}

}  // namespace
}  // namespace cuaudit::sim::attendance_test
