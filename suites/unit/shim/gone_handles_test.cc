// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/gone_handles.h"

#include <gtest/gtest.h>

namespace cuaudit::faults::gone_handles_test {
namespace {

using driver::CallId;

Passage Call(CallId id, std::uint64_t first, CUresult injected = CUDA_SUCCESS) {
  Passage passage{};
  passage.id = id;
  passage.value[0] = first;
  passage.injected = injected;
  return passage;
}

CUresult Answer(const GoneHandles& gone, CallId id, std::uint64_t first) {
  Passage passage = Call(id, first);
  gone.Answer(&passage);
  EXPECT_EQ(passage.forward, passage.injected == CUDA_SUCCESS);
  return passage.injected;
}

TEST(GoneHandles, AReleaseThatWasToldToHaveFailedTakesItsHandle) {
  GoneHandles gone;
  gone.After(Call(CallId::StreamDestroy_v2, 0x10));
  EXPECT_FALSE(gone.any()) << "its caller knows";
  gone.After(Call(CallId::StreamDestroy_v2, 0x10, CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_EQ(Answer(gone, CallId::StreamSynchronize, 0x10), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Answer(gone, CallId::StreamSynchronize, 0x20), CUDA_SUCCESS);
  EXPECT_EQ(Answer(gone, CallId::EventSynchronize, 0x10), CUDA_SUCCESS) << "a handle of another family";
}

TEST(GoneHandles, AHandleThatTheDriverHandsOutIsThere) {
  GoneHandles gone;
  gone.After(Call(CallId::StreamDestroy_v2, 0x10, CUDA_ERROR_LAUNCH_FAILED));
  std::uint64_t made = 0x10;
  gone.After(Call(CallId::StreamCreate, reinterpret_cast<std::uintptr_t>(&made)));
  EXPECT_EQ(Answer(gone, CallId::StreamSynchronize, 0x10), CUDA_SUCCESS);
}

TEST(GoneHandles, AContextStaysWhenAccessToItEnds) {
  GoneHandles gone;
  gone.After(Call(CallId::CtxDisablePeerAccess, 0x10, CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_FALSE(gone.any());
}

TEST(GoneHandles, WhatFindsNoPlaceIsCounted) {
  GoneHandles gone;
  for (std::uint64_t i = 0; i < GoneHandles::kMost; ++i) gone.Add(driver::Family::Stream, 0x10 + i);
  EXPECT_EQ(gone.beyond(), 0U);
  gone.Add(driver::Family::Stream, 0x1000);
  EXPECT_EQ(gone.beyond(), 1U);
}

}  // namespace
}  // namespace cuaudit::faults::gone_handles_test
