// SPDX-License-Identifier: MIT
// neutrality_listener.h: a GoogleTest listener that fails every test which leaves driver objects behind. For tests that know nothing of
// cuaudit and call the driver by name.
//
//     int main(int argc, char** argv) {
//       testing::InitGoogleTest(&argc, argv);
//       testing::UnitTest::GetInstance()->listeners().Append(new cuaudit::NeutralityListener());
//       return RUN_ALL_TESTS();
//     }
//
// Or without touching main: the CMake function cuaudit_check_neutrality(target).
//
//   Owns      a Watch from the begin of the program to its end.
//   Threads   as GoogleTest.
//   Errors    what a test leaves is a failure of that test; what a suite leaves that no test of it made, a failure of the run. A program
//             without the drop-in library, or without any driver call, is told of, and fails unless `may_be_idle`.
//   Faults    makes no driver calls.
//   Source    ours. With --gtest_repeat and warm_up_iterations=1 caches that are filled once and kept are not told of.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cuaudit/watch.h"

namespace cuaudit {

struct NeutralityOptions {
  int warm_up_iterations = 0;              // of --gtest_repeat, in which nothing fails
  std::vector<std::string> tolerate = {};  // kinds that may be left, such as "primary_context_reference"
  bool may_be_idle = false;                // a program that never calls the driver passes
};

class NeutralityListener : public ::testing::EmptyTestEventListener {
 public:
  explicit NeutralityListener(NeutralityOptions options = {}) : options_(std::move(options)) {}

  void OnTestProgramStart(const ::testing::UnitTest&) override { watch_ = std::make_unique<Watch>(); }
  void OnTestIterationStart(const ::testing::UnitTest&, int iteration) override {
    if (watch_ == nullptr) watch_ = std::make_unique<Watch>();  // appended after the program began
    warm_ = iteration >= options_.warm_up_iterations;
  }
  void OnTestSuiteStart(const ::testing::TestSuite&) override {
    suite_ = watch_->Now();
    tests_.clear();
  }
  void OnTestStart(const ::testing::TestInfo&) override { test_ = watch_->Now(); }
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (test.result()->Skipped()) return;
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    SetRunningTest(name);
    Judge(watch_->Since(test_, name), &checked_, &idle_);
    tests_.emplace_back(test_, watch_->Now());
  }
  void OnTestSuiteEnd(const ::testing::TestSuite& suite) override {
    SetRunningTest(std::string(suite.name()) + ".*");
    std::uint64_t ignored = 0;
    Judge(watch_->Since(suite_, suite.name(), tests_), &ignored, &ignored);
  }
  void OnTestIterationEnd(const ::testing::UnitTest&, int) override {
    const char* const why_not = watch_->why_not();
    if (!driver_.empty()) std::cout << "[ cuaudit  ] driver: " << driver_ << std::endl;
    std::cout << "[ cuaudit  ] neutrality: " << checked_ << " tests checked, " << idle_ << " made no driver call"
              << (why_not == nullptr ? "" : std::string("; ") + why_not) << std::endl;
    if (checked_ == 0 && !options_.may_be_idle) ADD_FAILURE() << "neutrality of no test was checked";
  }

 private:
  void Judge(Audit audit, std::uint64_t* checked, std::uint64_t* idle) {
    if (audit.outcome == AuditOutcome::NotExercised) {
      ++*idle;
      return;
    }
    ++*checked;
    driver_ = audit.driver;
    std::vector<Finding> findings;
    for (Finding& finding : audit.findings) {
      bool tolerated = false;
      for (const std::string& kind : options_.tolerate) tolerated |= finding.rule == "leak" && finding.kind == kind;
      if (!tolerated) findings.push_back(std::move(finding));
    }
    audit.findings = std::move(findings);
    if (warm_ && !audit.findings.empty()) ADD_FAILURE() << audit.Text();
  }

  NeutralityOptions options_;
  std::unique_ptr<Watch> watch_;
  std::string driver_;
  std::uint64_t suite_ = 0;
  std::uint64_t test_ = 0;
  std::vector<Watch::Span> tests_;
  std::uint64_t checked_ = 0;
  std::uint64_t idle_ = 0;
  bool warm_ = true;
};

}  // namespace cuaudit
