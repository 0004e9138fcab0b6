// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/trace.h"

namespace cuaudit::testing::context_stack_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ContextStack, APopThatFailedTakesNothing) {
  Trace t;
  t.Push(0xa);
  t.Pop(0xa).Fails(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the entry is still there at the end";
  t.Pop(0xa);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(ContextStack, APopFromADriverThatIsTornDownTakesNothing) {
  Trace t;
  t.Pop(0xa).Fails(CUDA_ERROR_DEINITIALIZED);
  t.Push(0xb);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the push put back nothing";
}

}  // namespace
}  // namespace cuaudit::testing::context_stack_test
