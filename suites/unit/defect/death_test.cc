// SPDX-License-Identifier: MIT
// A run without a fault that dies, and what it died of; by what a defect is known again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/defect/defects.h"

namespace cuaudit::harness::death_test {
namespace {

using report::Frame;
using report::Rule;
using ::testing::SizeIs;

TEST(Defects, WithoutAFaultADeathIsOneWithWhatItsFunctionDidWrong) {
  for (const Rule death : {Rule::Crash, Rule::Abort, Rule::Hang}) {
    report::Run run;
    const auto shown = [&run](Rule rule, const char* kind, const char* function, std::uint64_t at) {
      report::Finding finding = {.rule = rule, .kind = kind, .where = "cuStreamDestroy"};
      const std::vector<Frame> stack = {Frame{"prog", function, "prog.c", static_cast<int>(at), at}};
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

report::Finding Leak() {
  report::Finding finding;
  finding.rule = Rule::Leak;
  finding.kind = "stream";
  finding.acquired = {"cuStreamCreate", {Frame{"prog", "open", "a.c", 10, 0x100}, Frame{"prog", "main", "a.c", 20, 0x200}}};
  finding.fault = report::Fault{"cuEventCreate", 1, "refuse", "OUT_OF_MEMORY", "cuEventCreate#1=OUT_OF_MEMORY,refuse", {}};
  return finding;
}

std::optional<report::Blame> BlamedAt(const char* function, int line = 1) {
  return report::Blame{Frame{"prog", function, "a.c", line, static_cast<std::uint64_t>(line)}, report::BlamedBecause::HeldIt};
}

TEST(DefectFingerprint, SurvivesMovedLinesOtherFaultsAndOtherCounts) {
  const std::string before = DefectFingerprint(Leak(), BlamedAt("open"));
  report::Finding moved = Leak();
  moved.acquired.stack[0].line = 99;
  moved.acquired.stack[0].offset = 0x999;
  moved.acquired.stack[1].function = "run";
  moved.fault->text = "cuEventCreate#7=OUT_OF_MEMORY,refuse";
  moved.fault->call = "cuMemAlloc";
  moved.count = 5;
  moved.trials = 9;
  EXPECT_EQ(DefectFingerprint(moved, BlamedAt("open", 55)), before);
  moved.rule = Rule::Orphaned;
  EXPECT_EQ(DefectFingerprint(moved, BlamedAt("open")), before) << "the same loss";
}

TEST(DefectFingerprint, TellsDefectsApart) {
  const std::string one = DefectFingerprint(Leak(), BlamedAt("open"));
  EXPECT_NE(DefectFingerprint(Leak(), BlamedAt("main")), one);
  for (int change = 0; change < 4; ++change) {
    report::Finding other = Leak();
    if (change == 0) other.kind = "event";
    if (change == 1) other.rule = Rule::DoubleRelease;
    if (change == 2) other.acquired.stack[0].function = "reopen";
    if (change == 3) other.acquired.call = "cuStreamCreateWithPriority";
    EXPECT_NE(DefectFingerprint(other, BlamedAt("open")), one) << change;
  }
}

TEST(DefectFingerprint, AFunctionIsItsNameWithoutWhatACompilerAdds) {
  EXPECT_EQ(PlainName("open"), "open");
  EXPECT_EQ(PlainName("open.part.0"), "open");
  EXPECT_EQ(PlainName("open.constprop.1.isra.0"), "open");
  EXPECT_EQ(PlainName("pool::Open(int, char const*)"), "pool::Open");
  EXPECT_EQ(PlainName("(anonymous namespace)::Open(int)"), "(anonymous namespace)::Open");
  EXPECT_EQ(PlainName("pool::(anonymous namespace)::Open()"), "pool::(anonymous namespace)::Open");
  EXPECT_EQ(PlainName("Call::operator()(int) const"), "Call::operator()");
  EXPECT_EQ(PlainName("Pool<void (*)(int)>::Open(int)"), "Pool<void (*)(int)>::Open");
  EXPECT_EQ(PlainName(""), "");
}

TEST(DefectFingerprint, AWayEndsAtTheBlamedFunction) {
  report::Acquired place = Leak().acquired;
  const std::uint64_t way = WayKey(place, BlamedAt("open"));
  place.stack[1].line = 21;
  EXPECT_EQ(WayKey(place, BlamedAt("open")), way) << "open was called from another line";
  EXPECT_NE(WayKey(place, BlamedAt("main")), WayKey(Leak().acquired, BlamedAt("main")));
  place.stack[0].line = 11;
  EXPECT_NE(WayKey(place, BlamedAt("open")), way);
}

}  // namespace
}  // namespace cuaudit::harness::death_test
