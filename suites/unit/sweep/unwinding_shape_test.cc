// SPDX-License-Identifier: MIT
// Which unwindings are taken for equal, and which must never be.
#include "harness/sweep/run/unwinding_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::unwinding_shape_test {
namespace {

using driver::CallId;
using testing::ElementsAre;
using testing::SizeIs;

// A program that acquires two blocks and a stream, fails, and gives back what it has. The stack of each call is its line.
class UnwindingShapeTest : public testing::Test {
 protected:
  static faults::Record& Call(JournalBuilder& journal, CallId call, std::uint32_t stack, std::uint64_t handle = 0) {
    faults::Record& record = journal.Call(call);
    record.stack = stack;
    record.argument[0] = handle;
    if (stack != 0) journal.StackIn(stack, "/usr/bin/program");
    return record;
  }
  static void Fail(JournalBuilder& journal, CallId call, std::uint32_t stack) {
    faults::Record& record = Call(journal, call, stack);
    record.flags = faults::kInjected;
    record.fault = 1;
    record.result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  // The shape after the call that failed.
  static UnwindingShape Shape(const JournalBuilder& journal, const std::vector<bool>& lost = {}) {
    const Observation trial = journal.Read();
    const CallStates states = StatesOf(trial.evidence());
    std::vector<const CallState*> since;
    bool failed = false;
    for (const CallState& call : states.calls) {
      if (failed) since.push_back(&call);
      failed = failed || call.record->fault != 0;
    }
    return ShapeOf(trial.evidence(), since, lost);
  }

  TemporaryDir dir_;
  JournalBuilder one_{dir_.File("one")};
  JournalBuilder other_{dir_.File("other")};
};

TEST_F(UnwindingShapeTest, AnotherTurnOfALoopAndAnotherFailingLineHaveTheSame) {
  Call(one_, CallId::StreamCreate, 1, 0x10);
  Fail(one_, CallId::StreamSynchronize, 2);
  Call(one_, CallId::StreamDestroy_v2, 3, 0x10);
  Call(other_, CallId::StreamCreate, 1, 0x10);
  for (int turn = 0; turn < 5; ++turn) Call(other_, CallId::StreamSynchronize, 2, 0x10);
  Fail(other_, CallId::StreamQuery, 4);
  Call(other_, CallId::StreamDestroy_v2, 3, 0x10);
  const UnwindingShape a = Shape(one_);
  const UnwindingShape b = Shape(other_);
  EXPECT_NE(a.shape, 0U);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.steps, b.steps);
}

// The calls and their places are the same; what they release was made elsewhere.
TEST_F(UnwindingShapeTest, EqualCallsThatReleaseOtherObjectsHaveAnother) {
  Call(one_, CallId::MemAlloc_v2, 1, 0x1000);
  Fail(one_, CallId::StreamSynchronize, 2);
  Call(one_, CallId::MemFree_v2, 3, 0x1000);
  Call(other_, CallId::MemAlloc_v2, 4, 0x1000);
  Fail(other_, CallId::StreamSynchronize, 2);
  Call(other_, CallId::MemFree_v2, 3, 0x1000);
  const UnwindingShape a = Shape(one_);
  const UnwindingShape b = Shape(other_);
  EXPECT_NE(a.shape, b.shape);
  EXPECT_NE(a.steps, b.steps);
}

TEST_F(UnwindingShapeTest, AnotherOrderOfReleasesAnotherResultAndAnotherPlaceHaveOthers) {
  std::vector<std::uint64_t> shapes;
  for (int variant = 0; variant < 4; ++variant) {
    JournalBuilder journal(dir_.File("variant" + std::to_string(variant)));
    Call(journal, CallId::StreamCreate, 1, 0x10);
    Call(journal, CallId::MemAlloc_v2, 2, 0x1000);
    Fail(journal, CallId::StreamSynchronize, 5);
    if (variant == 1) Call(journal, CallId::MemFree_v2, 4, 0x1000);
    faults::Record& stream = Call(journal, CallId::StreamDestroy_v2, variant == 3 ? 9U : 3U, 0x10);
    if (variant == 2) stream.result = CUDA_ERROR_INVALID_HANDLE;
    if (variant != 1) Call(journal, CallId::MemFree_v2, 4, 0x1000);
    shapes.push_back(Shape(journal).shape);
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(shapes[i], shapes[j]) << i << ' ' << j;
  }
}

TEST_F(UnwindingShapeTest, WhatIsLostTellsShapesApartButNotHowMuch) {
  for (JournalBuilder* const journal : {&one_, &other_}) {
    Call(*journal, CallId::StreamCreate, 1, 0x10);
    Call(*journal, CallId::StreamCreate, 1, 0x20);
    Fail(*journal, CallId::StreamSynchronize, 2);
    Call(*journal, CallId::CtxSynchronize, 3);
  }
  EXPECT_NE(Shape(one_, {true, false}).shape, Shape(other_).shape);
  EXPECT_EQ(Shape(one_, {true, false}).shape, Shape(other_, {true, true}).shape);
}

TEST_F(UnwindingShapeTest, TheThirdTurnOfALoopStandsForTheRestOfIt) {
  std::vector<UnwindingShape> shapes;
  for (const std::uint64_t blocks : {1U, 2U, 3U, 4U, 40U}) {
    JournalBuilder journal(dir_.File("blocks" + std::to_string(blocks)));
    for (std::uint64_t i = 1; i <= blocks; ++i) Call(journal, CallId::MemAlloc_v2, 1, i * 0x1000);
    Fail(journal, CallId::StreamCreate, 2);
    for (std::uint64_t i = 1; i <= blocks; ++i) Call(journal, CallId::MemFree_v2, 3, i * 0x1000);
    shapes.push_back(Shape(journal));
  }
  EXPECT_NE(shapes[0].shape, shapes[1].shape);
  EXPECT_NE(shapes[1].shape, shapes[2].shape);
  EXPECT_EQ(shapes[2].shape, shapes[3].shape);
  EXPECT_EQ(shapes[2].shape, shapes[4].shape);
  ASSERT_THAT(shapes[4].steps, SizeIs(40));
  EXPECT_NE(shapes[4].steps[0], shapes[4].steps[1]);
  EXPECT_EQ(shapes[4].steps[2], shapes[4].steps[39]);
}

TEST_F(UnwindingShapeTest, AnInterpretedCallACallWithoutStackAndThreadsHaveNone) {
  Call(one_, CallId::StreamCreate, 1, 0x10);
  Fail(one_, CallId::StreamSynchronize, 2);
  Call(one_, CallId::StreamDestroy_v2, 3, 0x10);
  EXPECT_NE(Shape(one_).shape, 0U);
  one_.StackIn(3, "/usr/bin/python3.11");
  EXPECT_EQ(Shape(one_).shape, 0U);
  Call(other_, CallId::StreamCreate, 1, 0x10);
  Fail(other_, CallId::StreamSynchronize, 2);
  Call(other_, CallId::StreamDestroy_v2, 0, 0x10);
  EXPECT_EQ(Shape(other_).shape, 0U);
  JournalBuilder threads(dir_.File("threads"));
  Call(threads, CallId::StreamCreate, 1, 0x10);
  Fail(threads, CallId::StreamSynchronize, 2);
  Call(threads, CallId::StreamDestroy_v2, 3, 0x10).tid = 7;
  EXPECT_EQ(Shape(threads).shape, 0U);
}

TEST(WithoutRepeats, KeepsThreeTurnsOfWhateverRepeatsInARow) {
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{7, 7, 7, 7, 7}), ElementsAre(7, 7, 7));
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3}), ElementsAre(1, 2, 1, 2, 1, 2, 3));
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{1, 2, 2, 1, 2, 1}), ElementsAre(1, 2, 2, 1, 2, 1)) << "nothing repeats four times";
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{}), SizeIs(0));
}

}  // namespace
}  // namespace cuaudit::harness::unwinding_shape_test
