// SPDX-License-Identifier: MIT
// Around the calls of a world: what a fork and an exit do to it, and its log of refused calls.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::process_test {
namespace {

using driver::Kind;

// The exit status of a child that runs `what`; a child that hangs dies of its alarm.
template <typename F>
int InChild(F what) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(what());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Process, AChildForkedBeforeInitHasAWorldOfItsOwn) {
  World* const world = CreateWorld({.device_bytes = std::uint64_t{64} << 20});
  const driver::DriverRef d = Driver(world);
  const auto live = [&] {
    CUcontext context = nullptr;
    CUdeviceptr p = 0;
    EXPECT_OK(d.Init(0));
    EXPECT_OK(d.DevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(d.CtxSetCurrent(context));
    EXPECT_OK(d.MemAlloc(&p, 4096));
    EXPECT_OK(d.MemsetD8(p, 7, 4096));
    return ::testing::Test::HasFailure() ? 1 : 0;
  };
  EXPECT_EQ(InChild([&] { return InChild(live) == 0 ? live() : 2; }), 0);
  EXPECT_EQ(LiveCount(world, Kind::DeviceMemory), 0U) << "the child's, not ours";
  EXPECT_EQ(live(), 0);
  EXPECT_EQ(InChild([&] { return static_cast<int>(d.Init(0)); }), CUDA_ERROR_NOT_INITIALIZED);
  DestroyWorld(world);
}

TEST(Process, TwoThreadsOfAChildForkedBeforeInitBothBegin) {
  World* const world = CreateWorld({.device_bytes = std::uint64_t{64} << 20});
  const driver::DriverRef d = Driver(world);
  const auto race = [&] {
    std::atomic<int> ready{0};
    CUresult result[2] = {};
    const auto begin = [&](int i) {
      ++ready;
      while (ready.load() != 2) std::this_thread::yield();
      result[i] = d.Init(0);
    };
    std::thread other(begin, 1);
    begin(0);
    other.join();
    return result[0] != CUDA_SUCCESS ? result[0] : result[1];
  };
  for (int i = 0; i < 50; ++i) EXPECT_EQ(InChild([&] { return static_cast<int>(race()); }), CUDA_SUCCESS);
  DestroyWorld(world);
}

TEST(Process, AChildIsAnsweredWhileAnotherThreadIsInACall) {
  const Simulated sim;
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    CUdeviceptr p = 0;
    EXPECT_OK(sim.d.CtxSetCurrent(sim.context));
    while (!stop.load()) {
      EXPECT_OK(sim.d.MemAlloc(&p, 4096));
      EXPECT_OK(sim.d.MemFree(p));
    }
  });
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(InChild([&] {
                CUdeviceptr p = 0;
                return static_cast<int>(sim.d.MemAlloc(&p, 4096));
              }),
              CUDA_ERROR_NOT_INITIALIZED);
  }
  stop = true;
  busy.join();
}

TEST(Process, AForkInAHostFunctionHarmsNobody) {
  const Simulated sim;
  static driver::DriverRef d;
  static int status;
  d = sim.d;
  status = -2;
  EXPECT_OK(sim.d.LaunchHostFunc(
      nullptr, [](void*) { status = InChild([] { return static_cast<int>(d.CtxSynchronize(nullptr)); }); }, nullptr));
  EXPECT_OK(sim.d.CtxSynchronize(nullptr));
  EXPECT_EQ(status, CUDA_ERROR_NOT_INITIALIZED);
}

TEST(Process, AClosedWorldKeepsItsBooks) {
  const Simulated sim;
  CUdeviceptr p = 0;
  CUstream s = nullptr;
  EXPECT_OK(sim.d.MemAlloc(&p, 4096));
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.MemsetD8Async(p, 1, 4096, s));
  Shutdown(sim.world);
  int value = 0;
  const char* text = nullptr;
  EXPECT_EQ(sim.d.DriverGetVersion(&value), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.d.GetErrorName(CUDA_ERROR_DEINITIALIZED, &text), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.d.Init(0), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.d.MemFree(p), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.d.StreamDestroy(s), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.d.StreamSynchronize(s), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.d.DevicePrimaryCtxRelease(0), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.d.DeviceGetCount(&value), CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(sim.Live(Kind::DeviceMemory), 1U);
  EXPECT_EQ(sim.Live(Kind::Stream), 1U);
  EXPECT_EQ(sim.Live(Kind::PrimaryContext), 1U);
}

TEST(Process, AChildKnowsOfTheEventsThatNeedNoParent) {
  const Simulated sim;
  CUstream s = nullptr;
  CUevent e = nullptr, other = nullptr, pending = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.EventCreate(&other, 0));
  EXPECT_OK(sim.d.EventCreate(&pending, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(
      s, [](void*) {}, nullptr));
  EXPECT_OK(sim.d.EventRecord(pending, s));
  const auto refused = [](CUresult result) { return result == CUDA_ERROR_NOT_INITIALIZED; };
  EXPECT_EQ(InChild([&] {
              if (!refused(sim.d.EventRecord(e, nullptr)) || sim.d.EventQuery(e) != CUDA_SUCCESS) return 1;
              if (sim.d.EventRecord(e, s) != CUDA_SUCCESS || sim.d.EventQuery(e) != CUDA_ERROR_NOT_READY) return 2;
              if (sim.d.EventSynchronize(e) != CUDA_SUCCESS || sim.d.EventDestroy(e) != CUDA_SUCCESS) return 3;
              if (!refused(sim.d.EventDestroy(e)) || sim.d.EventDestroy(other) != CUDA_SUCCESS) return 4;
              if (!refused(sim.d.EventQuery(pending)) || !refused(sim.d.EventSynchronize(pending))) return 5;
              return refused(sim.d.StreamDestroy(s)) ? 0 : 6;
            }),
            0);
  EXPECT_OK(sim.d.EventQuery(e)) << "the parent's own";
  EXPECT_EQ(sim.Live(Kind::Event), 3U);
}

}  // namespace
}  // namespace cuaudit::sim::process_test

// The log of refused calls: what callbacks hear, and what a dump has.
#if CUDA_VERSION >= 12090
namespace cuaudit::sim::refusals_test {
namespace {

constexpr const char* kLine = "cuMemAlloc_v2 answers CUDA_ERROR_INVALID_VALUE";

struct Hearing {
  driver::DriverRef d;
  std::vector<std::string> lines;
  CUresult inside = CUDA_SUCCESS;
};

void Hear(void* data, CUlogLevel, char* text, std::size_t size) {
  Hearing& hearing = *static_cast<Hearing*>(data);
  CUdevice device = 0;
  hearing.lines.emplace_back(text, size);
  hearing.inside = hearing.d.CtxGetDevice(&device, nullptr);
}

void Refuse(const Simulated& sim) {
  CUdeviceptr p = 0;
  EXPECT_EQ(sim.d.MemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
}

std::string Dump(const Simulated& sim, CUlogIterator* from, std::size_t room) {
  std::string text(room, '\0');
  EXPECT_OK(sim.d.LogsDumpToMemory(from, text.data(), &room, 0));
  text.resize(room);
  return text;
}

TEST(Refusals, AreToldUntilTheCallbackEnds) {
  Simulated sim;
  Hearing hearing{sim.d, {}, CUDA_SUCCESS};
  CUlogsCallbackHandle handle = nullptr;
  EXPECT_OK(sim.d.LogsRegisterCallback(Hear, &hearing, &handle));
  Refuse(sim);
  EXPECT_EQ(hearing.lines, std::vector<std::string>{kLine});
  EXPECT_EQ(hearing.inside, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_OK(sim.d.LogsUnregisterCallback(handle));
  Refuse(sim);
  EXPECT_EQ(hearing.lines.size(), 1U);
}

TEST(Refusals, WhatIsNotReadyIsNotRefused) {
  Simulated sim;
  CUlogIterator before = 0, after = 0;
  CUstream s = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.LaunchHostFunc(
      s, [](void*) {}, nullptr));
  EXPECT_OK(sim.d.LogsCurrent(&before, 0));
  EXPECT_EQ(sim.d.StreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_OK(sim.d.LogsCurrent(&after, 0));
  EXPECT_EQ(before, after);
}

TEST(Refusals, ADumpHasTheNewestLinesThatFitAndMovesOn) {
  Simulated sim;
  CUlogIterator from = 0;
  EXPECT_OK(sim.d.LogsCurrent(&from, 0));
  for (int i = 0; i < 3; ++i) Refuse(sim);
  CUlogIterator again = from;
  std::string line(kLine);
  line += '\n';
  EXPECT_EQ(Dump(sim, &again, 4096), line + line + line);
  EXPECT_EQ(again, from + 3);
  EXPECT_EQ(Dump(sim, &again, 4096), "");
  again = from;
  EXPECT_EQ(Dump(sim, &again, 2 * line.size() + 1), line + line);
  EXPECT_EQ(Dump(sim, nullptr, line.size()), "");
}

TEST(Refusals, ADumpReachesBackAsFarAsTheLogIsKept) {
  Simulated sim;
  CUlogIterator from = 0;
  for (int i = 0; i < 200; ++i) Refuse(sim);
  EXPECT_EQ(Dump(sim, &from, 100'000).size(), 64 * (std::string(kLine).size() + 1));
}

}  // namespace
}  // namespace cuaudit::sim::refusals_test
#endif
