// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/captures.h"

#include <gtest/gtest.h>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::captures_test {
namespace {

using driver::Effect;

TEST(Captures, AreOpenFromABeginThatSucceededToTheEnd) {
  Captures captures;
  captures.Count(Effect::BeginsCapture, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(captures.any());
  for (int i = 0; i < 2; ++i) captures.Count(Effect::BeginsCapture, CUDA_SUCCESS);
  captures.Count(Effect::EndsCapture, CUDA_SUCCESS);
  EXPECT_TRUE(captures.any()) << "one of two";
  captures.Count(Effect::EndsCapture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_FALSE(captures.any()) << "an invalid one is over when it is ended";
  captures.Count(Effect::EndsCapture, CUDA_SUCCESS);
  captures.Count(Effect::BeginsCapture, CUDA_SUCCESS);
  EXPECT_TRUE(captures.any()) << "one that was begun past the gate takes none away";
}

TEST(Captures, OnlyWorkOnTheStreamUnderCaptureIsCaptured) {
  GatedWorld world;
  world.Start();
  const driver::DriverRef d = world.below();
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(d.MemAlloc(&memory, 64), CUDA_SUCCESS);
  const auto seen = [&](driver::CallId id) {
    Passage passage;
    passage.id = id;
    passage.value[0] = memory;
    passage.value[3] = reinterpret_cast<std::uintptr_t>(stream);
    Captures::See(d, &passage);
    return passage.captured;
  };
  EXPECT_FALSE(seen(driver::CallId::MemsetD8Async));
  ASSERT_EQ(d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_TRUE(seen(driver::CallId::MemsetD8Async));
  EXPECT_FALSE(seen(driver::CallId::MemFree_v2)) << "it queues nothing";
}

}  // namespace
}  // namespace cuaudit::faults::captures_test
