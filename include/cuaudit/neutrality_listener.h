// SPDX-License-Identifier: MIT
// neutrality_listener.h: a GoogleTest listener that fails every test which leaves driver objects behind. It is for tests that call the
// driver by name and know nothing of cuaudit.
//
//     int main(int argc, char** argv) {
//       testing::InitGoogleTest(&argc, argv);
//       testing::UnitTest::GetInstance()->listeners().Append(new cuaudit::NeutralityListener());
//       return RUN_ALL_TESTS();
//     }
//
// The CMake function cuaudit_check_neutrality(target) does the same without a change to main.
//
// Failures:
//   - What a test leaves is a failure of that test, also when the test was skipped.
//   - What a suite leaves that none of its tests made is a failure of the run. What environments leave is not checked.
//   - A test with more records than `most_records` fails, and the next test is checked as usual. A driver call is one record of 128 bytes,
//     a kernel launch is a few more. The limit is for one test, not for the program.
//   - The run fails when tests ran and none could be checked. That is always so without the drop-in library. When no test called the
//     driver, the run passes with `may_be_idle`, and also when only a part of the tests was run (a shard or a filter), because that part
//     may hold only such tests; the listener then prints "nothing was checked".
//   - A run in which no test ran or all were skipped prints the same and does not fail.
// Tests that were not checked are counted and named, and the reason is in GoogleTest's report as the property cuaudit_neutrality.
// With --gtest_repeat, warm_up_iterations=1 keeps caches that are filled once from being reported.
// The listener owns a Watch from the start of the program to its end.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuaudit/watch.h"

namespace cuaudit {

struct NeutralityOptions {
  int warm_up_iterations = 0;              // first iterations of --gtest_repeat, in which nothing fails
  std::vector<std::string> tolerate = {};  // kinds of object that may be left, such as "primary_context_reference"
  bool may_be_idle = false;                // lets a program pass that never calls the driver
  std::size_t most_records = Watch::kMostRecords;
};

class NeutralityListener : public ::testing::EmptyTestEventListener {
 public:
  explicit NeutralityListener(NeutralityOptions options = {}) : options_(std::move(options)) {}

  void OnTestProgramStart(const ::testing::UnitTest&) override { Open(); }
  void OnTestIterationStart(const ::testing::UnitTest&, int iteration) override {
    Open();  // needed when the listener was appended after OnTestProgramStart
    warm_ = iteration >= options_.warm_up_iterations;
    counts_ = {};
    idle_names_.clear();
  }
  void OnTestSuiteStart(const ::testing::TestSuite&) override { watch_->Begin(); }
  void OnTestStart(const ::testing::TestInfo&) override { watch_->Begin(); }
  void OnTestEnd(const ::testing::TestInfo& test) override {
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    const bool skipped = test.result()->Skipped();
    SetRunningTest(name);
    const Audit audit = Judge(watch_->End(name));
    if (skipped && (audit.outcome == AuditOutcome::Clean || audit.outcome == AuditOutcome::NotExercised)) {
      ++counts_.skipped;
      return;
    }
    const char* said = "checked";
    if (audit.outcome == AuditOutcome::NotExercised) {
      said = watch_->why_not() == nullptr ? "no driver call" : "not watched";
      if (counts_.idle++ < kMostNames) idle_names_ += (idle_names_.empty() ? "" : ", ") + name;
    } else if (audit.outcome == AuditOutcome::Error) {
      said = "too many records";
      ++counts_.overran;
    } else {
      ++counts_.checked;
      ever_checked_ = true;
    }
    ::testing::Test::RecordProperty("cuaudit_neutrality", said);
  }
  void OnTestSuiteEnd(const ::testing::TestSuite& suite) override {
    SetRunningTest(std::string(suite.name()) + ".*");
    Judge(watch_->End(suite.name()));
  }
  void OnTestIterationEnd(const ::testing::UnitTest& all, int) override {
    const char* const why_not = watch_->why_not();
    const std::uint64_t ran = counts_.checked + counts_.idle + counts_.overran;
    if (!driver_.empty()) Say("driver: " + driver_);
    std::string line = "neutrality: " + std::to_string(counts_.checked) + " tests checked, " + std::to_string(counts_.idle) +
                       (why_not == nullptr ? " made no driver call" : " were not watched");
    if (counts_.skipped != 0) line += ", " + std::to_string(counts_.skipped) + " skipped";
    if (counts_.overran != 0) line += ", " + std::to_string(counts_.overran) + " made too many records";
    if (why_not != nullptr) line += std::string("; ") + why_not;
    Say(line);
    if (!idle_names_.empty()) Say("not checked: " + idle_names_ + (counts_.idle > kMostNames ? ", ..." : ""));
    if (counts_.checked + counts_.overran != 0) return;
    const std::string reason = ran == 0 ? (counts_.skipped == 0 ? "no test ran" : "each test was skipped") : "no test called the driver";
    const bool part = all.reportable_test_count() < all.total_test_count();
    if (ran == 0 || ever_checked_ || (why_not == nullptr && (options_.may_be_idle || part))) {
      Say("nothing was checked: " + reason + (part ? " (of this filter or shard)" : ""));
    } else {
      ADD_FAILURE() << "neutrality of no test was checked: " << (why_not == nullptr ? reason : why_not);
    }
  }

 private:
  static constexpr std::uint64_t kMostNames = 10;
  struct Counts {
    std::uint64_t checked = 0;
    std::uint64_t idle = 0;
    std::uint64_t skipped = 0;
    std::uint64_t overran = 0;
  };

  void Open() {
    if (watch_ == nullptr) watch_ = std::make_unique<Watch>(options_.most_records);
  }
  static void Say(const std::string& line) { std::cout << "[ cuaudit  ] " << line << std::endl; }

  Audit Judge(Audit audit) {
    if (audit.outcome == AuditOutcome::NotExercised) return audit;
    driver_ = audit.driver;
    audit.Tolerate([this](const Finding& finding) {
      bool tolerated = false;
      for (const std::string& kind : options_.tolerate) tolerated |= finding.rule == "leak" && finding.kind == kind;
      return tolerated;
    });
    if (audit.outcome == AuditOutcome::Findings && audit.findings.empty()) audit.outcome = AuditOutcome::Clean;
    if (warm_ && audit.outcome != AuditOutcome::Clean) ADD_FAILURE() << audit.Text();
    return audit;
  }

  NeutralityOptions options_;
  std::unique_ptr<Watch> watch_;
  std::string driver_;
  std::string idle_names_;
  Counts counts_;
  bool ever_checked_ = false;
  bool warm_ = true;
};

}  // namespace cuaudit
