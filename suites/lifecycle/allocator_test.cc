// SPDX-License-Identifier: MIT
// allocator_test.cc: the caching allocator's own lifecycle in this process: every driver call fails in turn, and every call that the
// unwinding of that makes fails behind it.
#include <cuaudit/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>

#include "suites/lifecycle/allocator_steps.h"

namespace cuaudit::testing {
namespace {

using alloc::Reuse;

// Growing is tried again with less cached, and in another way; the capture mode is put back at the second try.
bool IsTriedAgain(const Finding& finding) {
  static constexpr const char* kTriedAgain[] = {"cuMemAlloc#", "cuMemAddressReserve#", "cuMemCreate#", "cuMemMap#",
                                                "cuThreadExchangeStreamCaptureMode#"};
  return finding.rule == "swallowed" && std::any_of(std::begin(kTriedAgain), std::end(kTriedAgain),
                                                    [&](const char* call) { return finding.faults[0].rfind(call, 0) == 0; });
}

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
  ASSERT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text();
  EXPECT_EQ(audit.fired, audit.trials);
  EXPECT_GT(audit.trials, is_deep ? 3 * audit.calls : audit.calls / 2);  // second faults are most of them
  int tried_again = 0;
  for (const Finding& finding : audit.findings) {
    ASSERT_FALSE(finding.faults.empty()) << audit.Text();
    tried_again += IsTriedAgain(finding);
    if (IsTriedAgain(finding)) continue;
    ADD_FAILURE() << finding.title << ": " << finding.detail << " at " << finding.where << "\n" << finding.replay;
  }
  EXPECT_GT(tried_again, 0);
}

TEST_P(AllocatorLifecycle, CyclesAreNeutral) { EXPECT_ALLOCATION_NEUTRAL(Made()); }

INSTANTIATE_TEST_SUITE_P(All, AllocatorLifecycle, ::testing::Combine(::testing::Values(Reuse::Poll, Reuse::Wait), ::testing::Bool()),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param) == Reuse::Poll ? "Poll" : "Wait") +
                                  (std::get<1>(chosen.param) ? "Expandable" : "Segments");
                         });

}  // namespace
}  // namespace cuaudit::testing
