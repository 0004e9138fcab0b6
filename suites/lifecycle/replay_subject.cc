// SPDX-License-Identifier: MIT
// replay_subject.cc: tests with a defect each, for expectations_test to run and to replay.
#include <cuaudit/gtest.h>

namespace {

struct Loses {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUresult Init(cuaudit::DriverRef driver) {
    const CUresult code = driver.StreamCreate(&stream, 0);
    return code == CUDA_SUCCESS ? driver.EventCreate(&event, 0) : code;
  }
  CUresult Teardown(cuaudit::DriverRef driver) {
    const CUresult one = driver.EventDestroy(event);
    const CUresult two = driver.StreamDestroy(stream);
    return one == CUDA_SUCCESS ? two : one;
  }
};

class Pool : public ::testing::TestWithParam<int> {};

TEST_P(Pool, UnwindsCleanly) {
  EXPECT_UNWINDS_CLEANLY(cuaudit::Lifecycle::Of<Loses>("it's a pool").WithCurrentContext());
  // Another case of the same test: the replay of the first leaves it out.
  EXPECT_UNWINDS_CLEANLY(cuaudit::Lifecycle::Of<Loses>("another").WithCurrentContext());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Pool, ::testing::Values(1, 2));

TEST(Neutral, Grows) {
  const auto lifecycle = cuaudit::Lifecycle("grows").WithCurrentContext().Init([](cuaudit::DriverRef driver) {
    CUstream stream = nullptr;
    return driver.StreamCreate(&stream, 0);
  });
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.cycles = 4});
}

TEST(Device, IsNeeded) {
  CUAUDIT_SKIP_WITHOUT_DEVICE();
  EXPECT_ALLOCATION_NEUTRAL(cuaudit::Lifecycle::Of<Loses>("pool").WithCurrentContext(), {.driver = cuaudit::AuditedDriver::Genuine});
}

}  // namespace
