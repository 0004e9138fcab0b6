// SPDX-License-Identifier: MIT
#include "faults/driver/result.h"

#include <gtest/gtest.h>

namespace cuaudit::driver::result_test {
namespace {

TEST(Result, NamesRoundTripInBothSpellings) {
  EXPECT_EQ(ResultName(CUDA_ERROR_OUT_OF_MEMORY), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(ShortResultName(CUDA_ERROR_OUT_OF_MEMORY), "OUT_OF_MEMORY");
  EXPECT_EQ(ShortResultName(CUDA_SUCCESS), "SUCCESS");
  for (const char* name : {"OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY"}) {
    CUresult result = CUDA_SUCCESS;
    ASSERT_TRUE(ResultFromName(name, &result)) << name;
    EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
  }
}

TEST(Result, UnknownNamesAndValuesAreRefused) {
  CUresult result = CUDA_SUCCESS;
  EXPECT_FALSE(ResultFromName("OUT_OF_LUCK", &result));
  EXPECT_FALSE(ResultFromName("", &result));
  EXPECT_TRUE(ResultName(static_cast<CUresult>(998)).empty());
}

TEST(Result, OnlyLostContextsAreSticky) {
  EXPECT_TRUE(IsSticky(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_TRUE(IsSticky(CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_FALSE(IsSticky(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_FALSE(IsSticky(CUDA_SUCCESS));
}

}  // namespace
}  // namespace cuaudit::driver::result_test
