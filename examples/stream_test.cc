// SPDX-License-Identifier: MIT
// stream_test.cc: tests as others have them. That each leaves nothing behind is checked by cuaudit_check_neutrality().
#include <cuda.h>
#include <gtest/gtest.h>

namespace {

class Streams : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  static void TearDownTestSuite() { EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS); }
};

TEST_F(Streams, FinishWhatTheyWereGiven) {
  CUstream stream = nullptr;
  CUdeviceptr bytes = 0;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&bytes, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(bytes, 7, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  unsigned char answer[4] = {};
  EXPECT_EQ(cuMemcpyDtoH(answer, bytes, 4), CUDA_SUCCESS);
  EXPECT_EQ(answer[3], 7);
  EXPECT_EQ(cuMemFree(bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

}  // namespace
