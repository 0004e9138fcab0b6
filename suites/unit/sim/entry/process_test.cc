// SPDX-License-Identifier: MIT
// Around the calls of a world: what a fork and an exit do to it, and its log of refused calls.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
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

TEST(Process, AChildKnowsOfTheEventsThatItRecordedItself) {
  const Simulated sim;
  CUstream s = nullptr;
  CUevent e = nullptr, other = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.EventCreate(&other, 0));
  const auto refused = [](CUresult result) { return result == CUDA_ERROR_NOT_INITIALIZED; };
  EXPECT_EQ(InChild([&] {
              if (!refused(sim.d.EventQuery(e)) || !refused(sim.d.EventDestroy(e)) || !refused(sim.d.EventRecord(e, nullptr))) return 1;
              if (sim.d.EventRecord(e, s) != CUDA_SUCCESS || sim.d.EventQuery(e) != CUDA_ERROR_NOT_READY) return 2;
              if (!refused(sim.d.EventQuery(other)) || sim.d.EventDestroy(e) != CUDA_SUCCESS || !refused(sim.d.EventDestroy(e))) return 3;
              return refused(sim.d.StreamDestroy(s)) ? 0 : 4;
            }),
            0);
  EXPECT_OK(sim.d.EventQuery(e)) << "the parent's own";
  EXPECT_EQ(sim.Live(Kind::Event), 2U);
}

}  // namespace
}  // namespace cuaudit::sim::process_test

// What kills the genuine driver, in a world that dies of it too.
namespace cuaudit::sim::undefined_test {
namespace {

sigjmp_buf back;
volatile int code;

// True when the call dies of SIGSEGV. The program has a handler of its own, and goes on behind the call.
template <typename F>
bool Dies(F call) {
  struct sigaction handler {};
  struct sigaction before {};
  handler.sa_sigaction = [](int, siginfo_t* about, void*) {
    code = about->si_code;
    siglongjmp(back, 1);
  };
  handler.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &handler, &before);
  const bool died = sigsetjmp(back, 1) != 0;
  if (!died) call();
  sigaction(SIGSEGV, &before, nullptr);
  return died;
}

constexpr const char* kPtx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry plain()\n{\n ret;\n}\n";
constexpr WorldOptions kCrashing = {.device_bytes = std::uint64_t{64} << 20, .undefined = OnUndefined::Crash};

TEST(Undefined, IsAFaultThatTheProgramsHandlerSeesAndTheWorldSurvives) {
  const Simulated sim(kCrashing);
  CUstream s = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.StreamDestroy(s));
  EXPECT_TRUE(Dies([&] { (void)sim.d.StreamDestroy(s); }));
  EXPECT_GT(code, 0) << "a fault, not a signal that somebody sent";
  EXPECT_TRUE(Dies([&] {
    (void)sim.d.LaunchHostFunc(
        s, [](void*) {}, nullptr);
  }));
  EXPECT_TRUE(Dies([&] { (void)sim.d.EventQuery(reinterpret_cast<CUevent>(std::uintptr_t{0x1234560})); })) << "invented";
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.StreamDestroy(s));
}

TEST(Undefined, IsAnErrorInAnyOtherWorld) {
  const Simulated sim;
  CUstream s = nullptr;
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.StreamDestroy(s));
  EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.StreamDestroy(s), CUDA_ERROR_INVALID_HANDLE); }));
}

TEST(Undefined, IsNotWhatTheGenuineDriverKnows) {
  const Simulated sim(kCrashing);
  CUmodule m = nullptr;
  CUcontext c = nullptr;
  CUevent e = nullptr;
  CUgraph g = nullptr;
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(sim.d.ModuleUnload(m));
  EXPECT_OK(sim.d.GraphCreate(&g, 0));
  EXPECT_OK(sim.d.GraphDestroy(g));
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_FALSE(Dies([&] {
    EXPECT_EQ(sim.d.ModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.GraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(sim.d.EventDestroy(e), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(sim.d.StreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.StreamDestroy(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.EventDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(sim.d.EventRecord(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  }));
}

TEST(Undefined, IsAStreamOfAContextThatWasDestroyedAndNoneOfAReleasedOne) {
  const Simulated sim(kCrashing);
  CUcontext c = nullptr;
  CUstream s = nullptr;
  EXPECT_OK(sim.d.CtxCreate(&c, nullptr, 0, 0));
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.CtxDestroy(c));
  EXPECT_TRUE(Dies([&] { (void)sim.d.StreamDestroy(s); }));
  EXPECT_TRUE(Dies([&] { (void)sim.d.StreamSynchronize(s); }));
  EXPECT_OK(sim.d.StreamCreate(&s, 0));
  EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
  EXPECT_OK(sim.d.DevicePrimaryCtxRetain(&c, 0));
  EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.StreamDestroy(s), CUDA_ERROR_INVALID_CONTEXT) << "the context has begun anew"; }));
}

TEST(Undefined, IsASettingWithoutAValueOrOfAReleasedContext) {
  for (const bool crashes : {false, true}) {
    const Simulated sim({.device_bytes = std::uint64_t{64} << 20, .undefined = crashes ? OnUndefined::Crash : OnUndefined::Error});
    CUmemoryPool pool = nullptr;
    EXPECT_OK(sim.d.DeviceGetDefaultMemPool(&pool, 0));
    EXPECT_EQ(Dies([&] { EXPECT_EQ(sim.d.ThreadExchangeStreamCaptureMode(nullptr), CUDA_ERROR_INVALID_VALUE); }), crashes);
    EXPECT_EQ(
        Dies([&] { EXPECT_EQ(sim.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr), CUDA_ERROR_INVALID_VALUE); }),
        crashes);
    EXPECT_FALSE(Dies([&] {
      EXPECT_EQ(sim.d.MemPoolSetAttribute(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr), CUDA_ERROR_INVALID_VALUE);
    })) << "no pool is known first";
    EXPECT_OK(sim.d.DevicePrimaryCtxReset(0));
    unsigned flags = 99;
    EXPECT_OK(sim.d.CtxGetFlags(&flags));
    EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1), CUDA_ERROR_CONTEXT_IS_DESTROYED); }));
    EXPECT_EQ(Dies([&] { EXPECT_EQ(sim.d.CtxSetFlags(CU_CTX_SCHED_SPIN), CUDA_ERROR_CONTEXT_IS_DESTROYED); }), crashes);
    EXPECT_OK(sim.d.CtxSetCurrent(nullptr));
    EXPECT_FALSE(Dies([&] { EXPECT_EQ(sim.d.CtxSetFlags(CU_CTX_SCHED_SPIN), CUDA_ERROR_INVALID_CONTEXT); }));
  }
}

}  // namespace
}  // namespace cuaudit::sim::undefined_test

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
