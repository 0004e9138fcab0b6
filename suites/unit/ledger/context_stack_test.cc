// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/trace.h"

namespace cuaudit::testing::context_stack_test {
namespace {

using driver::CallId;
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

// A caller pushes, and a function makes a context of its own and destroys it. The caller's pop takes what the plan left on the stack.
class NestedContext : public ::testing::Test {
 protected:
  NestedContext() {
    t_.Push(0xa);
    t_.Call(CallId::CtxCreate_v2).Out(0, 0xb);
  }
  Step Destroy() { return t_.Call(CallId::CtxDestroy_v2).In(0, 0xb); }
  Trace t_;
};

TEST_F(NestedContext, ItsRefusedDestructionLeavesTheEntryBelow) {
  Destroy().Refused();
  t_.Pop(0xb);
  EXPECT_THAT(Wrong(t_.Fold()), IsEmpty());
  EXPECT_THAT(Left(t_.Fold()), ElementsAre("context 1 release_refused", "context_stack_entry 1 release_refused"));
}

TEST_F(NestedContext, ItsRefusedPopLeavesTheEntryBelow) {
  t_.Pop(0xb).Refused();
  t_.Pop(0xb);
  EXPECT_THAT(Wrong(t_.Fold()), IsEmpty());
  EXPECT_THAT(Left(t_.Fold()), ElementsAre("context 1", "context_stack_entry 1 release_refused"));
}

TEST_F(NestedContext, ASecondDestructionLeavesNothingToTheCaller) {
  Destroy().Refused();
  Destroy();
  EXPECT_THAT(Wrong(t_.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the caller has not popped yet";
  t_.Pop(0xa);
  EXPECT_THAT(Wrong(t_.Fold()), IsEmpty());
  EXPECT_THAT(Left(t_.Fold()), IsEmpty());
}

TEST_F(NestedContext, ItsDestructionSettlesItsRefusedPop) {
  t_.Pop(0xb).Refused();
  Destroy();
  EXPECT_THAT(Wrong(t_.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the caller has not popped yet";
}

TEST(ContextStack, TheDestructionOfAPushedContextSettlesItsRefusedPop) {
  Trace t;
  t.Push(0xa);
  t.Call(CallId::CtxCreate_v2).Out(0, 0xb);
  t.Pop(0xb);
  t.Push(0xb);
  t.Pop(0xb).Refused();
  t.Call(CallId::CtxDestroy_v2).In(0, 0xb);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "the caller has not popped yet";
}

TEST(ContextStack, APopTakesWhatADeniedPushPutThere) {
  Trace t;
  t.Push(0xa);
  t.Pop(0xa);
  t.Push(0xb).After();
  t.Pop(0xb);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  t.Pop(0xc);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry")) << "only one entry was denied";
}

}  // namespace
}  // namespace cuaudit::testing::context_stack_test
