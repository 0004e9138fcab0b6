// SPDX-License-Identifier: MIT
// A run without a fault that dies, and what it died of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "harness/defect/defects.h"

namespace cuaudit::harness::death_test {
namespace {

using report::Rule;
using ::testing::SizeIs;

TEST(Defects, WithoutAFaultADeathIsOneWithWhatItsFunctionDidWrong) {
  for (const Rule death : {Rule::Crash, Rule::Abort, Rule::Hang}) {
    report::Run run;
    const auto shown = [&run](Rule rule, const char* kind, const char* function, std::uint64_t at) {
      report::Finding finding = {.rule = rule, .kind = kind, .where = "cuStreamDestroy"};
      const std::vector<report::Frame> stack = {report::Frame{"prog", function, "prog.c", static_cast<int>(at), at}};
      // What is left shows where it was acquired.
      (rule == Rule::LeftAtExit || rule == Rule::Growth ? finding.acquired.stack : finding.where_stack) = stack;
      run.findings.push_back(finding);
    };
    shown(death, "", "close", 1);
    shown(Rule::DoubleRelease, "stream", "close", 2);
    shown(Rule::DoubleRelease, "event", "work", 3);
    FindDefects(&run);
    ASSERT_THAT(run.defects, SizeIs(2)) << Name(death);
    EXPECT_THAT(run.defects[0].members, SizeIs(2));
    EXPECT_EQ(run.findings[run.defects[0].members[0].findings.front()].rule, Rule::DoubleRelease) << "what it died of";
    for (const Rule other : {Rule::LeftAtExit, Rule::Growth, Rule::ContextStack, Rule::SettingNotRestored}) {
      const std::size_t before = run.defects.size();
      shown(other, "stream", "close", 4);
      FindDefects(&run);
      EXPECT_THAT(run.defects, SizeIs(before + 1)) << Name(death) << " is not of " << Name(other);
    }
  }
}

}  // namespace
}  // namespace cuaudit::harness::death_test
