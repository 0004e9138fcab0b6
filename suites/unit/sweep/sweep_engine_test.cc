// SPDX-License-Identifier: MIT
// The engine over a runner that knows a program by heart: rounds, pruning, shrinking, and that the order of finishing does not matter.
#include "harness/sweep/sweep_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "faults/driver/effects.h"
#include "faults/plan/plan.h"
#include "harness/sweep/runners/cycle_runner.h"
#include "reports/writers.h"
#include "suites/support/journal_builder.h"
#include "suites/unit/sweep/scripted_runner.h"

namespace cuaudit::harness::sweep_engine_test {
namespace {

using driver::CallId;
using sweep_tests::Scripted;
using ::testing::ElementsAre;
using ::testing::SizeIs;

report::Run Swept(Scripted* runner, const EngineOptions& options) {
  Rehearsal rehearsal;
  rehearsal.run = runner->Run({});
  SiteTexts sites;
  SweepEngine engine(runner, nullptr, options, {"replay", "run", "program"}, &sites);
  EXPECT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
  while (!engine.Finished()) EXPECT_TRUE(engine.Step().ok());
  report::Run run;
  engine.Report(&run);
  return run;
}

std::string AsJson(const report::Run& run) {
  std::ostringstream text;
  EXPECT_TRUE(report::WriteJson(run, text));
  return text.str();
}

std::uint64_t CountOf(const report::Counted& counts, Reason reason) {
  const auto found = counts.find({reason});
  return found == counts.end() ? 0 : found->second;
}

TEST(SweepEngine, GivesFirstFaultsThenSecondOnes) {
  Scripted runner(false);
  const report::Run run = Swept(&runner, {});
  ASSERT_GE(runner.rounds.size(), 2U);
  EXPECT_EQ(runner.rounds[0], 5U) << "stream, memory, free, synchronize, destroy";
  EXPECT_THAT((std::vector{run.totals.trials, run.totals.fired}), ::testing::Each(runner.rounds[0] + runner.rounds[1]));
  EXPECT_EQ(CountOf(run.totals.pruned, Reason::SecondAsFirst), 3U) << "with another block it goes on as with the first";
  EXPECT_THAT(run.findings, SizeIs(0)) << "both allocations and the synchronization have to fail";
  EXPECT_EQ(run.totals.skipped.count({Reason::TriedAgain}), 0U) << "each trial hit its place at once";
}

TEST(SweepEngine, EndedEarlyItCountsWhatWasLeftOut) {
  Scripted all(false);
  const report::Run whole = Swept(&all, {});
  const std::size_t first = all.rounds[0];
  for (std::size_t trials = 1; trials < whole.totals.trials; ++trials) {
    Scripted runner(false);
    Rehearsal rehearsal;
    rehearsal.run = runner.Run({});
    SiteTexts sites;
    SweepEngine engine(&runner, nullptr, {}, {"replay", "run", "program"}, &sites);
    ASSERT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
    for (std::size_t i = 0; i < trials; ++i) ASSERT_TRUE(engine.Step().ok());
    engine.EndHere();
    EXPECT_TRUE(engine.Finished());
    report::Run run;
    engine.Report(&run);
    EXPECT_EQ(run.totals.trials, trials);
    EXPECT_EQ(run.outcome, words::Outcome::Clean);
    const std::uint64_t left_out = CountOf(run.totals.skipped, Reason::OverBudget);
    ASSERT_TRUE(run.message.chosen.has_value()) << "a report that is cut never says clean alone";
    EXPECT_EQ(run.message.chosen->some, trials);
    EXPECT_GE(run.message.chosen->all, trials + left_out);
    EXPECT_GE(left_out, first - std::min(trials, first));
    EXPECT_TRUE(trials < first || trials + left_out == whole.totals.trials) << trials << " and " << left_out;
    ASSERT_FALSE(run.coverage->not_reached.empty());
    for (const report::NotReached& row : run.coverage->not_reached) EXPECT_EQ(row.why, Reason::OverBudget) << row.call;
  }
}

TEST(SweepEngine, OneTrialOfEachPlaceComesFirstWhenAsked) {
  EngineOptions options;
  options.depth = 1;
  options.plan.all_codes = true;
  Scripted plain(false);
  const report::Run whole = Swept(&plain, options);
  options.places_first = true;
  Scripted runner(false);
  const report::Run run = Swept(&runner, options);
  ASSERT_EQ(plain.rounds.size(), 1U);
  EXPECT_THAT(runner.rounds, ElementsAre(5U, plain.rounds[0] - 5U));
  EXPECT_EQ(AsJson(run), AsJson(whole)) << "the order changes no result";
}

TEST(SweepEngine, WhatAnEarlierSweepDidNotTryComesFirst) {
  EngineOptions options;
  options.places_first = true;
  options.before.emplace();
  for (const auto& [call, places] : {std::pair("cuMemAlloc", 0U), {"cuMemFree", 1U}, {"cuStreamSynchronize", 7U}})
    options.before->Add(call, "", places);
  Scripted runner(false);
  Rehearsal rehearsal;
  rehearsal.run = runner.Run({});
  SiteTexts sites;
  SweepEngine engine(&runner, nullptr, options, {"replay", "run", "program"}, &sites);
  ASSERT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
  for (const std::size_t left : {3U, 2U, 1U, 0U}) {
    EXPECT_EQ(std::pair(engine.NewPlacesUntried(), engine.NewPlacesDone()), std::pair(left, left == 0));
    ASSERT_TRUE(engine.Step().ok());
  }
  EXPECT_THAT(runner.rounds, ElementsAre(2U, 1U, 2U)) << "creation and destruction of the stream; its synchronization; the memory";
}

TEST(SweepEngine, HostFaultsThatAreAskedForArePlannedToo) {
  const auto swept = [](std::size_t limit, std::size_t trials) {
    Scripted runner(false);
    EngineOptions options;
    options.plan.hows = {"refuse", "host_oom"};
    options.plan.limit = limit;
    options.depth = 1;
    Rehearsal rehearsal;
    rehearsal.run = runner.Run({});
    rehearsal.host_turns = {2, 1};
    SiteTexts sites;
    SweepEngine engine(&runner, nullptr, options, {"replay", "run", "program"}, &sites);
    EXPECT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
    EXPECT_THAT(runner.rounds, ElementsAre(trials)) << "two allocations; threads were not asked for";
    engine.EndHere();
    report::Run run;
    engine.Report(&run);
    EXPECT_EQ(run.coverage->reachable, 5U + 2U);
    return run.coverage->not_reached;
  };
  EXPECT_EQ(swept(6, 6).back().how, "host_oom");
  EXPECT_EQ(swept(6, 6).back().why, Reason::BeyondLimit);
}

TEST(SweepEngine, StopsAfterTheFirstRoundWhenAskedTo) {
  Scripted runner(false);
  EngineOptions options;
  options.depth = 1;
  options.shrink = false;
  EXPECT_THAT(Swept(&runner, options).findings, SizeIs(0)) << "one fault loses nothing here";
  EXPECT_THAT(runner.rounds, ElementsAre(5U));
}

// Nobody goes on from there: no way back is looked for, and none is written down.
TEST(SweepEngine, TrialsOfTheLastRoundHaveNoWayBack) {
  for (const int depth : {1, 2}) {
    Scripted runner(false);
    const TemporaryDir parent;
    const Result<WorkDir> dir = WorkDir::Open(parent.File("work"));
    ASSERT_TRUE(dir.ok());
    EngineOptions options;
    options.depth = depth;
    options.shrink = false;
    Rehearsal rehearsal;
    rehearsal.run = runner.Run({});
    SiteTexts sites;
    SweepEngine engine(&runner, &*dir, options, {"replay", "run", "program"}, &sites);
    ASSERT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
    while (!engine.Finished()) ASSERT_TRUE(engine.Step().ok());
    const Result<std::string> text = ReadFile(dir->File("trials.jsonl"));
    ASSERT_TRUE(text.ok());
    const Result<TrialLogContent> log = ParseTrialLog(*text, "log");
    ASSERT_TRUE(log.ok()) << log.status().message();
    bool any = false;
    for (const TrialResult& trial : log->trials) {
      const bool way_back = !trial.unwinding.faults.empty() || !trial.unwinding.left_out.empty() || !trial.unwinding.pruned.empty();
      EXPECT_FALSE(way_back && trial.faults.size() == static_cast<std::size_t>(depth)) << trial.faults.back();
      any = any || way_back;
    }
    EXPECT_EQ(any, depth == 2) << "first faults have one when second ones are asked for";
  }
}

TEST(SweepEngine, ARoundThatCannotBeGivenEndsTheSweep) {
  for (const std::size_t gives : {std::size_t{0}, std::size_t{1}}) {
    Scripted runner(false);
    runner.gives = gives;
    Rehearsal rehearsal;
    rehearsal.run = runner.Run({});
    SiteTexts sites;
    SweepEngine engine(&runner, nullptr, {}, {"replay", "run", "program"}, &sites);
    Status status = engine.Prepare(std::move(rehearsal), 1);
    while (status.ok() && !engine.Finished()) status = engine.Step();
    EXPECT_EQ(status.message(), "no process") << gives;
  }
}

TEST(CycleRunner, WhatTheOtherRunnerCannotTakeIsAnError) {
  auto other = std::make_unique<Scripted>(false);
  other->gives = 0;
  const TemporaryDir parent;
  const Result<WorkDir> dir = WorkDir::Open(parent.File("work"));
  ASSERT_TRUE(dir.ok());
  Rehearsal rehearsal;  // marks no cycles, so every trial is the other runner's
  rehearsal.run = other->Run({});
  const Subject subject;
  CycleRunner runner(subject, *dir, {}, rehearsal, std::move(other));
  EXPECT_EQ(runner.Give({{0, {"cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, 1}}).message(), "no process");
}

TEST(SweepEngine, SaysTheSameWhoeverFinishesFirst) {
  Scripted forwards(false);
  Scripted backwards(true);
  EngineOptions options;
  options.plan.hows = {"refuse", "persist", "burst:3"};
  EXPECT_EQ(AsJson(Swept(&forwards, options)), AsJson(Swept(&backwards, options)));
}

TEST(SweepEngine, ShrinksABurstToTheLengthThatItNeeds) {
  Scripted runner(false);
  EngineOptions options;
  options.plan.hows = {"burst:4"};
  options.plan.calls = {"cuMemAlloc", "cuStreamSynchronize"};
  const report::Run run = Swept(&runner, options);
  // Both tries and the synchronization: what two refusals of the allocation do, four do too.
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].rule, Rule::Leak);
  EXPECT_EQ(run.findings[0].fault->text, "cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=2");
  ASSERT_THAT(run.findings[0].then, SizeIs(1));
  EXPECT_EQ(run.findings[0].then[0].call, "cuStreamSynchronize");
  ASSERT_THAT(run.findings[0].shrunk_from, SizeIs(2));
  EXPECT_EQ(run.findings[0].shrunk_from[0], "cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=4");
  EXPECT_GT(run.totals.shrinking, 0U);
}

// A program that synchronizes a stream six times. Where that fails, it destroys the stream and ends: six equal unwindings.
class Loop : public Scripted {
 public:
  static constexpr std::uint32_t kTurns = 6;

  // Of the trials with two faults those whose first one hits a turn up to `without` make no stream, so that the second one does not fire.
  explicit Loop(std::uint32_t without) : Scripted(false), without_(without) {}
  bool repeats_exactly() const noexcept override { return true; }

 private:
  int Script(JournalBuilder& journal) override {
    for (const std::uint32_t stack : {1U, 2U, 3U}) journal.StackIn(stack, "/usr/bin/program");
    const bool stream = faults().size() < 2 || OccurrenceOf(faults().front()) > without_;
    if (stream && !Do(journal, CallId::StreamCreate, 0x10, 1)) return 1;
    bool ok = true;
    for (std::uint32_t turn = 0; turn < kTurns && ok; ++turn) ok = Do(journal, CallId::StreamSynchronize, stream ? 0x10 : 0, 2);
    if (stream) ok = Do(journal, CallId::StreamDestroy_v2, 0x10, 3) && ok;
    return ok ? 0 : 1;
  }
  static std::uint32_t OccurrenceOf(const std::string& text) {
    faults::Fault fault;
    EXPECT_EQ(faults::ParseFault(text, &fault).expected, nullptr) << text;
    return fault.occurrence;
  }

  const std::uint32_t without_;
};

// The first faults: the stream, its six synchronizations, its destruction, which can fail in two ways on the way back.
constexpr std::size_t kFirst = 1 + Loop::kTurns + 1;

report::Run SweptLoop(Loop* runner, std::size_t limit = 0, std::size_t samples = 0) {
  EngineOptions options;
  options.shrink = false;
  options.plan.limit = limit;
  options.plan.spread_at_least = samples;
  return Swept(runner, options);
}

TEST(EqualUnwindings, OneThatFiresStandsForTheOthers) {
  Loop runner(0);
  const report::Run run = SweptLoop(&runner);
  EXPECT_THAT(runner.rounds, ElementsAre(kFirst, 2U));
  EXPECT_EQ(CountOf(run.totals.pruned, Reason::SecondSameUnwinding), 2 * (Loop::kTurns - 1));
}

TEST(EqualUnwindings, OneThatDoesNotFireIsReplaced) {
  Loop runner(1);
  const report::Run run = SweptLoop(&runner);
  EXPECT_THAT(runner.rounds, ElementsAre(kFirst, 2U, 2U)) << "the first turn, then the second";
  EXPECT_EQ(CountOf(run.totals.pruned, Reason::SecondSameUnwinding), 2 * (Loop::kTurns - 2));
  EXPECT_EQ(run.totals.fired, kFirst + 2);
}

TEST(EqualUnwindings, WhereNoneFiresNothingIsPruned) {
  Loop runner(Loop::kTurns);
  const report::Run run = SweptLoop(&runner);
  EXPECT_THAT(runner.rounds, ElementsAre(kFirst, 2U, 2U, 4U, 4U)) << "as many again as were tried in vain";
  EXPECT_EQ(run.totals.trials, kFirst + 2 * Loop::kTurns);
  EXPECT_EQ(CountOf(run.totals.pruned, Reason::SecondSameUnwinding), 0U);
}

TEST(EqualUnwindings, ASampleThatFiresStandsToo) {
  Loop runner(1);
  const report::Run run = SweptLoop(&runner, 0, 1);
  EXPECT_THAT(runner.rounds, ElementsAre(kFirst, 3U, 1U)) << "the sample is one way of the last turn, and the second turn has the other";
  EXPECT_EQ(CountOf(run.totals.pruned, Reason::SecondSameUnwinding), 2 * (Loop::kTurns - 2));
}

TEST(EqualUnwindings, OneBeyondTheLimitStandsForNothing) {
  Loop one(0);
  const report::Run run = SweptLoop(&one, kFirst + 1);
  EXPECT_THAT(one.rounds, ElementsAre(kFirst, 1U));
  EXPECT_EQ(CountOf(run.totals.pruned, Reason::SecondSameUnwinding), Loop::kTurns - 1) << "the way that was tried";
  EXPECT_EQ(CountOf(run.totals.skipped, Reason::BeyondLimit), Loop::kTurns) << "the other way";
  Loop none(0);
  const report::Run cut = SweptLoop(&none, kFirst);
  EXPECT_THAT(none.rounds, ElementsAre(kFirst));
  EXPECT_EQ(CountOf(cut.totals.pruned, Reason::SecondSameUnwinding), 0U);
  EXPECT_EQ(CountOf(cut.totals.skipped, Reason::BeyondLimit), 2 * Loop::kTurns);
  Loop in_vain(1);
  const report::Run full = SweptLoop(&in_vain, kFirst + 2);
  EXPECT_THAT(in_vain.rounds, ElementsAre(kFirst, 2U));
  EXPECT_EQ(CountOf(full.totals.pruned, Reason::SecondSameUnwinding), 0U) << "neither of the two has fired";
  EXPECT_EQ(CountOf(full.totals.skipped, Reason::BeyondLimit), 2 * (Loop::kTurns - 1));
}

TEST(SmallerLists, DropsTheLastFaultFirstAndThenShortensBursts) {
  std::vector<std::vector<std::string>> lists;
  for (const PlannedTrial& list :
       SmallerLists({{"cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=3", "cuMemFree#1=INVALID_VALUE,refuse"}, {1, 2}})) {
    EXPECT_EQ(list.faults.size(), list.sites.size());
    lists.push_back(list.faults);
  }
  EXPECT_THAT(lists, ElementsAre(ElementsAre("cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=3"), ElementsAre("cuMemFree#1=INVALID_VALUE,refuse"),
                                 ElementsAre("cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuMemFree#1=INVALID_VALUE,refuse"),
                                 ElementsAre("cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=2", "cuMemFree#1=INVALID_VALUE,refuse")));
  EXPECT_FALSE(CanShrink({"cuMemFree#1=INVALID_VALUE,refuse"}));
  EXPECT_TRUE(CanShrink({"cuMemFree#1=INVALID_VALUE,persist"}));
}

// A sweep that ends before its second faults are shrunk: what is known already shrinks them all the same.

// When its second memory cannot be had, it gives back the first one and forgets its stream, whatever else fails on the way back.
class Forgets : public sweep_tests::Scripted {
 public:
  Forgets() : Scripted(false) {}

 private:
  int Script(JournalBuilder& journal) override {
    for (const std::uint32_t stack : {1U, 2U, 3U, 4U, 5U, 6U, 7U}) journal.StackIn(stack, "/usr/bin/program");
    if (!Do(journal, CallId::StreamCreate, 0x10, 1)) return 1;
    if (!Do(journal, CallId::MemAlloc_v2, 0x2000, 2)) {
      Do(journal, CallId::StreamDestroy_v2, 0x10, 7);
      return 1;
    }
    const bool memory = Do(journal, CallId::MemAlloc_v2, 0x1000, 3);
    Do(journal, CallId::StreamSynchronize, 0x10, 4);
    if (memory) Do(journal, CallId::MemFree_v2, 0x1000, 5);
    Do(journal, CallId::MemFree_v2, 0x2000, 6);
    if (!memory) return 1;
    Do(journal, CallId::StreamDestroy_v2, 0x10, 7);
    return 0;
  }
};

constexpr std::size_t kFirstFaults = 7;

// Ends the sweep after so many trials; 0: not.
report::Run SweptUntil(std::size_t trials) {
  Forgets runner;
  Rehearsal rehearsal;
  rehearsal.run = runner.Run({});
  SiteTexts sites;
  SweepEngine engine(&runner, nullptr, {}, {"replay", "run", "program"}, &sites);
  EXPECT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
  while (!engine.Finished() && (trials == 0 || engine.done() < trials)) EXPECT_TRUE(engine.Step().ok());
  engine.EndHere();
  report::Run run;
  engine.Report(&run);
  return run;
}

std::size_t WithTwoFaults(const report::Run& run) {
  return static_cast<std::size_t>(
      std::count_if(run.findings.begin(), run.findings.end(), [](const report::Finding& one) { return !one.then.empty(); }));
}

TEST(EndedEarly, SecondFaultsThatShowWhatTheFirstOneShowsAreNoDefectOfTheirOwn) {
  const report::Run whole = SweptUntil(0);
  ASSERT_THAT(whole.defects, SizeIs(1));
  EXPECT_EQ(WithTwoFaults(whole), 0U);
  ASSERT_GT(whole.totals.trials, kFirstFaults) << "second ones, too";
  for (std::size_t trials = 1; trials < whole.totals.trials; ++trials) {
    const report::Run cut = SweptUntil(trials);
    EXPECT_LE(cut.defects.size(), 1U) << trials;
    EXPECT_EQ(cut.totals.trials, trials);
    EXPECT_TRUE(trials < kFirstFaults || WithTwoFaults(cut) == 0) << trials;
  }
}

}  // namespace
}  // namespace cuaudit::harness::sweep_engine_test
