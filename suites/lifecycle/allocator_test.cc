// SPDX-License-Identifier: MIT
// allocator_test.cc: the caching allocator's own lifecycle in this process: every driver call fails in turn, and every call that the
// unwinding of that makes fails behind it.
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>

#include <string>
#include <tuple>

#include "suites/support/allocator_steps.h"

namespace cuaudit::testing::allocator_test {
namespace {

using alloc::Reuse;

class AllocatorLifecycle : public ::testing::TestWithParam<std::tuple<Reuse, bool>> {
 protected:
  static Lifecycle Made() {
    alloc::Options options;
    options.reuse = std::get<0>(GetParam());
    options.expandable_segments = std::get<1>(GetParam());
    return Lifecycle::Of<alloc::AllocatorSteps>("allocator", options, 1, 4).TeardownAfterFailedInit();
  }
};

TEST_P(AllocatorLifecycle, EveryCallAndEveryCallOfItsUnwindingFailInTurn) {
  // Which policy and which kind of segment meet makes no second fault of a new kind.
  const bool is_deep = (std::get<0>(GetParam()) == Reuse::Wait) == std::get<1>(GetParam());
  const Audit audit = gtest::Swept(Made(), {.depth = is_deep ? 2 : 1});
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_EQ(audit.fired, audit.trials);
  // Growing is tried again with less cached, and in another way; the capture mode is put back at the second try.
  EXPECT_THAT(audit.verdicts, ::testing::Contains(::testing::Key("absorbed")));
  EXPECT_GT(audit.trials, is_deep ? 3 * audit.calls : audit.calls / 2);  // second faults are most of them
}

TEST_P(AllocatorLifecycle, CyclesAreNeutral) { EXPECT_ALLOCATION_NEUTRAL(Made()); }

INSTANTIATE_TEST_SUITE_P(All, AllocatorLifecycle, ::testing::Combine(::testing::Values(Reuse::Poll, Reuse::Wait), ::testing::Bool()),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param) == Reuse::Poll ? "Poll" : "Wait") +
                                  (std::get<1>(chosen.param) ? "Expandable" : "Segments");
                         });

}  // namespace
}  // namespace cuaudit::testing::allocator_test
