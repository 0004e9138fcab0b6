// SPDX-License-Identifier: MIT
// host_test.cc: descriptors, threads, libraries and heap of lifecycles in process: one loss each that must be found, and what looks like
// one and must stay silent.
#include <cuaudit/gtest.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/lifecycle/host_change.h"
#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::host_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Threads that stay until the test is over.
class Sleepers {
 public:
  ~Sleepers() {
    pthread_mutex_unlock(&mutex_);
    for (std::thread& one : threads_) one.join();
  }
  void Add() {
    threads_.emplace_back([this] {
      pthread_mutex_lock(&mutex_);
      pthread_mutex_unlock(&mutex_);
    });
  }
  Sleepers() { pthread_mutex_lock(&mutex_); }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<std::thread> threads_;
};

class Lost {
 public:
  ~Lost() {
    for (const int file : files) close(file);
    for (void* const block : blocks) std::free(block);
  }
  Lost() {
    files.reserve(1000);
    blocks.reserve(1000);
  }
  Lost(const Lost&) = delete;
  Lost& operator=(const Lost&) = delete;
  std::vector<int> files;
  std::vector<void*> blocks;
};

const std::string kFault = " after cuEventCreate#1=OUT_OF_MEMORY,refuse";

TEST(Host, ADescriptorThatAFailedInitKeeps) {
  Lost lost;
  const auto lifecycle = WithAnEvent("keeps_a_file", [&] { lost.files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC)); });
  const Audit audit = Sweep(lifecycle);
  EXPECT_THAT(Texts(audit), ElementsAre("leak file_descriptor 1" + kFault)) << audit.Text();
  EXPECT_THAT(audit.findings.at(0).fault_stack, Contains(HasSubstr("findings.h")));
  EXPECT_EQ(audit.verdicts.at("leak"), 1U);
  EXPECT_TRUE(RunCycles(lifecycle).clean());
}

TEST(Host, HeapThatAFailedInitKeeps) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("its own blocks lie in the same heap");
  Lost lost;
  const auto lifecycle = WithAnEvent("keeps_memory", [&] { lost.blocks.push_back(std::malloc(4000)); });
  const Audit audit = Sweep(lifecycle);
  ASSERT_THAT(Texts(audit), ElementsAre("leak host_heap 1" + kFault)) << audit.Text();
  EXPECT_GE(audit.findings.at(0).bytes, 4000U);
  EXPECT_LT(audit.findings.at(0).bytes, 4100U);
}

// Little, but it adds up.
TEST(Host, AFewBytesThatAFailedInitKeeps) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("its own blocks lie in the same heap");
  Lost lost;
  const Audit audit = Sweep(WithAnEvent("keeps_little", [&] { lost.blocks.push_back(std::malloc(600)); }));
  ASSERT_THAT(Texts(audit), ElementsAre("leak host_heap 1" + kFault)) << audit.Text();
  EXPECT_GE(audit.findings.at(0).bytes, 600U);
  EXPECT_LT(audit.findings.at(0).bytes, 700U);
  EXPECT_THAT(audit.Text(), HasSubstr("of 32 repeats"));
}

// What the next cycle gives back: of a few bytes the C library's caches do the same, more is the program's.
TEST(Host, WhatIsKeptUntilTheNextCycle) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("its own blocks lie in the same heap");
  for (const std::size_t bytes : {std::size_t{200}, std::size_t{4000}}) {
    void* kept = nullptr;
    const auto free_it = [&] { std::free(std::exchange(kept, nullptr)); };
    const Audit audit = Sweep(WithAnEvent(
        "keeps_for_a_while",
        [&] {
          free_it();
          kept = std::malloc(bytes);
        },
        free_it));
    free_it();
    if (bytes < 1024) {
      EXPECT_TRUE(audit.clean()) << audit.Text();
    } else {
      EXPECT_THAT(Texts(audit), ElementsAre("leak host_heap 1" + kFault)) << audit.Text();
    }
  }
}

TEST(Host, AThreadThatAFailedInitKeeps) {
  Sleepers sleepers;
  const Audit audit = Sweep(WithAnEvent("keeps_a_thread", [&] { sleepers.Add(); }));
  EXPECT_THAT(Texts(audit), Contains("leak thread 1" + kFault)) << audit.Text();
}

// A background thread's log file, a cache that is filled late: one more, once. A second series does not show it.
TEST(Host, WhatOneCycleKeepsOnceIsNoGrowthAndIsCounted) {
  Lost lost;
  int cycle = 0;
  const Audit late = RunCycles(WithAnEvent(
      "late_file", [] {},
      [&] {
        if (++cycle == 6) lost.files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
      }));
  EXPECT_THAT(Texts(late), IsEmpty()) << late.Text();
  EXPECT_EQ(late.skipped.count("file_descriptor: grew in one series of cycles and not in the next"), 1U) << late.Text();
  EXPECT_TRUE(late.clean());
}

TEST(Host, WhatOneCycleOfEachSeriesKeepsGrows) {
  Lost lost;
  int cycle = 0;
  const Audit every = RunCycles(WithAnEvent(
      "every_seventh_file", [] {},
      [&] {
        if (++cycle % 7 == 0) lost.files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
      }));
  EXPECT_THAT(Texts(every), ElementsAre("growth file_descriptor 1")) << every.Text();
}

// calloc takes none of the freed blocks that the C library keeps for the thread, and each cycle adds one: seven of a size, then they are
// given back. Here the sizes fill one after another, and the heap's statistics rise in each of the first cycles.
TEST(Host, FreedBlocksThatTheCLibraryKeepsAreNoGrowth) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("its own blocks lie in the same heap");
  int cycle = 0;
  const Audit filled = RunCycles(WithAnEvent(
      "frees_all", [] {},
      [&] {
        ++cycle;
        for (const int since : {1, 6}) {
          if (cycle < since) continue;
          void* volatile block = std::calloc(1, 400U + 100U * static_cast<std::size_t>(since));
          std::free(block);
        }
      }));
  EXPECT_THAT(Texts(filled), IsEmpty()) << filled.Text();
}

TEST(Host, WhatEachCycleKeepsGrows) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("its own blocks lie in the same heap");
  Lost lost;
  const Audit files = RunCycles(WithAnEvent(
      "grows_files", [] {}, [&] { lost.files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC)); }));
  EXPECT_THAT(Texts(files), ElementsAre("growth file_descriptor 10")) << files.Text();
  const Audit heap = RunCycles(WithAnEvent(
      "grows_heap", [] {}, [&] { lost.blocks.push_back(std::malloc(4000)); }));
  ASSERT_THAT(Texts(heap), ElementsAre("growth host_heap 1")) << heap.Text();
  EXPECT_GE(heap.findings.at(0).bytes, 4000U);
  Sleepers sleepers;
  const Audit threads = RunCycles(WithAnEvent(
                                      "grows_threads", [] {}, [&] { sleepers.Add(); }),
                                  {.cycles = 4});
  EXPECT_THAT(Texts(threads), Contains("growth thread 4")) << threads.Text();
}

// A cache is filled once, by whichever failure comes first.
TEST(Host, WhatIsKeptOnceIsNoLeak) {
  Lost lost;
  const auto lifecycle = WithAnEvent("caches", [&] {
    if (!lost.files.empty()) return;
    lost.files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    lost.blocks.push_back(std::malloc(4000));
  });
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  EXPECT_EQ(lost.files.size(), 1U);
}

TEST(Host, WhatIsKeptOnceForEachContextIsNoLeak) {
  static std::map<CUcontext, std::vector<char>> cache;
  const Lifecycle lifecycle = Lifecycle("host_context_cache").WithCurrentContext().Init([](DriverRef driver) {
    CUcontext current = nullptr;
    CUresult code = driver.CtxGetCurrent(&current);
    if (code != CUDA_SUCCESS) return code;
    cache[current].resize(3000);
    CUevent event = nullptr;
    code = driver.EventCreate(&event, 0);
    return code == CUDA_SUCCESS ? driver.EventDestroy(event) : code;
  });
  EXPECT_UNWINDS_CLEANLY(lifecycle);
}

// A good cycle that takes a block from a cache of the C library looks like one that keeps less than the others.
TEST(Host, OneGoodCycleThatKeepsLessIsNoMeasure) {
  for (int keeps_less = 1; keeps_less <= 6; ++keeps_less) {
    Lost lost;
    int cycles = 0;
    const Lifecycle lifecycle = Lifecycle("keeps_in_all_but_one").WithCurrentContext().Init([&](DriverRef driver) {
      if (++cycles != keeps_less) lost.blocks.push_back(std::malloc(2000));
      CUevent event = nullptr;
      const CUresult code = driver.EventCreate(&event, 0);
      return code == CUDA_SUCCESS ? driver.EventDestroy(event) : code;
    });
    EXPECT_UNWINDS_CLEANLY(lifecycle);
  }
}

TEST(Host, WhatIsGivenBackIsNoLeak) {
  const auto lifecycle = WithAnEvent(
      "careful", [] { std::thread([] {}).join(); },
      [] {
        close(open("/dev/null", O_RDONLY | O_CLOEXEC));
        const std::unique_ptr<char[]> block(new char[100000]);
        block[0] = 1;
        std::thread([] {}).join();
      });
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  const Audit audit = RunCycles(lifecycle);
  EXPECT_TRUE(audit.clean()) << audit.Text();
  EXPECT_THAT(audit.message, HasSubstr("would have been seen"));
}

// A driver object that is lost takes its wrapper with it: one finding.
TEST(Host, OneLossIsToldOnce) {
  Lost lost;
  const auto lifecycle = Lifecycle("loses_both").WithCurrentContext().Init([&](DriverRef driver) {
    lost.blocks.push_back(std::malloc(256));
    CUevent event = nullptr;
    return driver.EventCreate(&event, 0);
  });
  EXPECT_THAT(Texts(RunCycles(lifecycle)), ElementsAre("growth event 10"));
}

TEST(Host, WhatIsNotMeteredIsSaid) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("its own blocks lie in the same heap");
  const auto lifecycle = WithAnEvent("event", [] {});
  EXPECT_THAT(Sweep(lifecycle).unmetered, ElementsAre(StartsWith("mutexes, ")));
  EXPECT_THAT(Sweep(lifecycle, {.host = false}).unmetered, ElementsAre("the host: as asked"));
  EXPECT_THAT(RunCycles(lifecycle, {.host = false}).unmetered, ElementsAre("the host: as asked"));
  EXPECT_THAT(RunCycles(lifecycle, {.cycles = 4}).unmetered, Contains(StartsWith("heap_bytes: it takes 10 cycles")));
  EXPECT_THAT(RunCycles(lifecycle).Text(), HasSubstr("not metered: mutexes"));
}

// Two audits in one process see each other's descriptors: neither says anything about the host.
TEST(Host, OfTwoAuditsAtOnceIsNotMetered) {
  Lost lost;
  Audit inner;
  const auto other = WithAnEvent("inner", [] {});
  const auto lifecycle = WithAnEvent(
      "outer", [&] { lost.files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC)); },
      [&] { std::thread([&] { inner = RunCycles(other); }).join(); });
  const Audit outer = RunCycles(lifecycle, {.cycles = 2});
  EXPECT_THAT(inner.unmetered, ElementsAre(StartsWith("the host: another audit")));
  EXPECT_THAT(outer.unmetered, ElementsAre(StartsWith("the host: another audit")));
  (void)RunCycles(WithAnEvent(
                      "outer", [] {}, [&] { std::thread([&] { inner = Sweep(other); }).join(); }),
                  {.cycles = 1});
  EXPECT_THAT(inner.unmetered, Contains(StartsWith("the host: another audit")));  // a genuine driver gives more reasons
}

// Without the drop-in it is not known which bytes the function will free.
TEST(Host, WhatAQueuedFunctionWillFreeIsNoLoss) {
  std::array<void*, 256> blocks = {};  // given, and freed by nobody yet
  std::size_t given = 0;
  const auto free_block = [](void* place) { std::free(std::exchange(*static_cast<void**>(place), nullptr)); };
  const auto lifecycle = Lifecycle("gives_a_block").WithCurrentContext().Init([&](DriverRef driver) {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    void*& block = blocks.at(given++);
    block = std::malloc(100000);
    code = driver.LaunchHostFunc(stream, free_block, &block);
    if (code != CUDA_SUCCESS) free_block(&block);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&event, 0);
    if (event != nullptr) code = driver.EventDestroy(event);
    if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(stream);
    const CUresult destroyed = driver.StreamDestroy(stream);
    return code != CUDA_SUCCESS ? code : destroyed;
  });
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  // The simulated driver leaves out what a refused wait would have waited for; a genuine one has run it by now.
  const bool left_out = std::any_of(blocks.begin(), blocks.end(), [](const void* block) { return block != nullptr; });
  EXPECT_TRUE(left_out || GenuineDriverIsChosen()) << "no call was left out";
  for (void* const block : blocks) std::free(block);
}

using harness::HostChange;
using harness::HostExcess;
using harness::HostMeter;
using harness::HostMeterSet;

constexpr HostMeterSet kBoth = {HostMeter::Descriptors, HostMeter::Threads};

// A cycle that kept `count` descriptors and as many threads, of which only `read` were read.
HostChange Kept(std::int64_t count, HostMeterSet read = kBoth) {
  HostChange change;
  for (const HostMeter meter : {HostMeter::Descriptors, HostMeter::Threads}) change.value[static_cast<std::size_t>(meter)] = count;
  change.read = read;
  return change;
}

std::vector<std::string> Kinds(const HostChange& trial, const HostChange& good, HostMeterSet asked) {
  std::vector<std::string> kinds;
  for (const harness::MeterFinding& one : HostExcess(trial, good, asked).Findings()) kinds.push_back(TextOf(one).meter);
  return kinds;
}

TEST(HostExcess, IsWhatATrialKeepsBeyondAGoodCycle) {
  EXPECT_THAT(Kinds(Kept(2), Kept(1), kBoth), ElementsAre("file_descriptor", "thread"));
  EXPECT_THAT(Kinds(Kept(1), Kept(1), kBoth), IsEmpty());
}

TEST(HostExcess, ComparesWhatWasAskedForAndReadBothTimes) {
  constexpr HostMeterSet kOne = {HostMeter::Descriptors};
  EXPECT_THAT(Kinds(Kept(2), Kept(1), kOne), ElementsAre("file_descriptor"));
  EXPECT_THAT(Kinds(Kept(2, kOne), Kept(1), kBoth), ElementsAre("file_descriptor"));
  EXPECT_THAT(Kinds(Kept(2), Kept(1, kOne), kBoth), ElementsAre("file_descriptor"));
}

// What 32 repeats of a trial show that keeps 608 bytes of heap each time, but in some repeats takes the block from a cache, unseen.
std::vector<std::string> FewBytes(const std::vector<std::size_t>& unseen) {
  constexpr HostMeterSet kHeap = {HostMeter::HeapBytes};
  HostChange good, trial, nothing;
  good.read = trial.read = nothing.read = kHeap;
  trial.value[static_cast<std::size_t>(HostMeter::HeapBytes)] = 608;
  HostExcess excess(trial, good, kHeap);
  std::uint64_t level = 1 << 20;
  std::size_t repeats = 0;
  for (; repeats < excess.repeats_wanted() && !excess.empty(); ++repeats) {
    const bool is_seen = std::find(unseen.begin(), unseen.end(), repeats) == unseen.end();
    excess.Repeat(is_seen ? trial : nothing, level += is_seen ? 608 : 0);
  }
  excess.DropWhatDoesNotAddUp();
  std::vector<std::string> details;
  for (const harness::MeterFinding& one : excess.Findings()) details.push_back(std::to_string(one.bytes) + ", " + Words(one.detail));
  return details;
}

TEST(HostExcess, AFewBytesMayBeUnseenInSomeRepeats) {
  const std::string kept = "608, kept by the faulted cycle, beyond what a good one keeps, and by ";
  EXPECT_THAT(FewBytes({}), ElementsAre(kept + "each of 32 repeats"));
  EXPECT_THAT(FewBytes({0}), ElementsAre(kept + "31 of 32 repeats"));
  EXPECT_THAT(FewBytes({3, 17, 30}), ElementsAre(kept + "29 of 32 repeats"));
}

TEST(HostExcess, AFewBytesThatAreRarelySeenAreNoFinding) {
  EXPECT_THAT(FewBytes({0, 1}), IsEmpty());
  EXPECT_THAT(FewBytes({1, 3, 5, 7, 9, 11, 13, 15}), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::host_test
