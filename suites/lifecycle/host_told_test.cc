// SPDX-License-Identifier: MIT
// host_told_test.cc: what both a place and a meter show is told once, and what only a meter shows is told all the same. The host drop-in is
// linked into this process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::host_told_test {
namespace {

using ::testing::ElementsAre;
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
}  // namespace cuaudit::testing::host_told_test
