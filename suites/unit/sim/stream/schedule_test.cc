// SPDX-License-Identifier: MIT
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::schedule_test {
namespace {

WorldOptions With(Schedule schedule, std::uint64_t seed = 1) {
  WorldOptions options;
  options.device_bytes = std::uint64_t{256} << 20;
  options.schedule = schedule;
  options.seed = seed;
  return options;
}

struct Note {
  std::vector<int>* order;
  int number;
};
void Write(void* argument) {
  const Note* const note = static_cast<Note*>(argument);
  note->order->push_back(note->number);
}
void Bump(void* argument) { ++*static_cast<int*>(argument); }

CUstream Stream(const Simulated& sim, int priority = 0, unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  EXPECT_OK(sim.d.StreamCreateWithPriority(&stream, flags, priority));
  return stream;
}

// Three independent streams with two operations each; the caller waits for the second stream, then for all.
std::vector<int> OrderOf(Schedule schedule, std::uint64_t seed = 1) {
  Simulated sim(With(schedule, seed));
  std::vector<int> order;
  std::array<Note, 6> notes{};
  std::array<CUstream, 3> streams{Stream(sim), Stream(sim), Stream(sim)};
  for (std::size_t i = 0; i < notes.size(); ++i) {
    notes[i] = {&order, static_cast<int>(i)};
    EXPECT_OK(sim.d.LaunchHostFunc(streams[i % 3], Write, &notes[i]));
  }
  EXPECT_OK(sim.d.StreamSynchronize(streams[1]));
  order.push_back(-1);
  EXPECT_OK(sim.d.CtxSynchronize(nullptr));
  return order;
}

TEST(Schedules, LazyRunsWhatIsWaitedForAndNoMore) {
  EXPECT_EQ(OrderOf(Schedule::Lazy).at(0), 1);
  EXPECT_EQ(OrderOf(Schedule::Lazy).at(1), 4);
  EXPECT_EQ(OrderOf(Schedule::Lazy).at(2), -1);
}

TEST(Schedules, FifoRunsInTheOrderOfTheCallsAtOnce) { EXPECT_EQ(OrderOf(Schedule::Fifo), (std::vector<int>{0, 1, 2, 3, 4, 5, -1})); }

TEST(Schedules, AdversarialRunsTheNewestFirstAndLeavesTheOldest) {
  EXPECT_EQ(OrderOf(Schedule::Adversarial), (std::vector<int>{2, 5, 1, 4, -1, 0, 3}));
}

TEST(Schedules, RandomDependsOnItsSeedAlone) {
  EXPECT_EQ(OrderOf(Schedule::Random, 7), OrderOf(Schedule::Random, 7));
  bool differs = false;
  for (std::uint64_t seed = 1; seed < 20; ++seed) differs = differs || OrderOf(Schedule::Random, seed) != OrderOf(Schedule::Random, 20);
  EXPECT_TRUE(differs);
}

TEST(Schedules, StreamsStayInOrderUnderAll) {
  for (const Schedule schedule : {Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial}) {
    const std::vector<int> order = OrderOf(schedule, 3);
    std::array<int, 6> place{};
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] >= 0) place.at(static_cast<std::size_t>(order[i])) = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(place.at(i), place.at(i + 3));
  }
}

TEST(Schedules, FifoPrefersTheHigherPriority) {
  Simulated sim(With(Schedule::Fifo));
  std::vector<int> order;
  Note low{&order, 1};
  Note high{&order, 2};
  CUstream gate = Stream(sim);
  CUstream first = Stream(sim, 0);
  CUstream second = Stream(sim, -5);
  std::atomic<int> open{0};
  std::atomic<int> entered{0};
  struct Door {
    std::atomic<int>* open;
    std::atomic<int>* entered;
  } door{&open, &entered};
  CUevent e = nullptr;
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  // Another thread runs the host function that holds up both streams.
  std::thread holder([&] {
    EXPECT_OK(sim.d.CtxSetCurrent(sim.context));
    EXPECT_OK(sim.d.LaunchHostFunc(
        gate,
        [](void* argument) {
          const Door& d = *static_cast<Door*>(argument);
          d.entered->store(1);
          while (d.open->load() == 0) std::this_thread::yield();
        },
        &door));
  });
  while (entered.load() == 0) std::this_thread::yield();
  EXPECT_OK(sim.d.EventRecord(e, gate));
  EXPECT_OK(sim.d.StreamWaitEvent(first, e, 0));
  EXPECT_OK(sim.d.StreamWaitEvent(second, e, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(first, Write, &low));
  EXPECT_OK(sim.d.LaunchHostFunc(second, Write, &high));
  EXPECT_TRUE(order.empty());
  open.store(1);
  holder.join();
  EXPECT_OK(sim.d.CtxSynchronize(nullptr));
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST(Schedules, AHostFunctionThatWaitsDoesNotHoldUpOtherStreams) {
  Simulated sim(With(Schedule::Lazy));
  CUstream held = Stream(sim);
  CUstream other = Stream(sim);
  std::atomic<int> open{0};
  std::atomic<int> entered{0};
  struct Door {
    std::atomic<int>* open;
    std::atomic<int>* entered;
  } door{&open, &entered};
  int ran = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(
      held,
      [](void* argument) {
        const Door& d = *static_cast<Door*>(argument);
        d.entered->store(1);
        while (d.open->load() == 0) std::this_thread::yield();
      },
      &door));
  std::thread waiter([&] {
    EXPECT_OK(sim.d.CtxSetCurrent(sim.context));
    EXPECT_OK(sim.d.StreamSynchronize(held));
  });
  while (entered.load() == 0) std::this_thread::yield();
  EXPECT_OK(sim.d.LaunchHostFunc(other, Bump, &ran));
  EXPECT_OK(sim.d.StreamSynchronize(other));
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(sim.d.StreamQuery(held), CUDA_ERROR_NOT_READY);
  open.store(1);
  EXPECT_OK(sim.d.StreamSynchronize(held));
  waiter.join();
}

TEST(Schedules, AChainOfAHundredThousandWaitsNeedsNoStack) {
  for (const Schedule schedule : {Schedule::Lazy, Schedule::Adversarial}) {
    Simulated sim(With(schedule));
    std::array<CUstream, 2> streams{Stream(sim), Stream(sim)};
    CUevent e = nullptr;
    EXPECT_OK(sim.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    int ran = 0;
    EXPECT_OK(sim.d.LaunchHostFunc(streams[0], Bump, &ran));
    for (std::size_t i = 0; i < 100000; ++i) {
      ASSERT_EQ(sim.d.EventRecord(e, streams.at(i % 2)), CUDA_SUCCESS);
      ASSERT_EQ(sim.d.StreamWaitEvent(streams.at((i + 1) % 2), e, 0), CUDA_SUCCESS);
    }
    EXPECT_OK(sim.d.EventSynchronize(e));
    EXPECT_EQ(ran, 1);
  }
}

// A device works while nobody waits, so what is queued for ever takes no memory for ever.
TEST(Schedules, WhatNobodyWaitsForRunsInTheEnd) {
  for (const Schedule schedule : {Schedule::Lazy, Schedule::Adversarial}) {
    Simulated sim(With(schedule));
    CUstream stream = Stream(sim);
    CUevent first = nullptr;
    CUevent last = nullptr;
    EXPECT_OK(sim.d.EventCreate(&first, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(sim.d.EventCreate(&last, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(sim.d.EventRecord(first, stream));
    for (std::size_t i = 0; i <= 1U << 18; ++i) ASSERT_EQ(sim.d.EventRecord(last, stream), CUDA_SUCCESS);
    EXPECT_EQ(sim.d.EventQuery(first), CUDA_SUCCESS);
    EXPECT_EQ(sim.d.EventQuery(last), CUDA_ERROR_NOT_READY);
  }
}

TEST(Schedules, WorkOfADestroyedStreamRunsForWhoeverNeedsIt) {
  Simulated sim(With(Schedule::Lazy));
  CUstream stream = Stream(sim);
  CUstream other = Stream(sim);
  CUevent e = nullptr;
  int ran = 0;
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(stream, Bump, &ran));
  EXPECT_OK(sim.d.EventRecord(e, stream));
  EXPECT_OK(sim.d.StreamDestroy(stream));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(sim.Live(driver::Kind::Stream), 1U);
  EXPECT_OK(sim.d.StreamWaitEvent(other, e, 0));
  EXPECT_OK(sim.d.EventDestroy(e));
  EXPECT_OK(sim.d.StreamSynchronize(other));
  EXPECT_EQ(ran, 1);
}

TEST(Schedules, ASmallPageableUploadTakesItsBytesAlong) {
  Simulated sim(With(Schedule::Lazy));
  CUstream stream = Stream(sim);
  CUdeviceptr p = 0;
  int value = 5;
  int out = 0;
  EXPECT_OK(sim.d.MemAlloc(&p, 4096));
  EXPECT_OK(sim.d.MemsetD8Async(p, 0, 4096, stream));
  EXPECT_OK(sim.d.MemcpyHtoDAsync(p, &value, sizeof(value), stream));
  EXPECT_EQ(sim.d.StreamQuery(stream), CUDA_ERROR_NOT_READY);
  value = 6;
  EXPECT_OK(sim.d.StreamSynchronize(stream));
  EXPECT_OK(sim.d.MemcpyDtoH(&out, p, sizeof(out)));
  EXPECT_EQ(out, 5);
}

TEST(Schedules, TimePassesInEachStreamForItself) {
  for (const Schedule schedule : {Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial}) {
    Simulated sim(With(schedule));
    CUstream slow = Stream(sim);
    CUstream fast = Stream(sim);
    std::array<CUevent, 3> events{};
    CUdeviceptr p = 0;
    EXPECT_OK(sim.d.MemAlloc(&p, std::size_t{8} << 20));
    for (CUevent& e : events) EXPECT_OK(sim.d.EventCreate(&e, 0));
    EXPECT_OK(sim.d.EventRecord(events[0], slow));
    EXPECT_OK(sim.d.MemsetD8Async(p, 1, std::size_t{4} << 20, slow));
    EXPECT_OK(sim.d.EventRecord(events[1], slow));
    EXPECT_OK(sim.d.EventRecord(events[2], fast));
    EXPECT_OK(sim.d.CtxSynchronize(nullptr));
    float slow_ms = 0;
    float fast_ms = 0;
    EXPECT_OK(sim.d.EventElapsedTime(&slow_ms, events[0], events[1]));
    EXPECT_OK(sim.d.EventElapsedTime(&fast_ms, events[0], events[2]));
    EXPECT_FLOAT_EQ(slow_ms, 0.006096F);
    EXPECT_FLOAT_EQ(fast_ms, 0.0F);
  }
}

}  // namespace
}  // namespace cuaudit::sim::schedule_test
