// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/tried_before.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::tried_before_test {
namespace {

using testing::ElementsAre;

report::Acquired At(const std::string& call, const std::string& function, int line) {
  return {call, {{"libcuda.so.1", call, "", 0, 8}, {"player", function, "player.c", line, 16}, {"player", "main", "player.c", 90, 32}}};
}

TEST(TriedBefore, APlaceIsToldByCallAndFunctionAndTheirNumber) {
  TriedBefore before;
  before.Add("cuMemAlloc", "open", 1);
  before.Add("cuMemAlloc", "grow", 2);
  before.Add("cuMemAlloc", "grow", 1);  // with another error, which fewer places were tried with
  before.Add("cuMemAlloc", "only_in_a_baseline", 0);
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "open", 31), At("cuMemAlloc", "open_more", 31), At("cuMemFree", "open", 33)}),
              ElementsAre(Novelty::Known, Novelty::New, Novelty::New))
      << "it may have moved to another line";
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "grow", 1), At("cuMemAlloc", "grow", 2), At("cuMemAlloc", "open", 3)}),
              ElementsAre(Novelty::Known, Novelty::Known, Novelty::Known));
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "grow", 1), At("cuMemAlloc", "open", 3), At("cuMemAlloc", "open", 4)}),
              ElementsAre(Novelty::Changed, Novelty::Changed, Novelty::Changed))
      << "one place less, and one more";
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "only_in_a_baseline", 1), At("cuMemAlloc", "only_in_a_baseline", 2)}),
              ElementsAre(Novelty::Known, Novelty::Known));
  EXPECT_THAT(TriedBefore().Compare({At("cuMemAlloc", "open", 31)}), ElementsAre(Novelty::New));
}

TEST(TriedBefore, APlaceWithoutAStackIsOneOfItsCall) {
  TriedBefore before;
  before.Add("malloc", "", 1);
  EXPECT_THAT(before.Compare({{"malloc", {}}, {"cuInit", {}}}), ElementsAre(Novelty::Known, Novelty::New));
}

TEST(TriedBefore, WhatACompilerAddsToANameDoesNotCount) {
  TriedBefore before;
  before.Add("cuMemAlloc", "pool::open", 1);
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "pool::open(int) [clone .constprop.0]", 5)}), ElementsAre(Novelty::Known));
  EXPECT_EQ(PlaceInProgram(At("c", "f(int)", 5).stack).place, PlaceInProgram(At("c", "f(int) [clone .cold]", 5).stack).place);
  EXPECT_NE(PlaceInProgram(At("c", "f", 5).stack).place, PlaceInProgram(At("c", "f", 6).stack).place);
}

}  // namespace
}  // namespace cuaudit::harness::tried_before_test
