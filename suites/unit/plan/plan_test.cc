// SPDX-License-Identifier: MIT
#include "faults/plan/plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace cuaudit::faults::plan_test {
namespace {

std::vector<std::uint32_t> Hits(How how, std::uint32_t occurrence, std::uint32_t burst = 1) {
  const Fault fault{driver::BaseId::MemAlloc, occurrence, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, how, burst};
  std::vector<std::uint32_t> hits;
  for (std::uint32_t n = 1; n <= 6; ++n) {
    if (Plan::Decide(fault, n).code != CUDA_SUCCESS) hits.push_back(n);
  }
  return hits;
}

TEST(Plan, HowDecidesWhichCallsAreHit) {
  using Calls = std::vector<std::uint32_t>;
  EXPECT_EQ(Hits(How::Refuse, 3), (Calls{3}));
  EXPECT_EQ(Hits(How::RefuseGarbage, 3), (Calls{3}));
  EXPECT_EQ(Hits(How::After, 1), (Calls{1}));
  EXPECT_EQ(Hits(How::Persist, 4), (Calls{4, 5, 6}));
  EXPECT_EQ(Hits(How::Burst, 2, 3), (Calls{2, 3, 4}));
  EXPECT_EQ(Hits(How::Sticky, 5), (Calls{5}));
  EXPECT_EQ(Hits(How::Refuse, 7), (Calls{}));
}

TEST(Plan, BurstAtTheLargestCountDoesNotWrap) {
  const Fault fault{driver::BaseId::MemAlloc, 0xfffffffeU, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Burst, 0xffffffffU};
  EXPECT_EQ(Plan::Decide(fault, 1).code, CUDA_SUCCESS);
  EXPECT_NE(Plan::Decide(fault, 0xffffffffU).code, CUDA_SUCCESS);
}

TEST(Plan, KnowsWhichCallsNeedTheirSite) {
  Plan plan;
  Fault fault{driver::BaseId::MemAlloc, 1, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Refuse, 1};
  ASSERT_TRUE(plan.Add(fault));
  EXPECT_FALSE(plan.NamesSite(driver::BaseId::MemAlloc));
  fault.site = 7;
  ASSERT_TRUE(plan.Add(fault));
  EXPECT_TRUE(plan.NamesSite(driver::BaseId::MemAlloc));
  EXPECT_FALSE(plan.NamesSite(driver::BaseId::MemFree));
}

TEST(Plan, RefusesAFirstFaultThatCountsFromTheOneBeforeIt) {
  Plan plan;
  Fault fault{driver::BaseId::MemAlloc, 1, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Refuse, 1};
  fault.follows = true;
  EXPECT_FALSE(plan.Add(fault));
  fault.follows = false;
  ASSERT_TRUE(plan.Add(fault));
  fault.follows = true;
  EXPECT_TRUE(plan.Add(fault));
}

TEST(Plan, HoldsSixteenFaultsAndRefusesMore) {
  Plan plan;
  const Fault fault{driver::BaseId::MemAlloc, 1, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Refuse, 1};
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(plan.Add(fault));
  EXPECT_FALSE(plan.Add(fault));
  EXPECT_EQ(plan.size(), 16u);
  EXPECT_TRUE(plan.Names(driver::BaseId::MemAlloc));
  EXPECT_FALSE(plan.Names(driver::BaseId::MemFree));
}

}  // namespace
}  // namespace cuaudit::faults::plan_test
