// SPDX-License-Identifier: MIT
// host_faults_test.cc: allocations and threads of the host refused one by one, in a lifecycle in process. The host drop-in is linked into
// this process: what both a place and a meter show is told once, and what only a meter shows is told all the same.
#include <cuaudit/gtest.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::host_faults_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

constexpr bool kOwnHeap =
#ifdef CUAUDIT_INSTRUMENTED
    false;
#else
    true;
#endif

// Two blocks and a page-locked one between them.
struct Buffers {
  bool forgets;
  void* first = nullptr;
  void* pinned = nullptr;
  void* second = nullptr;

  CUresult Init(DriverRef driver) {
    first = std::malloc(100);
    if (first == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult code = driver.MemHostAlloc(&pinned, 4096, 0);
    if (code != CUDA_SUCCESS) {
      std::free(first);
      return code;
    }
    second = std::malloc(200);
    if (second != nullptr) return CUDA_SUCCESS;
    code = forgets ? CUDA_SUCCESS : driver.MemFreeHost(pinned);
    std::free(first);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUresult Teardown(DriverRef driver) {
    std::free(second);
    const CUresult code = driver.MemFreeHost(pinned);
    std::free(first);
    return code;
  }
};

SweepOptions HostOom() {
  SweepOptions options;
  options.hows = {"host_oom"};
  return options;
}

TEST(HostOom, EveryAllocationOfALifecycleFailsOnce) {
  const auto repaired = Lifecycle::Of<Buffers>("buffers", false).WithCurrentContext();
  const Audit clean = Sweep(repaired, HostOom());
  if (!kOwnHeap) {
    EXPECT_EQ(clean.outcome, AuditOutcome::NotExercised);
    EXPECT_THAT(clean.skipped, Contains(Key(HasSubstr("a sanitizer owns the heap"))));
    GTEST_SKIP() << "a sanitizer's heap cannot be refused";
  }
  EXPECT_TRUE(clean.clean()) << clean.Text();
  EXPECT_EQ(clean.fired, clean.trials);
  EXPECT_EQ(clean.trials, 3U) << "the state object, two blocks";
  // OUT_OF_MEMORY is the right answer to a block that was refused.
  const std::string elsewhere = "error codes: not comparable with the driver's";
  EXPECT_THAT(Replay(repaired, {"malloc#3=host_oom"}).skipped, ::testing::Not(Contains(Key(elsewhere))));
  const Audit leak = Sweep(Lifecycle::Of<Buffers>("buffers", true).WithCurrentContext(), HostOom());
  ASSERT_THAT(Texts(leak), ElementsAre("leak pinned_memory 1 after malloc#3=host_oom")) << leak.Text();
  EXPECT_THAT(leak.findings.at(0).fault_stack, Contains(HasSubstr("host_faults_test.cc"))) << leak.Text();
  EXPECT_THAT(leak.findings.at(0).replay, HasSubstr("CUAUDIT_FAULT='malloc#"));
  const Audit again = Replay(Lifecycle::Of<Buffers>("buffers", true).WithCurrentContext(), leak.findings.at(0).faults);
  EXPECT_EQ(Texts(again), Texts(leak)) << again.Text();
}

TEST(HostOom, SharesASweepWithDriverFaults) {
  if (!kOwnHeap) GTEST_SKIP() << "a sanitizer's heap cannot be refused";
  const auto lifecycle = Lifecycle::Of<Buffers>("buffers", false).WithCurrentContext();
  SweepOptions options;
  const Audit driver = Sweep(lifecycle, options);
  options.hows = {"refuse", "host_oom"};
  const Audit both = Sweep(lifecycle, options);
  EXPECT_TRUE(both.clean()) << both.Text();
  EXPECT_GE(both.trials, driver.trials + 3);
}

// operator new throws; what was made before must go.
TEST(HostOom, ABlockThatIsLostOnTheWayBack) {
  if (!kOwnHeap) GTEST_SKIP() << "a sanitizer's heap cannot be refused";
  static std::vector<void*> lost;
  lost.clear();
  lost.reserve(1000);
  const auto lifecycle = Lifecycle("loses_a_block").WithCurrentContext().AnyCode().Init([](DriverRef driver) {
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) return code;
    void* const first = std::malloc(50);
    void* const second = first == nullptr ? nullptr : std::malloc(60);
    if (second == nullptr && first != nullptr) {
      lost.push_back(first);
    } else {
      std::free(first);
    }
    std::free(second);
    const CUresult released = driver.EventDestroy(event);
    return first == nullptr || second == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : released;
  });
  const Audit audit = Sweep(lifecycle, HostOom());
  ASSERT_THAT(Texts(audit), ElementsAre("leak host_heap 1 after malloc#2=host_oom")) << audit.Text();
  EXPECT_EQ(audit.findings.at(0).bytes, 50U);
  for (void* const block : lost) std::free(block);
}

// The driver's own calls while unwinding fail in their turn.
TEST(HostOom, IsUnwoundFromUnderASecondFault) {
  if (!kOwnHeap) GTEST_SKIP() << "a sanitizer's heap cannot be refused";
  const Audit audit =
      Replay(Lifecycle::Of<Buffers>("buffers", false).WithCurrentContext(), {"malloc#3=host_oom", "cuMemFreeHost#1=INVALID_VALUE,refuse"});
  EXPECT_THAT(audit.verdicts, ElementsAre(::testing::Pair("release_refused", 1U))) << audit.Text();
}

TEST(HostThread, EveryThreadOfALifecycleFailsOnce) {
  static int refused = 0;
  refused = 0;
  const auto lifecycle = Lifecycle("starts_threads").WithCurrentContext().Init([](DriverRef driver) {
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) return StepResult::Of(code);
    pthread_t thread{};
    const int failed = pthread_create(
        &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
    if (failed == 0) pthread_join(thread, nullptr);
    refused += failed;
    const CUresult released = driver.EventDestroy(event);
    return failed != 0 ? StepResult::Failed() : StepResult::Of(released);
  });
  SweepOptions options;
  options.hows = {"host_thread"};
  const Audit audit = Sweep(lifecycle, options);
  // gcc's sanitizers are libraries of their own and start the threads; clang's are part of the program, like its own calls.
  if (!kOwnHeap && audit.outcome == AuditOutcome::NotExercised) GTEST_SKIP() << "a sanitizer starts the threads";
  EXPECT_TRUE(audit.clean()) << audit.Text();
  EXPECT_EQ(audit.fired, 1U);
  EXPECT_NE(refused, 0);
}

TEST(HostOom, NeedsTheHostToBeWatched) {
  SweepOptions options = HostOom();
  options.host = false;
  const Audit audit = Sweep(Lifecycle::Of<Buffers>("buffers", false).WithCurrentContext(), options);
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
  EXPECT_THAT(audit.message, HasSubstr("faults of the host: expected cuaudit's host drop-in"));
}

using ::testing::UnorderedElementsAre;

// An event is made and released, and in every cycle `loses` runs.
Audit CyclesThat(std::function<void()> loses) {
  return RunCycles(Lifecycle("loses").WithCurrentContext().Init([loses = std::move(loses)](DriverRef driver) {
    loses();
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    return code == CUDA_SUCCESS ? driver.EventDestroy(event) : code;
  }));
}

// Its stack stays mapped as well, which the meter of mappings sees.
TEST(HostTold, AThreadThatNobodyJoinsIsOneLoss) {
  static std::vector<pthread_t> threads;
  threads.reserve(1000);
  const Audit audit = CyclesThat([] {
    pthread_t thread{};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr),
              0);
    threads.push_back(thread);
  });
  EXPECT_THAT(Texts(audit), ElementsAre("growth thread 10")) << audit.Text();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

// The descriptor is opened past the C library, so it has no place; the block has one.
TEST(HostTold, ALossWithAPlaceHidesNoneWithout) {
  static std::vector<int> files;
  static std::vector<void*> blocks;
  files.reserve(1000);
  blocks.reserve(1000);
  const Audit audit = CyclesThat([] {
    blocks.push_back(std::malloc(64));
    files.push_back(static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC)));
  });
  EXPECT_THAT(Texts(audit), UnorderedElementsAre("growth host_heap 10", "growth file_descriptor 10")) << audit.Text();
  for (const int file : files) close(file);
  for (void* const block : blocks) std::free(block);
}

}  // namespace
}  // namespace cuaudit::testing::host_faults_test
