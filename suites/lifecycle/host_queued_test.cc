// SPDX-License-Identifier: MIT
// host_queued_test.cc: what a lifecycle has given to host functions that are still queued when a cycle ends. The simulated driver does not
// call them, because their memory may be gone; what they would free is no loss.
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::host_queued_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace cuaudit::testing::host_queued_test
