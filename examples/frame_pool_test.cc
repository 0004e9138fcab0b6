// SPDX-License-Identifier: MIT
#include "frame_pool.h"

#include <cuaudit/gtest.h>

namespace {

class FramePoolOf : public ::testing::TestWithParam<int> {
 protected:
  const cuaudit::Lifecycle pool_ =
      cuaudit::Lifecycle::Of<FramePool>("frame_pool", static_cast<std::size_t>(GetParam())).WithCurrentContext();
};

TEST_P(FramePoolOf, IsNeutral) { EXPECT_ALLOCATION_NEUTRAL(pool_); }

TEST_P(FramePoolOf, UnwindsCleanly) { EXPECT_UNWINDS_CLEANLY(pool_); }

INSTANTIATE_TEST_SUITE_P(Frames, FramePoolOf, ::testing::Values(0, 1, 8));

}  // namespace
