// SPDX-License-Identifier: MIT
// listener_subject.cc: somebody else's tests, for listener_test to run: what each leaves behind, its name says.
#include <cuda.h>
#include <gtest/gtest.h>

namespace {

class Leaves : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  static void TearDownTestSuite() { ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS); }
};

TEST_F(Leaves, Nothing) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Leaves, AStream) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
}

TEST_F(Leaves, NothingButReleasesTwice) {
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  EXPECT_NE(cuEventDestroy(event), CUDA_SUCCESS);
}

// Kept for the process, as caches are.
TEST(Keeps, AContextTheFirstTime) {
  static CUcontext context = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  if (context == nullptr) {
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

// Nothing happens in it: the listener must not count it as checked (listener_test.cc).
TEST(WithoutDriver, CallsNothing) {}

TEST(WithoutDriver, IsSkipped) { GTEST_SKIP() << "for a reason"; }

class SuiteLeaves : public Leaves {
 protected:
  static void SetUpTestSuite() {
    Leaves::SetUpTestSuite();
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  }
};

TEST_F(SuiteLeaves, NothingInItsTest) {
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
}

}  // namespace
