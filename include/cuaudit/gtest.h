// SPDX-License-Identifier: MIT
// gtest.h: lifecycles as GoogleTest expectations. Header-only: it uses the GoogleTest of the test that includes it.
//
//     TEST(Pool, IsNeutral)       { EXPECT_ALLOCATION_NEUTRAL(pool); }
//     TEST(Pool, UnwindsCleanly)  { EXPECT_UNWINDS_CLEANLY(pool, {.depth = 1}); }
//
//   Owns      nothing.
//   Threads   as GoogleTest: one test at a time.
//   Errors    a failure carries each finding with its call stacks and a line that runs the one trial again. A lifecycle that does not
//             work, or under which no fault fired, fails too. Where the genuine driver is asked for (CUAUDIT_OPTIONS=driver=real, or the
//             options' driver) and is not here, or CUAUDIT_CASE names another lifecycle, the test is skipped with the reason.
//             Which driver it was stands on stdout, once, and in GoogleTest's own report as the property cuaudit_driver.
//   Faults    makes no driver calls but the lifecycle's.
//   Source    ours. GoogleTest's sharding, repeats and parameters work as for any test.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <utility>

#include "cuaudit/lifecycle.h"

// Nothing is left behind by n clean cycles. Optional second argument: cuaudit::CycleOptions.
#define EXPECT_ALLOCATION_NEUTRAL(...) EXPECT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Cycles(__VA_ARGS__))
#define ASSERT_ALLOCATION_NEUTRAL(...) ASSERT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Cycles(__VA_ARGS__))

// Every driver call fails in turn, the error is reported, nothing is lost, and a clean cycle follows. Optional: cuaudit::SweepOptions.
#define EXPECT_UNWINDS_CLEANLY(...) EXPECT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Swept(__VA_ARGS__))
#define ASSERT_UNWINDS_CLEANLY(...) ASSERT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Swept(__VA_ARGS__))

// Skips the test, with the reason, where no genuine driver can answer.
#define CUAUDIT_SKIP_WITHOUT_DEVICE() \
  if (const char* const cuaudit_reason = ::cuaudit::WhyNoDevice()) GTEST_SKIP() << cuaudit_reason

// Skips the test, with the reason, where CUAUDIT_OPTIONS asks for the genuine driver.
#define CUAUDIT_SKIP_ON_GENUINE_DRIVER(reason) \
  if (::cuaudit::GenuineDriverIsChosen()) GTEST_SKIP() << (reason)

namespace cuaudit::gtest {

// Appended to a program's listeners: where the driver that CUAUDIT_OPTIONS asks for is not here, every test is skipped with the reason.
class SkipWithoutDriver : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    if (const char* const reason = WhyNoDriver()) GTEST_SKIP() << reason;
  }
};

// Findings name the test that shows them again.
inline void NameTest() {
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  SetRunningTest(test == nullptr ? std::string() : std::string(test->test_suite_name()) + "." + test->name());
}

// A test that passes says nothing else of it.
inline Audit NameDriver(Audit audit) {
  static std::string named;
  if (audit.driver.empty()) return audit;
  ::testing::Test::RecordProperty("cuaudit_driver", audit.driver);
  if (std::exchange(named, audit.driver) != audit.driver) std::cout << "[ cuaudit  ] driver: " << audit.driver << std::endl;
  return audit;
}

inline Audit Cycles(const Lifecycle& lifecycle, const CycleOptions& options = {}) {
  NameTest();
  return NameDriver(RunCycles(lifecycle, options));
}

inline Audit Swept(const Lifecycle& lifecycle, const SweepOptions& options = {}) {
  NameTest();
  return NameDriver(Sweep(lifecycle, options));
}

// GTEST_SKIP ends the function that it stands in, the test goes on; it counts as skipped unless something else of it fails.
inline void SkipTest(const std::string& reason) { GTEST_SKIP() << reason; }

inline ::testing::AssertionResult IsClean(const char*, const Audit& audit) {
  if (audit.outcome == AuditOutcome::NoDevice || audit.outcome == AuditOutcome::NotRun) {
    SkipTest(audit.Text());
    return ::testing::AssertionSuccess();
  }
  if (audit.clean()) return ::testing::AssertionSuccess() << audit.Text();
  return ::testing::AssertionFailure() << audit.Text();
}

}  // namespace cuaudit::gtest
