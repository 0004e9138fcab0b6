// SPDX-License-Identifier: MIT
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "faults/cudart/calls.h"

namespace cuaudit::cudart::error_texts_test {
namespace {

struct Result {
  CUresult code;
  const char* name;
};

constexpr Result kResults[] = {
#define CUAUDIT_RESULT(name, value) {name, #name},
#include "driver_results.inc"
#undef CUAUDIT_RESULT
};

// What FromDriver relies on: a code of the driver is the runtime's code of the same number, wherever the runtime has a name for it.
TEST(FromDriver, KeepsNumbersThatTheRuntimeKnows) {
  EXPECT_EQ(FromDriver(CUDA_ERROR_INVALID_VALUE), cudaErrorInvalidValue);
  EXPECT_EQ(FromDriver(CUDA_ERROR_OUT_OF_MEMORY), cudaErrorMemoryAllocation);
  EXPECT_EQ(FromDriver(CUDA_ERROR_DEINITIALIZED), cudaErrorCudartUnloading);
  EXPECT_EQ(FromDriver(CUDA_ERROR_INVALID_CONTEXT), cudaErrorDeviceUninitialized);
  EXPECT_EQ(FromDriver(CUDA_ERROR_NOT_READY), cudaErrorNotReady);
  EXPECT_EQ(FromDriver(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT), cudaErrorStreamCaptureImplicit);
  for (const Result& result : kResults) {
    const std::string name = GetErrorName(FromDriver(result.code));
    EXPECT_TRUE(name.starts_with("cuda")) << result.name << " becomes " << name;
    const std::string own = GetErrorName(static_cast<cudaError_t>(result.code));
    EXPECT_EQ(name, own.starts_with("cuda") ? own : "cudaErrorUnknown") << result.name;
  }
}

TEST(ErrorTexts, AreThoseOfTheGenuineRuntime) {
  void* const genuine = dlopen(CUAUDIT_GENUINE_CUDART, RTLD_NOW | RTLD_LOCAL);
  if (genuine == nullptr) GTEST_SKIP() << "no " << CUAUDIT_GENUINE_CUDART;
  using Text = const char* (*)(cudaError_t);
  const Text name = reinterpret_cast<Text>(dlsym(genuine, "cudaGetErrorName"));
  const Text text = reinterpret_cast<Text>(dlsym(genuine, "cudaGetErrorString"));
  ASSERT_NE(name, nullptr);
  ASSERT_NE(text, nullptr);
  for (int code = -1; code <= 10001; ++code) {
    const cudaError_t error = static_cast<cudaError_t>(code);
    EXPECT_STREQ(GetErrorName(error), name(error)) << code;
    EXPECT_STREQ(GetErrorString(error), text(error)) << code;
  }
}

}  // namespace
}  // namespace cuaudit::cudart::error_texts_test
