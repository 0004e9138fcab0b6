// SPDX-License-Identifier: MIT
// listener_test.cc: somebody else's test program, each of whose tests fails when it leaves something behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "suites/lifecycle/subject.h"

namespace cuaudit::testing::listener_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int Times(const std::string& text, const std::string& what) {
  int times = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

TEST(NeutralityListener, ATestThatLeavesNothingPasses) {
  const Ended ended = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=Leaves.Nothing");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("neutrality: 1 tests checked, 0 made no driver call"));
}

TEST(NeutralityListener, ATestThatLeavesAStreamFails) {
  const Ended ended = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=Leaves.AStream");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("Leaves.AStream: 1 defect"), HasSubstr("leak: 1 stream"), HasSubstr("listener_subject.cc:"),
                                  HasSubstr("--gtest_filter=Leaves.AStream"), HasSubstr("driver   simulated\n")));
}

TEST(NeutralityListener, MisuseIsFoundToo) {
  const Ended ended = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=Leaves.NothingButReleasesTwice");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("double_release: 1 event"));
}

TEST(NeutralityListener, WhatTheSuiteLeavesIsNoTestsFault) {
  const Ended ended = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=SuiteLeaves.*");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("[       OK ] SuiteLeaves.NothingInItsTest"), HasSubstr("SuiteLeaves: 1 defect")));
}

// Tests that have more driver calls together than there is room for.
TEST(NeutralityListener, EachTestHasAllTheRoom) {
  const Ended ended = RunSubject(CUAUDIT_NARROW_LISTENER_SUBJECT, "--gtest_filter=Room.* --gtest_repeat=3");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_EQ(Times(ended.output, "Room.IsFilledAndAStreamLeft: 1 defect"), 3);
  EXPECT_EQ(Times(ended.output, "[       OK ] Room.IsFilledAgain"), 3);
  EXPECT_EQ(Times(ended.output, "neutrality: 3 tests checked, 0 made no driver call\n"), 3) << ended.output;
}

TEST(NeutralityListener, ATestThatOverrunsFailsAndTheNextIsCheckedAsEver) {
  const Ended ended = RunSubject(CUAUDIT_NARROW_LISTENER_SUBJECT, "--gtest_filter=Overrun.*");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(
      ended.output,
      AllOf(HasSubstr("Overrun.OfTooManyCalls: it made more records of driver calls than there is room for (4000): 1000 were dropped"),
            HasSubstr("[  FAILED  ] Overrun.OfTooManyCalls"), HasSubstr("[       OK ] Overrun.ThenNothingIsLeft"),
            HasSubstr("Overrun.ThenAStreamIsLeft: 1 defect"),
            HasSubstr("neutrality: 2 tests checked, 0 made no driver call, 1 made too many records")));
  // With more room it is no failure.
  EXPECT_EQ(RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=Overrun.OfTooManyCalls").status, 0);
}

// What bears upon the objects of a suite is kept when the room of a test is used again.
TEST(NeutralityListener, ASuitesObjectsAreFollowedThroughItsTests) {
  const Ended ended = RunSubject(CUAUDIT_NARROW_LISTENER_SUBJECT, "--gtest_filter=SuitesEvent.*");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("neutrality: 3 tests checked, 0 made no driver call\n"));
  const Ended kept = RunSubject(CUAUDIT_NARROW_LISTENER_SUBJECT, "--gtest_filter=SuitesEvent.IsUsed");
  EXPECT_EQ(kept.status, 1) << kept.output;
  EXPECT_THAT(kept.output, AllOf(HasSubstr("SuitesEvent: 1 defect"), HasSubstr("orphaned: 1 event")));
}

// Where no single call of a test ends an object of its suite, all calls of that test are kept, which takes room.
TEST(NeutralityListener, WhatCannotBeKeptForASuiteIsSaid) {
  const Ended enough = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=SuitesReferences.*");
  EXPECT_EQ(enough.status, 0) << enough.output;
  EXPECT_THAT(enough.output, HasSubstr("neutrality: 3 tests checked, 0 made no driver call\n"));
  const Ended narrow = RunSubject(CUAUDIT_NARROW_LISTENER_SUBJECT, "--gtest_filter=SuitesReferences.*");
  EXPECT_EQ(narrow.status, 1) << narrow.output;
  EXPECT_THAT(narrow.output,
              AllOf(HasSubstr("[       OK ] SuitesReferences.AreTwo"),
                    HasSubstr("SuitesReferences: SuitesReferences.AreTwo made more records of driver calls than there is room "
                              "for (4000): what is left outside of it cannot be told")));
}

TEST(NeutralityListener, AReleaseTooManyIsToldOfWhoeverMakesIt) {
  const Ended suite = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=SuiteReleasesAgain.*");
  EXPECT_EQ(suite.status, 1) << suite.output;
  EXPECT_THAT(suite.output, AllOf(HasSubstr("[       OK ] SuiteReleasesAgain.WhatItsTestReleased"),
                                  HasSubstr("SuiteReleasesAgain: 1 defect"), HasSubstr("double_release: 1 event")));
  const Ended test = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=SuitesEventTwice.*");
  EXPECT_EQ(test.status, 1) << test.output;
  EXPECT_THAT(test.output,
              AllOf(HasSubstr("[       OK ] SuitesEventTwice.IsReleasedByOneTest"), HasSubstr("SuitesEventTwice.AndByTheNext: 1 defect"),
                    HasSubstr("double_release: 1 event"), Not(HasSubstr("SuitesEventTwice: "))));
}

TEST(NeutralityListener, MisuseOfATestIsNotToldOfItsSuiteAgain) {
  const Ended ended = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=MisuseBesideReferences.*");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("MisuseBesideReferences.OfItsOwnEvent: 1 defect"), Not(HasSubstr("MisuseBesideReferences: "))));
  EXPECT_EQ(Times(ended.output, "double_release: 1 event"), 1) << ended.output;
}

TEST(NeutralityListener, ASkippedTestIsNoPassForWhatItLeaves) {
  const Ended ended = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=Skipped.*");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("Skipped.ButLeavesAStream: 1 defect"));
}

TEST(NeutralityListener, NothingCheckedIsNoPass) {
  const Ended ended = RunSubject(CUAUDIT_IDLE_LISTENER_SUBJECT, "");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("neutrality: 0 tests checked, 2 made no driver call\n"), HasSubstr("not checked: Idle.One, Idle.Two\n"),
                    HasSubstr("neutrality of no test was checked: no test called the driver")));
  const Ended allowed = RunSubject(CUAUDIT_ALLOWED_IDLE_LISTENER_SUBJECT, "");
  EXPECT_EQ(allowed.status, 0) << allowed.output;
  EXPECT_THAT(allowed.output, HasSubstr("[ cuaudit  ] nothing was checked: no test called the driver\n"));
}

// A shard, or a test that gtest_discover_tests runs alone, may be one that needs no driver.
TEST(NeutralityListener, APartWithoutDriverCallsPassesAndSaysSo) {
  const Ended filter = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=WithoutDriver.CallsNothing");
  EXPECT_EQ(filter.status, 0) << filter.output;
  EXPECT_THAT(filter.output, AllOf(HasSubstr("neutrality: 0 tests checked, 1 made no driver call\n"),
                                   HasSubstr("nothing was checked: no test called the driver (of this filter or shard)\n")));
  const Ended shard = RunLine("CUAUDIT_OPTIONS=driver=sim GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=1 '" CUAUDIT_IDLE_LISTENER_SUBJECT "'");
  EXPECT_EQ(shard.status, 0) << shard.output;
  EXPECT_THAT(shard.output, HasSubstr("nothing was checked: no test called the driver (of this filter or shard)\n"));
}

TEST(NeutralityListener, WhereNothingRanNothingFails) {
  const Ended empty = RunLine("CUAUDIT_OPTIONS=driver=sim GTEST_TOTAL_SHARDS=9 GTEST_SHARD_INDEX=8 '" CUAUDIT_IDLE_LISTENER_SUBJECT "'");
  EXPECT_EQ(empty.status, 0) << empty.output;
  EXPECT_THAT(empty.output, HasSubstr("nothing was checked: no test ran (of this filter or shard)\n"));
  const Ended skipped = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=WithoutDriver.IsSkipped");
  EXPECT_EQ(skipped.status, 0) << skipped.output;
  EXPECT_THAT(skipped.output, AllOf(HasSubstr("neutrality: 0 tests checked, 0 made no driver call, 1 skipped\n"),
                                    HasSubstr("nothing was checked: each test was skipped")));
  const Ended whole = RunLine("CUAUDIT_OPTIONS=driver=sim SKIP_ALL=1 '" CUAUDIT_IDLE_LISTENER_SUBJECT "'");
  EXPECT_EQ(whole.status, 0) << whole.output;
  EXPECT_THAT(whole.output, HasSubstr("nothing was checked: each test was skipped\n"));
}

// It cannot know of any program that it is idle, so nothing excuses it.
TEST(NeutralityListener, WithoutTheDropInNoPartPasses) {
  for (const char* const part : {"", "--gtest_filter=Idle.One"}) {
    const Ended ended = RunSubject(CUAUDIT_BLIND_LISTENER_SUBJECT, part);
    EXPECT_EQ(ended.status, 1) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("neutrality of no test was checked: cuaudit's drop-in library is not in this process"));
  }
}

TEST(NeutralityListener, GoogleTestsReportSaysWhatWasChecked) {
  const std::string report = ::testing::TempDir() + "neutrality_listener.json";
  const Ended ended =
      RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=Leaves.Nothing:WithoutDriver.CallsNothing --gtest_output=json:" + report);
  EXPECT_EQ(ended.status, 0) << ended.output;
  std::ifstream file(report);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, AllOf(HasSubstr("\"cuaudit_neutrality\": \"checked\""), HasSubstr("\"cuaudit_neutrality\": \"no driver call\"")));
}

TEST(NeutralityListener, ACacheFailsOnlyWithoutWarmUp) {
  const Ended cold = RunSubject(CUAUDIT_LISTENER_SUBJECT, "--gtest_filter=Keeps.AContextTheFirstTime --gtest_repeat=2");
  EXPECT_EQ(cold.status, 1) << cold.output;
  const Ended warm = RunSubject(CUAUDIT_WARM_LISTENER_SUBJECT, "--gtest_filter=Keeps.AContextTheFirstTime --gtest_repeat=2");
  EXPECT_EQ(warm.status, 0) << warm.output;
  const Ended leak = RunSubject(CUAUDIT_WARM_LISTENER_SUBJECT, "--gtest_filter=Leaves.AStream --gtest_repeat=2");
  EXPECT_EQ(leak.status, 1) << leak.output;
}

TEST(NeutralityListener, ToleratedKindsPass) {
  const Ended ended = RunSubject(CUAUDIT_WARM_LISTENER_SUBJECT, "--gtest_filter=SuiteLeaves.* --gtest_repeat=2");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, Not(HasSubstr("finding")));
}

}  // namespace
}  // namespace cuaudit::testing::listener_test
