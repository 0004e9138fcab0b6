// SPDX-License-Identifier: MIT
#include "harness/sweep/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::outcome_test {
namespace {

TrialResult Fired() {
  TrialResult trial;
  trial.faults = {"cuInit#1=INVALID_VALUE,refuse"};
  trial.fired = true;
  return trial;
}

TrialResult MissedBy(Missed missed) {
  TrialResult trial = Fired();
  trial.fired = false;
  trial.missed = missed;
  return trial;
}

report::Run Outcome(const std::vector<TrialResult>& trials, std::size_t possible, bool findings = false) {
  report::Run run;
  if (findings) run.findings.emplace_back();
  SetOutcome(trials, possible, "/tmp/w", &run);
  return run;
}

TEST(Outcome, IsCleanOnlyWhenEveryPlannedFaultFired) {
  EXPECT_EQ(Outcome({Fired(), Fired()}, 2).outcome, "clean");
  EXPECT_EQ(Outcome({Fired(), Fired()}, 2).message, "");
  const report::Run run = Outcome({Fired(), MissedBy(Missed::Elsewhere), MissedBy(Missed::Overflow), MissedBy(Missed::NoSpace)}, 4);
  EXPECT_EQ(run.outcome, "not_exercised");
  EXPECT_EQ(run.message,
            "not exercised: 3 of 4 planned faults never fired: 1 hit another site in every attempt, 1 journal overflow, give it more with "
            "--records, 1 no space left for the journal in /tmp/w");
}

TEST(Outcome, FindingsWinAndStillSayWhatNeverFired) {
  const report::Run run = Outcome({Fired(), MissedBy(Missed::Unfired)}, 2, true);
  EXPECT_EQ(run.outcome, "findings");
  EXPECT_EQ(run.message, "1 of 2 planned faults never fired: 1 not called again");
}

TEST(Outcome, SaysHowMuchOfThePlanTheUserChose) {
  EXPECT_EQ(Outcome({Fired()}, 44).outcome, "clean");
  EXPECT_EQ(Outcome({Fired()}, 44).message, "clean for 1 of 44 planned faults");
  EXPECT_EQ(Outcome({}, 44).outcome, "not_exercised");
}

TEST(Outcome, NamesTheFaultsOfAReplayThatNeverFired) {
  TrialResult trial = MissedBy(Missed::Unfired);
  trial.faults.emplace_back("cuMemAlloc#9=OUT_OF_MEMORY,refuse");
  trial.unfired = {trial.faults[1]};
  const report::Run run = Outcome({trial}, 1);
  EXPECT_EQ(run.outcome, "not_exercised");
  EXPECT_EQ(run.message, "not exercised: 1 of 2 faults never fired: cuMemAlloc#9=OUT_OF_MEMORY,refuse");
}

TEST(Outcome, SaysWhenTheDeadlineCameFirst) {
  TrialResult trial = MissedBy(Missed::Late);
  EXPECT_EQ(Outcome({trial}, 1).message, "not exercised: no fault fired, the program did not reach those calls within the deadline");
  EXPECT_EQ(Outcome({Fired(), trial}, 2).message,
            "not exercised: 1 of 2 planned faults never fired: 1 not reached within the deadline (--deadline-ms)");
  trial.faults.emplace_back("cuMemAlloc#9=OUT_OF_MEMORY,refuse");
  trial.unfired = {trial.faults[1]};
  EXPECT_EQ(Outcome({trial}, 1).message,
            "not exercised: 1 of 2 faults never fired: cuMemAlloc#9=OUT_OF_MEMORY,refuse, not reached within the deadline (--deadline-ms)");
}

TEST(Outcome, CleanSaysWhatOfTheHostNobodyJudged) {
  report::Run run = Outcome({Fired()}, 1);
  SayHostNotes(&run);
  EXPECT_EQ(run.message, "");
  run.notes.resize(4);
  for (const std::size_t i : {0U, 1U, 2U}) run.notes[i].rule = "host_left";
  run.notes[3].rule = "host_misused";
  SayHostNotes(&run);
  EXPECT_EQ(run.message, "clean; 3 host places left, 1 misused, judged with --host");
  run.message = "clean for 1 of 44 planned faults";
  run.notes.erase(run.notes.begin(), run.notes.begin() + 3);
  SayHostNotes(&run);
  EXPECT_EQ(run.message, "clean for 1 of 44 planned faults; 1 host place misused, judged with --host");
  run.outcome = "findings";
  run.message.clear();
  SayHostNotes(&run);
  EXPECT_EQ(run.message, "");
}

TEST(Outcome, DoesNotCountAttemptsThatWereRepeated) {
  TrialResult stray = MissedBy(Missed::Elsewhere);
  stray.stray = true;
  EXPECT_EQ(Outcome({stray, Fired()}, 1).outcome, "clean");
}

}  // namespace
}  // namespace cuaudit::harness::outcome_test
