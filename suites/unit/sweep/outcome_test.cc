// SPDX-License-Identifier: MIT
// What all trials amount to, how much of the plan they covered, and what an earlier sweep did of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "harness/sweep/findings/coverage.h"
#include "harness/sweep/sweep_engine.h"
#include "reports/message.h"
#include "suites/support/temporary_dir.h"
#include "suites/unit/sweep/scripted_runner.h"

namespace cuaudit::harness::outcome_test {
namespace {

using sweep_tests::Scripted;
using words::Outcome;

TrialResult Fired() { return {.faults = {"cuInit#1=INVALID_VALUE,refuse"}, .fired = true}; }

TrialResult MissedBy(Missed missed) {
  TrialResult trial = Fired();
  trial.fired = false;
  trial.missed = missed;
  return trial;
}

std::vector<const TrialResult*> Pointers(const std::vector<TrialResult>& trials) {
  std::vector<const TrialResult*> pointers;
  for (const TrialResult& trial : trials) pointers.push_back(&trial);
  return pointers;
}

report::Run RunOf(const std::vector<TrialResult>& trials, std::size_t possible, bool findings = false) {
  report::Run run = {.mode = report::Mode::Sweep};
  if (findings) run.findings.emplace_back();
  SetOutcome(Pointers(trials), possible, "/tmp/w", &run);
  return run;
}

std::string Line(const std::vector<TrialResult>& trials, std::size_t possible) { return MessageLine(RunOf(trials, possible)); }

TEST(Outcome, IsCleanOnlyWhenEveryPlannedFaultFired) {
  EXPECT_EQ(RunOf({Fired(), Fired()}, 2).outcome, Outcome::Clean);
  EXPECT_EQ(Line({Fired(), Fired()}, 2), "");
  const report::Run run = RunOf({Fired(), MissedBy(Missed::Elsewhere), MissedBy(Missed::Overflow), MissedBy(Missed::NoSpace)}, 4);
  EXPECT_EQ(run.outcome, Outcome::NotExercised);
  EXPECT_EQ(MessageLine(run),
            "not exercised: 3 of 4 planned faults never fired: 1 hit another site in every attempt, 1 journal overflow, give it more with "
            "--records, 1 no space left for the journal in /tmp/w");
}

TEST(Outcome, FindingsWinAndStillSayWhatNeverFired) {
  const report::Run run = RunOf({Fired(), MissedBy(Missed::Unfired)}, 2, true);
  EXPECT_EQ(run.outcome, Outcome::Findings);
  EXPECT_EQ(MessageLine(run), "1 of 2 planned faults never fired: 1 not called again");
}

TEST(Outcome, SaysHowMuchOfThePlanTheUserChose) {
  EXPECT_EQ(RunOf({Fired()}, 44).outcome, Outcome::Clean);
  EXPECT_EQ(Line({Fired()}, 44), "clean for 1 of 44 planned faults");
  EXPECT_EQ(RunOf({}, 44).outcome, Outcome::NotExercised);
  EXPECT_EQ(Line({}, 44), "not exercised: --call or --limit left no fault to try");
  EXPECT_EQ(Line({}, 0), "not exercised: no call of the program can be made to fail");
  report::Run run = RunOf({Fired()}, 44);
  run.totals.pruned = {{{Reason::FirstSameState}, 40}, {{Reason::SecondAsFirst}, 3}};
  EXPECT_EQ(MessageLine(run), "clean for 1 of 44 planned faults, 43 pruned as equal (--no-prune tries them)");
}

TEST(Outcome, NamesTheFaultsOfAReplayThatNeverFired) {
  TrialResult trial = MissedBy(Missed::Unfired);
  trial.faults.emplace_back("cuMemAlloc#9=OUT_OF_MEMORY,refuse");
  trial.unfired = {1};
  EXPECT_EQ(RunOf({trial}, 1).outcome, Outcome::NotExercised);
  EXPECT_EQ(Line({trial}, 1), "not exercised: 1 of 2 faults never fired: cuMemAlloc#9=OUT_OF_MEMORY,refuse");
}

TEST(Outcome, SaysWhenNoFaultFired) {
  TrialResult trial = MissedBy(Missed::Unfired);
  trial.unfired = {0};
  EXPECT_EQ(Line({trial}, 1), "not exercised: no fault fired, the program did not make those calls again");
}

TEST(Outcome, SaysWhenTheDeadlineCameFirst) {
  TrialResult trial = MissedBy(Missed::Late);
  EXPECT_EQ(Line({trial}, 1), "not exercised: no fault fired, the program did not reach those calls within the deadline");
  EXPECT_EQ(Line({Fired(), trial}, 2),
            "not exercised: 1 of 2 planned faults never fired: 1 not reached within the deadline (--deadline-ms)");
  trial.faults.emplace_back("cuMemAlloc#9=OUT_OF_MEMORY,refuse");
  trial.unfired = {1};
  EXPECT_EQ(Line({trial}, 1),
            "not exercised: 1 of 2 faults never fired: cuMemAlloc#9=OUT_OF_MEMORY,refuse, not reached within the deadline (--deadline-ms)");
}

TEST(Outcome, TooLittleCoverageIsNotExercisedUnlessThereAreFindings) {
  const auto covered = [](report::Run run) {
    run.coverage = report::Coverage();
    run.coverage->reachable = 8;
    run.coverage->reached = 7;
    return run;
  };
  const std::string short_of = "fault coverage is 87.5 %, wanted at least 90.0 % (--coverage-at-least)";
  report::Run run = covered(RunOf({Fired()}, 44));
  RequireCoverage(875, &run);
  EXPECT_EQ(run.outcome, Outcome::Clean);
  RequireCoverage(900, &run);
  EXPECT_EQ(run.outcome, Outcome::NotExercised);
  EXPECT_EQ(MessageLine(run), "not exercised: " + short_of);
  run = covered(RunOf({Fired(), MissedBy(Missed::Elsewhere)}, 2));
  RequireCoverage(900, &run);
  EXPECT_EQ(MessageLine(run), "not exercised: 1 of 2 planned faults never fired: 1 hit another site in every attempt; " + short_of);
  run = covered(RunOf({Fired()}, 1, true));
  RequireCoverage(900, &run);
  EXPECT_EQ(run.outcome, Outcome::Findings);
  EXPECT_EQ(MessageLine(run), short_of);
}

TEST(Outcome, CleanSaysWhatOfTheHostNobodyJudged) {
  report::Run run = RunOf({Fired()}, 1);
  run.notes.resize(4);
  for (const std::size_t i : {0U, 1U, 2U}) run.notes[i].rule = Rule::HostLeft;
  run.notes[3].rule = Rule::HostMisused;
  EXPECT_EQ(MessageLine(run), "clean; 3 host places left, 1 misused, judged with --host");
  run.message.chosen = {1, 44};
  run.notes.erase(run.notes.begin(), run.notes.begin() + 3);
  EXPECT_EQ(MessageLine(run), "clean for 1 of 44 planned faults; 1 host place misused, judged with --host");
  run.outcome = Outcome::Findings;
  EXPECT_EQ(MessageLine(run), "");
}

TEST(Outcome, AnInterruptedSweepSaysHowMuchOfThePlanSoFarIsDone) {
  report::Run run = {.mode = report::Mode::Sweep, .outcome = Outcome::Interrupted, .interrupted = report::Interrupted{"SIGINT", 12, 58}};
  EXPECT_EQ(MessageLine(run), "interrupted, 12 of 58 trials (SIGINT)");
  run.interrupted->more = true;
  EXPECT_EQ(MessageLine(run), "interrupted, 12 of 58 trials planned so far (SIGINT)");
  run.interrupted = {"SIGTERM", 0, 0};
  EXPECT_EQ(MessageLine(run), "interrupted in the fault-free runs (SIGTERM)");
  run.mode = report::Mode::Cycles;
  run.interrupted = {"SIGTERM", 1, 2};
  EXPECT_EQ(MessageLine(run), "interrupted, 1 of 2 runs (SIGTERM)");
}

TEST(Outcome, DoesNotCountAttemptsThatWereRepeated) {
  TrialResult stray = MissedBy(Missed::Elsewhere);
  stray.stray = true;
  EXPECT_EQ(RunOf({stray, Fired()}, 1).outcome, Outcome::Clean);
}

using faults::Phase;

constexpr const char* kFault = "cuMemAlloc#1=OUT_OF_MEMORY,refuse";
constexpr std::uint64_t kSite = 7;

// Every trial with an even number fired.
report::Coverage Counted(const CoverageTable& table) {
  std::map<std::size_t, TrialResult> results;
  for (std::size_t trial = 0; trial < 8; ++trial) {
    results[trial].fired = trial % 2 == 0;
    if (!results[trial].fired) results[trial].missed = Missed::Elsewhere;
  }
  return table.Result(results, [](std::uint64_t site) {
    return report::Acquired{"cuMemAlloc", {{"prog", "f", "a.c", static_cast<int>(site), 0}}};
  });
}

TEST(Coverage, WhatASignalKeptFromBeingTriedWasNotReached) {
  CoverageTable table;
  table.Plan({kFault, kSite, Phase::Init, false}, 100);
  const report::Coverage coverage = Counted(table);
  EXPECT_EQ(coverage.reached, 0U);
  EXPECT_EQ(coverage.codes_tried, 0U);
  EXPECT_GT(coverage.codes_documented, 0U);
  ASSERT_EQ(coverage.not_reached.size(), 1U);
  EXPECT_EQ(coverage.not_reached[0].why, Reason::Interrupted);
}

TEST(Coverage, PlacesErrorsWaysAndPhasesAreRowsOfTheirOwn) {
  const WayToFail ways[] = {{kFault, kSite, Phase::Init, false},
                            {kFault, kSite + 1, Phase::Init, false},
                            {"cuMemAlloc#1=INVALID_VALUE,refuse", kSite, Phase::Init, false},
                            {"cuMemAlloc#1=OUT_OF_MEMORY,after", kSite, Phase::Init, false},
                            {kFault, kSite, Phase::Work, false},
                            {kFault, kSite, Phase::Init, true}};
  CoverageTable table;
  for (const WayToFail& way : ways) table.Plan(way, 0);
  const report::Coverage coverage = Counted(table);
  EXPECT_EQ(coverage.reachable, 6U);
  EXPECT_EQ(coverage.reached, 6U);
  EXPECT_EQ(coverage.codes_tried, 2U);
  EXPECT_GE(coverage.codes_documented, coverage.codes_tried);
}

TEST(Coverage, TheErrorOfALostContextIsAWayToFailButNotADocumentedError) {
  CoverageTable table;
  table.Plan({"cuMemAlloc#1=ILLEGAL_ADDRESS,sticky", kSite, Phase::Init, false}, 0);
  const report::Coverage coverage = Counted(table);
  EXPECT_EQ(coverage.reached, 1U);
  EXPECT_EQ(coverage.codes_tried, 0U);
}

// What a comparison knows of the calls that were made to fail.
TEST(Coverage, WaysThatFiredAreCountedByFunctionAndPlace) {
  CoverageTable table;
  table.Plan({kFault, kSite, Phase::Init, false}, 0);
  table.Plan({kFault, kSite + 1, Phase::Init, false}, 2);
  table.Plan({kFault, kSite + 1, Phase::Work, false}, 2);
  table.Plan({kFault, kSite + 2, Phase::Init, false}, 1);
  table.Plan({kFault, kSite, Phase::Init, true}, 4);
  const report::Coverage coverage = Counted(table);
  ASSERT_EQ(coverage.tried.size(), 2U);
  EXPECT_EQ(coverage.tried[0].call, "cuMemAlloc");
  EXPECT_EQ(coverage.tried[0].code, "OUT_OF_MEMORY");
  EXPECT_EQ(coverage.tried[0].how, "refuse");
  EXPECT_EQ(coverage.tried[0].function, "f");
  EXPECT_EQ(coverage.tried[0].places, 2U) << "a place in two phases is one, and what did not fire is none";
  EXPECT_TRUE(coverage.tried[1].unwinding);
  EXPECT_EQ(coverage.tried[1].function, "") << "most stacks of those calls are not known";
}

TEST(Coverage, ARowIsReachedWhenOneOfItsTrialsFired) {
  CoverageTable table;
  table.Plan({"cuMemAlloc#2=OUT_OF_MEMORY,refuse", kSite, Phase::Init, false}, 1);
  table.Plan({"cuMemAlloc#3=OUT_OF_MEMORY,refuse", kSite, Phase::Init, false}, 2);
  EXPECT_EQ(Counted(table).reachable, 1U) << "one place, whichever turn";
  EXPECT_EQ(Counted(table).reached, 1U);
}

TEST(Coverage, WhatWasNotReachedSaysWhereAndWhy) {
  CoverageTable table;
  table.Plan({kFault, kSite, Phase::Teardown, true}, 1);
  table.LeaveOut({kFault, kSite + 1, Phase::Work, false}, Reason::BeyondLimit);
  table.LeaveOut({kFault, kSite + 2, Phase::Work, false}, Reason::BeyondLimit);
  table.Plan({kFault, kSite + 2, Phase::Work, false}, 2);
  const report::Coverage coverage = Counted(table);
  EXPECT_EQ(coverage.reached, 1U) << "left out once, tried after all";
  ASSERT_EQ(coverage.not_reached.size(), 2U);
  EXPECT_EQ(coverage.not_reached[0].missed, Missed::Elsewhere);
  EXPECT_EQ(coverage.not_reached[0].phase, "teardown");
  EXPECT_TRUE(coverage.not_reached[0].unwinding);
  EXPECT_EQ(coverage.not_reached[1].why, Reason::BeyondLimit);
  EXPECT_EQ(coverage.not_reached[1].stack.front().line, static_cast<int>(kSite + 1));
  EXPECT_EQ(report::PerMille(coverage), 333U);
}

TEST(SweepEngine, GoingOnItCountsNoTrialsThatOnlyShrink) {
  const TemporaryDir parent;
  const Result<WorkDir> dir = WorkDir::Open(parent.File("work"));
  ASSERT_TRUE(dir.ok());
  EngineOptions options;
  options.plan.hows = {"burst:4"};
  options.plan.calls = {"cuMemAlloc", "cuStreamSynchronize"};
  for (const bool goes_on : {false, true}) {
    Scripted runner(false);
    Rehearsal rehearsal;
    rehearsal.run = runner.Run({});
    SiteTexts sites;
    SweepEngine engine(&runner, &*dir, options, {"replay", "run", "program"}, &sites);
    ASSERT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
    EXPECT_EQ(engine.Finished(), goes_on);
    while (!engine.Finished()) ASSERT_TRUE(engine.Step().ok());
    ASSERT_NE(engine.first_found(), nullptr);
    EXPECT_EQ(engine.found_before(), goes_on);
    ASSERT_LT(engine.trials(), engine.total());
    EXPECT_EQ(engine.resumed(), goes_on ? engine.trials() : 0U);
  }
}

}  // namespace
}  // namespace cuaudit::harness::outcome_test
