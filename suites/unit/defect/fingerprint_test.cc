// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "harness/defect/defect_fingerprint.h"

namespace cuaudit::harness::defect_fingerprint_test {
namespace {

using report::Frame;

report::Finding Leak() {
  report::Finding finding;
  finding.rule = report::Rule::Leak;
  finding.kind = "stream";
  finding.acquired = {"cuStreamCreate", {Frame{"prog", "open", "a.c", 10, 0x100}, Frame{"prog", "main", "a.c", 20, 0x200}}};
  finding.fault = report::Fault{"cuEventCreate", 1, "refuse", "OUT_OF_MEMORY", "cuEventCreate#1=OUT_OF_MEMORY,refuse", {}};
  return finding;
}

std::optional<report::Blame> By(const char* function, int line = 1) {
  return report::Blame{Frame{"prog", function, "a.c", line, static_cast<std::uint64_t>(line)}, report::BlamedBecause::HeldIt};
}

TEST(DefectFingerprint, SurvivesMovedLinesOtherFaultsAndOtherCounts) {
  const std::string before = DefectFingerprint(Leak(), By("open"));
  report::Finding moved = Leak();
  moved.acquired.stack[0].line = 99;
  moved.acquired.stack[0].offset = 0x999;
  moved.acquired.stack[1].function = "run";
  moved.fault->text = "cuEventCreate#7=OUT_OF_MEMORY,refuse";
  moved.fault->call = "cuMemAlloc";
  moved.count = 5;
  moved.trials = 9;
  EXPECT_EQ(DefectFingerprint(moved, By("open", 55)), before);
  moved.rule = report::Rule::Orphaned;
  EXPECT_EQ(DefectFingerprint(moved, By("open")), before) << "the same loss";
}

TEST(DefectFingerprint, TellsDefectsApart) {
  const std::string one = DefectFingerprint(Leak(), By("open"));
  EXPECT_NE(DefectFingerprint(Leak(), By("main")), one);
  report::Finding other = Leak();
  other.kind = "event";
  EXPECT_NE(DefectFingerprint(other, By("open")), one);
  other = Leak();
  other.rule = report::Rule::DoubleRelease;
  EXPECT_NE(DefectFingerprint(other, By("open")), one);
  other = Leak();
  other.acquired.stack[0].function = "reopen";
  EXPECT_NE(DefectFingerprint(other, By("open")), one);
  other = Leak();
  other.acquired.call = "cuStreamCreateWithPriority";
  EXPECT_NE(DefectFingerprint(other, By("open")), one);
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
  const std::uint64_t way = WayKey(place, By("open"));
  place.stack[1].line = 21;
  EXPECT_EQ(WayKey(place, By("open")), way) << "open was called from another line";
  EXPECT_NE(WayKey(place, By("main")), WayKey(Leak().acquired, By("main")));
  place.stack[0].line = 11;
  EXPECT_NE(WayKey(place, By("open")), way);
}

}  // namespace
}  // namespace cuaudit::harness::defect_fingerprint_test
