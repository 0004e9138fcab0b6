// SPDX-License-Identifier: MIT
// What the host refuses one by one in a lifecycle in process, and what a lifecycle leaves to host functions that are still queued.
#include <cuaudit/gtest.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::host_faults_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

// Allocations and threads of the host refused one by one, in a lifecycle in process. The host drop-in is linked into
// this process: what both a place and a meter show is told once, and what only a meter shows is told all the same.

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
  const std::string elsewhere = "error codes not checked: they cannot be compared with the driver's";
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

// What a lifecycle has given to host functions that are still queued when a cycle ends. The simulated driver does not
// call them, because their memory may be gone; what they would free is no loss.

struct Note {
  void* text;
};

// A note whose function is never called stays reachable for a sanitizer's own look for leaks.
std::array<void* volatile, 4096> notes;
std::size_t notes_made = 0;

[[gnu::noinline]] Note* NewNote() {
  auto* const note = static_cast<Note*>(std::malloc(sizeof(Note)));
  note->text = std::calloc(1, 200);  // no stale pointer in it: what a note points to is not a loss
  notes.at(notes_made++) = note;
  return note;
}

void CUDA_CB FreeNote(void* argument) {
  auto* const note = static_cast<Note*>(argument);
  std::free(note->text);
  std::free(note);
}

// What a test loses stays reachable for a sanitizer's own look for leaks.
void* volatile lost = nullptr;
[[gnu::noinline]] void LoseABlock() {
  auto* const block = static_cast<void**>(std::malloc(64));
  *block = lost;
  lost = block;
}

struct Ways {
  bool waits = true;     // for the function, where nothing fails
  bool forgets = false;  // the note, when the launch fails
  bool loses = false;    // a block, when the event fails
};

// Gives a note to a queued function that frees it. Destroying a stream does not wait for its work, and need not.
Lifecycle GivesANote(const std::string& name, Ways ways) {
  return Lifecycle(name).WithCurrentContext().Init([ways](DriverRef driver) {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    Note* const note = NewNote();
    code = driver.LaunchHostFunc(stream, FreeNote, note);
    if (code != CUDA_SUCCESS && !ways.forgets) FreeNote(note);
    if (code == CUDA_SUCCESS) {
      code = driver.EventCreate(&event, 0);
      if (code == CUDA_SUCCESS) code = driver.EventDestroy(event);
      if (code != CUDA_SUCCESS && ways.loses) LoseABlock();
    }
    if (code == CUDA_SUCCESS && ways.waits) code = driver.StreamSynchronize(stream);
    const CUresult destroyed = driver.StreamDestroy(stream);
    return code != CUDA_SUCCESS ? code : destroyed;
  });
}

TEST(QueuedFunctions, WhatTheyWillFreeIsNoLoss) {
  const Lifecycle lifecycle = GivesANote("gives_a_note", {});
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
}

TEST(QueuedFunctions, WhatTheyWillFreeIsNoGrowth) {
  const Lifecycle lifecycle = GivesANote("never_waits", {.waits = false});
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
  EXPECT_UNWINDS_CLEANLY(lifecycle);
}

TEST(QueuedFunctions, WhatNoneOfThemWasGivenIsALoss) {
  const Audit audit = Sweep(GivesANote("loses_a_block", {.loses = true}), {.depth = 1});
  EXPECT_THAT(Texts(audit), ElementsAre("leak host_heap 1 after cuEventCreate#1=OUT_OF_MEMORY,refuse")) << audit.Text();
}

TEST(QueuedFunctions, AFunctionThatWasNotQueuedFreesNothing) {
  const Audit audit = Sweep(GivesANote("forgets_the_note", {.forgets = true}), {.depth = 1});
  EXPECT_THAT(Texts(audit), ::testing::Each(::testing::HasSubstr(" after cuLaunchHostFunc#1="))) << audit.Text();
  EXPECT_EQ(audit.verdicts.at("leak"), 1U) << audit.Text();
}

// The function of the faulted cycle stands behind a wait that the clean cycle ends.
TEST(QueuedFunctions, NoneOfAFinishedCycleIsCalled) {
  static std::atomic<std::intptr_t> now;
  static std::atomic<int> late;
  static void* host;
  static CUdeviceptr word;
  now = late = 0;
  const auto lifecycle = Lifecycle("waits_for_a_word")
                             .WithCurrentContext()
                             .Prepare([](DriverRef driver) {
                               const CUresult code = driver.MemHostAlloc(&host, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP);
                               return code != CUDA_SUCCESS ? code : driver.MemHostGetDevicePointer(&word, host, 0);
                             })
                             .Init([](DriverRef driver) {
                               CUstream stream = nullptr;
                               CUevent event = nullptr;
                               auto* const value = static_cast<volatile std::uint32_t*>(host);
                               *value = 0;
                               void* const cycle = reinterpret_cast<void*>(++now);
                               CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
                               if (code != CUDA_SUCCESS) return code;
                               code = driver.StreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ);
                               if (code == CUDA_SUCCESS)
                                 code = driver.LaunchHostFunc(
                                     stream, [](void* of) { late += reinterpret_cast<std::intptr_t>(of) != now; }, cycle);
                               if (code == CUDA_SUCCESS) code = driver.EventCreate(&event, 0);
                               if (code == CUDA_SUCCESS) code = driver.EventDestroy(event);
                               if (code == CUDA_SUCCESS) {
                                 *value = 1;
                                 code = driver.CtxSynchronize(nullptr);
                               }
                               const CUresult destroyed = driver.StreamDestroy(stream);
                               return code != CUDA_SUCCESS ? code : destroyed;
                             });
  const Audit audit = Replay(lifecycle, {"cuEventCreate#1=OUT_OF_MEMORY,refuse"});
  EXPECT_THAT(Texts(audit), IsEmpty()) << audit.Text();
  EXPECT_EQ(audit.fired, 1U) << audit.Text();
  EXPECT_EQ(late, 0);
}

// More blocks than the table holds: nothing is called clean that was not seen.
TEST(HostPlaces, MoreBlocksAtOnceThanAreFollowed) {
  const auto lifecycle = WithAnEvent("a_great_many", kNothing, [] {
    void** newest = nullptr;
    for (int i = 0; i < 300000; ++i) {
      auto** const block = static_cast<void**>(std::malloc(16));
      *block = newest;
      newest = block;
    }
    while (newest != nullptr) std::free(std::exchange(newest, static_cast<void**>(*newest)));
  });
  EXPECT_THAT(Sweep(lifecycle, {.depth = 1, .limit = 1}).skipped,
              Contains(::testing::Pair("places on the host not looked at: more at once than are followed", 1U)));
  EXPECT_THAT(RunCycles(lifecycle, {.cycles = 1}).unmetered, Contains("places on the host: more at once than are followed"));
}

// Each run fits into the journal, the repeats of one together do not: its loss is not called clean.
TEST(HostPlaces, MoreRecordsInAllRepeatsThanAreKept) {
  const auto lifecycle = WithAnEvent("a_great_many_mutexes", [] {
    static void** newest = nullptr;
    auto** const block = static_cast<void**>(std::malloc(64));
    *block = newest;
    newest = block;
    pthread_mutex_t mutex;
    for (int i = 0; i < 150000; ++i) {
      pthread_mutex_init(&mutex, nullptr);
      pthread_mutex_destroy(&mutex);
    }
  });
  EXPECT_THAT(Sweep(lifecycle, {.depth = 1, .limit = 1}).skipped,
              Contains(::testing::Pair("places on the host not looked at: more at once than are followed", 1U)));
}

}  // namespace
}  // namespace cuaudit::testing::host_faults_test
