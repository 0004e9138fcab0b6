// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/pinned_contexts.h"

#include <gtest/gtest.h>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::pinned_contexts_test {
namespace {

using driver::Effect;

Passage Retain(std::uint64_t device) {
  Passage passage;
  passage.value[1] = device;
  return passage;
}

Passage Release(std::uint64_t device) {
  Passage passage;
  passage.value[0] = device;
  return passage;
}

TEST(PinnedContexts, TheLastReleaseOfTheProgramIsTold) {
  PinnedContexts pinned;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(pinned.Count(Effect::RetainsPrimary, Retain(3)), -1);
  EXPECT_EQ(pinned.Count(Effect::ReleasesPrimary, Release(3)), -1);
  EXPECT_EQ(pinned.Count(Effect::ReleasesPrimary, Release(3)), 3);
  EXPECT_EQ(pinned.Count(Effect::ResetsPrimary, Release(3)), -1) << "no release";
}

TEST(PinnedContexts, WhatOnlyThePinKeepsIsGoneForTheProgram) {
  GatedWorld world({}, Scope::Process);
  ASSERT_EQ(world.below().Init(0), CUDA_SUCCESS);
  PinnedContexts pinned;
  EXPECT_EQ(pinned.Unreferenced(), 0U) << "nothing is pinned";
  pinned.Pin(world.below(), 0);
  EXPECT_EQ(pinned.Unreferenced(), 1U);
  (void)pinned.Count(Effect::RetainsPrimary, Retain(0));
  EXPECT_EQ(pinned.Unreferenced(), 0U);
  pinned.NoteHeld(5);
  EXPECT_EQ(pinned.Unreferenced(), std::uint64_t{1} << 5) << "somebody else's reference is none of the program's";
}

TEST(PinnedContexts, ADeviceBeyondTheTableIsLeftAlone) {
  PinnedContexts pinned;
  pinned.NoteHeld(64);
  pinned.NoteHeld(-1);
  EXPECT_EQ(pinned.Count(Effect::ReleasesPrimary, Release(64)), -1);
  EXPECT_EQ(pinned.Unreferenced(), 0U);
}

}  // namespace
}  // namespace cuaudit::faults::pinned_contexts_test
