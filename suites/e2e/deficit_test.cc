// SPDX-License-Identifier: MIT
// Deficits: programs that give back on a failing path what they did not take (programs/deficit.c), and the same programs
// repaired. The repaired ones are silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::deficit_test {
namespace {

struct Way {
  const char* mode;
  const char* finding;
  const char* call;   // the call that gives back too much
  const char* fault;  // the fault that shows it
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.mode; }

class Deficit : public ::testing::TestWithParam<Way> {
 protected:
  static Audit Sweep(const char* form, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"sweep", "--host"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return RunAudit(arguments, {Program("deficit"), GetParam().mode, form});
  }
};

TEST_P(Deficit, IsFoundAtTheCallThatGivesBackTooMuch) {
  const Audit audit = Sweep("wrong", {"--depth", "1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  ASSERT_EQ(audit.report["defects"].size(), 1U) << audit.report["defects"].dump(1);
  EXPECT_THAT(audit.findings(), ::testing::StartsWith(GetParam().finding));
  for (const nlohmann::json& finding : audit.report["findings"]) EXPECT_EQ(finding["where"], GetParam().call);
  EXPECT_EQ(audit.report["findings"][0]["fault"]["call"], GetParam().fault);
}

TEST_P(Deficit, TheRepairedProgramIsSilent) {
  const Audit audit = Sweep("right");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  const Audit other = Sweep("right", {"--how", "after,persist,burst:2"});
  EXPECT_EQ(other.outcome.exit, 0) << other.outcome.err << other.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, Deficit,
                         ::testing::Values(Way{"pop", "deficit context_stack_entry 1", "cuCtxPopCurrent", "cuCtxPushCurrent"},
                                           Way{"pop_twice", "deficit context_stack_entry 1", "cuCtxPopCurrent", "cuMemAlloc"},
                                           Way{"release", "deficit primary_context 1", "cuDevicePrimaryCtxRelease",
                                               "cuDevicePrimaryCtxRetain"},
                                           Way{"release_twice", "deficit primary_context 1", "cuDevicePrimaryCtxRelease", "cuMemAlloc"},
                                           Way{"null", "null_released graph 1", "cuGraphDestroy", "cuStreamCreate"},
                                           Way{"close_given", "deficit file_descriptor 1", "close", "cuMemAlloc"},
                                           Way{"close_again", "deficit file_descriptor 1", "close", "cuMemAlloc"},
                                           Way{"close_anothers", "deficit file_descriptor 1", "close", "cuMemAlloc"}),
                         [](const auto& test) { return std::string(test.param.mode); });

// A program that pops its own context on a failing path, by a helper that also pops others, and works that pop it by mistake.
class Leaves : public ::testing::TestWithParam<const char*> {
 protected:
  static Audit Sweep(const char* form, const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"sweep"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return RunAudit(arguments, {Program("leaves"), GetParam(), form});
  }
};

TEST_P(Leaves, ItsOwnContextByRight) {
  const Audit audit = Sweep("right", {});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  const Audit other = Sweep("right", {"--how", "after,persist,burst:2"});
  EXPECT_EQ(other.outcome.exit, 0) << other.outcome.err << other.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, Leaves, ::testing::Values("destroys", "tears_down", "works_on"));

using LeavesByMistake = Leaves;

TEST_P(LeavesByMistake, WhatItsCallerMade) {
  const Audit audit = Sweep("wrong", {"--depth", "1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  ASSERT_EQ(audit.report["defects"].size(), 1U) << audit.report["defects"].dump(1);
  EXPECT_EQ(audit.findings(), "deficit context_stack_entry 1");
  EXPECT_EQ(audit.report["findings"][0]["where"], "cuCtxPopCurrent");
}

TEST_P(LeavesByMistake, AndNothingOnceRepaired) {
  const Audit audit = Sweep("right", {});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, LeavesByMistake, ::testing::Values("failed_push", "own_pop", "twice"));

}  // namespace
}  // namespace cuaudit::e2e::deficit_test
