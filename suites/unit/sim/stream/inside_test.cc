// SPDX-License-Identifier: MIT
// What client code may ask for that a driver call runs: host functions, callbacks, destructors of user objects.
#include "suites/support/sim_world.h"

namespace cuaudit::sim::inside_test {
namespace {

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
}  // namespace cuaudit::sim::inside_test
