// SPDX-License-Identifier: MIT
// gtest.h: lifecycles as GoogleTest expectations. Header-only: it uses the GoogleTest of the test that includes it.
//
//     TEST(Pool, IsNeutral)       { EXPECT_ALLOCATION_NEUTRAL(pool); }
//     TEST(Pool, UnwindsCleanly)  { EXPECT_UNWINDS_CLEANLY(pool, {.depth = 1}); }
//     TEST(Pool, Issue7)          { EXPECT_REPLAYS_CLEANLY(pool, "cuMemAlloc#2=OUT_OF_MEMORY,refuse"); }
//
// A failure prints each finding with its call stacks and a command that runs that one trial again. An expectation also fails when the
// lifecycle itself does not work or when no fault fired.
// A test is skipped, with the reason, when the genuine driver is asked for (CUAUDIT_OPTIONS=driver=real, or AuditedDriver::Genuine) and
// is not available, or when CUAUDIT_CASE names another lifecycle. The driver that was used is printed once on stdout and recorded in
// GoogleTest's report as the property cuaudit_driver. GoogleTest's sharding, repeats and parameters work as for any test.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "cuaudit/lifecycle.h"

// Expects that n fault-free cycles leave nothing behind. Optional second argument: cuaudit::CycleOptions.
#define EXPECT_ALLOCATION_NEUTRAL(...) EXPECT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Cycles(__VA_ARGS__))
#define ASSERT_ALLOCATION_NEUTRAL(...) ASSERT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Cycles(__VA_ARGS__))

// Makes each driver call fail in turn, and expects that the error is reported, that nothing is lost, and that a clean cycle works
// afterwards. Optional second argument: cuaudit::SweepOptions.
#define EXPECT_UNWINDS_CLEANLY(...) EXPECT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Swept(__VA_ARGS__))
#define ASSERT_UNWINDS_CLEANLY(...) ASSERT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Swept(__VA_ARGS__))

// Runs one trial with one fault, or with several as {"...", "..."}, written as in Finding::faults, and expects the same. Optional third
// argument: cuaudit::SweepOptions.
#define EXPECT_REPLAYS_CLEANLY(...) EXPECT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Replayed(__VA_ARGS__))
#define ASSERT_REPLAYS_CLEANLY(...) ASSERT_PRED_FORMAT1(::cuaudit::gtest::IsClean, ::cuaudit::gtest::Replayed(__VA_ARGS__))

// Skips the test, with the reason, where no genuine driver with a device is available.
#define CUAUDIT_SKIP_WITHOUT_DEVICE() \
  if (const char* const cuaudit_reason = ::cuaudit::WhyNoDevice()) GTEST_SKIP() << cuaudit_reason

// Skips the test, with the reason, where CUAUDIT_OPTIONS asks for the genuine driver.
#define CUAUDIT_SKIP_ON_GENUINE_DRIVER(reason) \
  if (::cuaudit::GenuineDriverIsChosen()) GTEST_SKIP() << (reason)

namespace cuaudit::gtest {

// Append it to a program's listeners: every test is skipped, with the reason, where the driver that CUAUDIT_OPTIONS asks for is not
// available.
class SkipWithoutDriver : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    if (const char* const reason = WhyNoDriver()) GTEST_SKIP() << reason;
  }
};

// Tells cuaudit the running test, so that a finding names the test that reproduces it.
inline void NameTest() {
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  SetRunningTest(test == nullptr ? std::string() : std::string(test->test_suite_name()) + "." + test->name());
}

// Prints and records the driver that was used: a passing test prints nothing else about it.
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

// One fault, or several in braces.
struct FaultTexts {
  FaultTexts(const char* text) : texts{text} {}
  FaultTexts(const std::string& text) : texts{text} {}
  FaultTexts(std::initializer_list<std::string> list) : texts(list) {}
  std::vector<std::string> texts;
};

inline Audit Replayed(const Lifecycle& lifecycle, const FaultTexts& faults, const SweepOptions& options = {}) {
  NameTest();
  return NameDriver(Replay(lifecycle, faults.texts, options));
}

// GTEST_SKIP returns only from the function that contains it. The test goes on, and counts as skipped unless something else in it fails.
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
