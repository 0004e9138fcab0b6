// SPDX-License-Identifier: MIT
// Which trials fork where, what a copy without a fault is compared by, and which of very many trials are tried; places that threads come
// to in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "harness/sweep/plan/call_state.h"
#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/runners/fork_control.h"
#include "harness/sweep/runners/fork_exchange.h"
#include "suites/support/journal_builder.h"

namespace cuaudit::harness::fork_tree_test {
namespace {

using driver::CallId;
using faults::Fault;
using faults::ForkNode;
using faults::ForkRefusal;
using faults::Phase;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Fault One(const std::string& text) {
  Fault fault;
  EXPECT_EQ(faults::ParseFault(text, &fault).expected, nullptr) << text;
  return fault;
}

std::vector<std::vector<Fault>> Lists(const std::vector<std::vector<std::string>>& texts) {
  std::vector<std::vector<Fault>> lists;
  for (const std::vector<std::string>& list : texts) {
    lists.emplace_back();
    for (const std::string& text : list) lists.back().push_back(One(text));
  }
  return lists;
}

TEST(ForkTree, ListsThatBeginAlikeShareTheirBeginning) {
  const std::vector<faults::ForkNode> rows = PlantForks(Lists({{"cuMemAlloc#2=OUT_OF_MEMORY"},
                                                               {"cuMemAlloc#2=OUT_OF_MEMORY", "cuMemFree#1=INVALID_VALUE"},
                                                               {"cuMemAlloc#2=OUT_OF_MEMORY", "cuMemFree#1=INVALID_VALUE,after"},
                                                               {"cuMemAlloc#1=OUT_OF_MEMORY", "cuMemFree#1=INVALID_VALUE"}}));
  ASSERT_EQ(rows.size(), 6U) << "the run without faults, two first faults, three second ones";
  EXPECT_EQ(rows[0].children, 2U);
  EXPECT_EQ(rows[0].trial, faults::kNoTrial);
  EXPECT_EQ(rows[1].fault.occurrence, 1U) << "in the order of the calls";
  EXPECT_EQ(rows[1].trial, faults::kNoTrial) << "on the way to another only";
  EXPECT_EQ(rows[2].fault.occurrence, 2U);
  EXPECT_EQ(rows[2].trial, 0U);
  EXPECT_EQ(rows[2].children, 2U);
  EXPECT_EQ(rows[rows[1].first_child].trial, 3U);
  EXPECT_EQ(rows[rows[2].first_child].trial, 1U);
  EXPECT_EQ(rows[rows[2].first_child + 1].trial, 2U);
  EXPECT_EQ(rows[rows[2].first_child].parent, 2U);
  EXPECT_EQ(rows[rows[2].first_child].depth, 2U);
}

TEST(ForkTree, AControlStandsAtItsCallWithoutChildren) {
  const std::vector<faults::ForkNode> rows = PlantControls({One("cuMemFree#1=INVALID_VALUE"), One("cuInit#1=OUT_OF_MEMORY")});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_FALSE(rows[0].control);
  for (const std::size_t row : {1U, 2U}) {
    EXPECT_TRUE(rows[row].control);
    EXPECT_EQ(rows[row].children, 0U);
    EXPECT_EQ(rows[row].fault.base, rows[row].trial == 0 ? driver::BaseId::MemFree : driver::BaseId::Init);
  }
}

TEST(ForkTree, OfEqualListsTheFirstKeepsTheNode) {
  const std::vector<faults::ForkNode> rows = PlantForks(Lists({{"cuInit#1=OUT_OF_MEMORY"}, {"cuInit#1=OUT_OF_MEMORY"}}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].trial, 0U);
}

TEST(ForkTree, AWalkFindsExactlyTheForksOfACall) {
  const std::vector<faults::ForkNode> rows = PlantForks(Lists({{"cuMemAlloc#3=OUT_OF_MEMORY"},
                                                               {"cuMemAlloc#1@work=OUT_OF_MEMORY"},
                                                               {"cuMemFree#3=INVALID_VALUE"},
                                                               {"cuMemAlloc#3=INVALID_VALUE"},
                                                               {"cuMemAlloc#12=OUT_OF_MEMORY"}}));
  std::vector<ForkNode> nodes(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    nodes[i].fault = rows[i].fault;
    nodes[i].first_child = rows[i].first_child;
    nodes[i].children = rows[i].children;
    nodes[i].trial = rows[i].trial;
  }
  const auto count = [&](driver::BaseId base, Phase phase, std::uint32_t occurrence) {
    return faults::FindForks(nodes.data(), nodes[0], base, phase, occurrence).count;
  };
  EXPECT_EQ(count(driver::BaseId::MemAlloc, Phase::Any, 3), 2U) << "two errors for one call";
  EXPECT_EQ(count(driver::BaseId::MemAlloc, Phase::Work, 1), 1U);
  EXPECT_EQ(count(driver::BaseId::MemAlloc, Phase::Any, 1), 0U);
  EXPECT_EQ(count(driver::BaseId::MemAlloc, Phase::Any, 12), 1U);
  EXPECT_EQ(count(driver::BaseId::MemFree, Phase::Any, 3), 1U);
  EXPECT_EQ(count(driver::BaseId::Init, Phase::Any, 1), 0U);
  EXPECT_EQ(nodes[faults::FindForks(nodes.data(), nodes[0], driver::BaseId::MemFree, Phase::Any, 3).first].trial, 2U);
}

TEST(ForkTree, EveryRefusalHasItsOwnWords) {
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < faults::kForkRefusals; ++i) {
    const std::string words = Words(ReasonOf(static_cast<faults::ForkRefusal>(i)));
    EXPECT_FALSE(words.empty());
    EXPECT_EQ(std::count(seen.begin(), seen.end(), words), 0) << words;
    seen.push_back(words);
  }
}

// `trials` unwindings of one shape, each of `length` second faults.
std::vector<StoodFor> Rows(std::size_t trials, std::size_t length, std::uint64_t shape = 1) {
  std::vector<StoodFor> rows;
  for (std::size_t i = 0; i < trials * length; ++i) rows.push_back({shape, i / length});
  return rows;
}

std::size_t Tried(const std::vector<bool>& tried) { return static_cast<std::size_t>(std::count(tried.begin(), tried.end(), true)); }

TEST(Spread, OfFewNothingIsLeftOut) {
  EXPECT_EQ(Tried(Spread(Rows(4, 5), SpreadBudget(20, 128))), 20U);
  EXPECT_TRUE(Spread({}, 128).empty());
}

TEST(Spread, OfManyOneInTwentyIsTried) {
  EXPECT_EQ(SpreadBudget(100000, 128), 5000U);
  EXPECT_EQ(Tried(Spread(Rows(1000, 100), 5000)), 5000U);
  EXPECT_EQ(Tried(Spread(Rows(1000, 100), 0)), 0U);
}

TEST(Spread, EveryTrialGetsOneBeforeAnyGetsTwo) {
  const std::vector<bool> tried = Spread(Rows(30, 10), 45);
  for (std::size_t trial = 0; trial < 30; ++trial) {
    const auto first = tried.begin() + static_cast<std::ptrdiff_t>(trial * 10);
    const auto count = std::count(first, first + 10, true);
    EXPECT_GE(count, 1) << trial;
    EXPECT_LE(count, 2) << trial;
  }
}

TEST(Spread, ThePositionsOnTheWayBackTakeTurns) {
  const std::vector<bool> tried = Spread(Rows(40, 8), 20);
  std::set<std::size_t> positions;
  std::set<std::size_t> trials;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (!tried[i]) continue;
    positions.insert(i % 8);
    trials.insert(i / 8);
  }
  EXPECT_EQ(positions.size(), 8U);
  EXPECT_EQ(trials.size(), 20U);
  EXPECT_EQ(*trials.rbegin(), 39U) << "at equal distances, the last one among them";
}

TEST(Spread, EachShapeHasTurnsOfItsOwn) {
  std::vector<StoodFor> rows = Rows(6, 4, 1);
  for (StoodFor one : Rows(6, 4, 2)) {
    one.after += 6;
    rows.push_back(one);
  }
  const std::vector<bool> tried = Spread(rows, 12);
  for (const std::size_t begin : {0U, 24U}) {
    for (std::size_t trial = 0; trial < 6; ++trial) EXPECT_TRUE(tried[begin + trial * 4 + trial % 4]) << begin << ' ' << trial;
  }
}

struct Made {
  CallId call;
  std::uint32_t thread;
};

// Journals of several runs, without call stacks: each entry point is one place.
class SitedCallsTest : public ::testing::Test {
 protected:
  void Run(std::initializer_list<Made> calls) {
    JournalBuilder journal(dir_.File("run-" + std::to_string(runs_.size())));
    for (const Made& made : calls) journal.Call(made.call).tid = made.thread;
    runs_.push_back(journal.Read());
  }
  CallStates Sited() {
    std::vector<CallStates> states;
    for (const Observation& run : runs_) states.push_back(StatesOf(run.evidence()));
    return SitedCalls(states);
  }
  // "cuMemAlloc#2", with '?' when not every run comes there that often and '+' when earlier turns stand for it.
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    const CallStates sited = Sited();
    for (const CallState& call : sited.calls) {
      const auto base = driver::BaseOf(static_cast<CallId>(call.record->call));
      texts.push_back(std::string(driver::Name(base)) + "#" + std::to_string(call.turn) + (call.unsure ? "?" : "") +
                      (call.again ? "+" : ""));
    }
    return texts;
  }

  TemporaryDir dir_;
  std::vector<Observation> runs_;
};

TEST_F(SitedCallsTest, ThreadsThatTakeTurnsInAnotherOrderComeToTheSamePlacesAsOften) {
  Run({{CallId::StreamCreate, 1}, {CallId::MemAlloc_v2, 2}, {CallId::StreamCreate, 1}});
  const std::vector<std::string> before = Texts();
  runs_.clear();
  Run({{CallId::MemAlloc_v2, 2}, {CallId::StreamCreate, 1}, {CallId::StreamCreate, 1}});
  EXPECT_EQ(Texts(), before) << "the order is of the places";
  EXPECT_TRUE(Sited().threaded);
}

TEST_F(SitedCallsTest, WhatOnlySomeRunsComeToIsSureOnce) {
  Run({{CallId::Init, 1}, {CallId::MemAlloc_v2, 1}});
  Run({{CallId::Init, 1}, {CallId::StreamCreate, 1}, {CallId::MemAlloc_v2, 1}, {CallId::MemAlloc_v2, 1}, {CallId::StreamCreate, 1}});
  EXPECT_THAT(Texts(), ElementsAre("cuInit#1", "cuMemAlloc#1", "cuStreamCreate#1", "cuMemAlloc#2?", "cuStreamCreate#2?"));
  PlannedFaults plan = MakePlan(Sited(), PlanOptions(), true);
  EXPECT_THAT(plan.faults, SizeIs(3));
  EXPECT_EQ(plan.skipped[Reason::Unsure], 2U);
  EXPECT_EQ(plan.possible, 5U) << "a sweep that tries three is not clean of five";
}

TEST_F(SitedCallsTest, FaultsAreAddressedByPlace) {
  Run({{CallId::MemAlloc_v2, 1}, {CallId::MemAlloc_v2, 2}});
  const PlannedFaults plan = MakePlan(Sited(), PlanOptions(), true);
  EXPECT_THAT(plan.faults, ElementsAre(EndsWith("#1=OUT_OF_MEMORY,refuse"), EndsWith("#2=OUT_OF_MEMORY,refuse")));
  for (const std::string& fault : plan.faults) EXPECT_EQ(fault.find("cuMemAlloc@site="), 0U) << fault;
}

// Two threads: three visits of each, one more, and the last one.
TEST_F(SitedCallsTest, OfManyTurnsTheFirstAndTheLastStandForTheRest) {
  Run({{CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2}});
  EXPECT_THAT(Texts(), ElementsAre("cuMemAlloc#1", "cuMemAlloc#2", "cuMemAlloc#3", "cuMemAlloc#4", "cuMemAlloc#5", "cuMemAlloc#6",
                                   "cuMemAlloc#7", "cuMemAlloc#8+", "cuMemAlloc#9+", "cuMemAlloc#10"));
  EXPECT_THAT(MakePlan(Sited(), PlanOptions(), true).faults, SizeIs(8));
  PlanOptions all;
  all.prune = Pruning::None;
  EXPECT_THAT(MakePlan(Sited(), all, true).faults, SizeIs(10));
}

// The turns that would stand for the rest are declined: the first one that is not does.
TEST_F(SitedCallsTest, ATurnThatTheDriverDeclinesStandsForNothingUnderAfter) {
  const auto polls = [&](int declined) {
    JournalBuilder journal(dir_.File("run-" + std::to_string(runs_.size())));
    for (int turn = 0; turn < 12; ++turn) {
      faults::Record& call = journal.Call(CallId::StreamQuery);
      call.tid = turn % 2 == 0 ? 1 : 2;
      if (turn < declined) call.result = CUDA_ERROR_NOT_READY;
    }
    runs_.push_back(journal.Read());
  };
  PlanOptions options;
  options.hows = {"after"};
  polls(9);
  const PlannedFaults plan = MakePlan(Sited(), options, true);
  EXPECT_THAT(plan.faults, ElementsAre(HasSubstr("#10="), HasSubstr("#12=")));
  EXPECT_EQ(plan.skipped.at(Reason::Declined), 9U);
  EXPECT_EQ(plan.pruned.at(Reason::LaterTurn), 1U);
  for (const int declined : {1, 9}) {
    polls(declined);
    EXPECT_EQ(MakePlan(Sited(), options, true).skipped.at(Reason::Declined), 1U) << "another run got an answer there";
  }
}

constexpr std::uint64_t kDeadlineMs = 10;

class ForkControlTest : public ::testing::Test {
 protected:
  ForkControlTest() {
    for (JournalBuilder* const one : {&program_, &copy_}) {
      one->Call(CallId::Init);
      one->Call(CallId::StreamCreate).argument[0] = 0x51;
    }
  }
  std::string Difference(const Ending& ending = {}) {
    const Observation expected = program_.Read();
    return Words(DifferenceFrom(expected.evidence(), copy_.Read(ending), kDeadlineMs));
  }

  TemporaryDir dir_;
  JournalBuilder program_{dir_.File("program")};
  JournalBuilder copy_{dir_.File("copy")};
};

TEST_F(ForkControlTest, ACopyThatDoesTheSameDoesNotDiffer) { EXPECT_EQ(Difference(), ""); }

TEST_F(ForkControlTest, AnotherEndingIsADifference) {
  EXPECT_EQ(Difference({3, 0, false}), "it exited with status 3");
  EXPECT_EQ(Difference({0, 9, true}), "it did not finish within 10 ms (--deadline-ms)");
}

TEST_F(ForkControlTest, AnotherCallIsADifferenceAndSoIsAnotherResult) {
  copy_.Call(CallId::StreamQuery).result = CUDA_ERROR_NOT_READY;
  EXPECT_EQ(Difference(), "call 3: only one run made it (2 calls, then 3)");
  EXPECT_EQ(Difference({3, 0, false}), "call 3: only one run made it (2 calls, then 3); it exited with status 3");
  program_.Call(CallId::StreamQuery);
  EXPECT_EQ(Difference(), "call 3: cuStreamQuery answered another result");
}

TEST_F(ForkControlTest, WhatItDeclaresIsCompared) {
  for (JournalBuilder* const one : {&program_, &copy_}) one->Mark(faults::MarkKind::Output, 1).argument[0] = 1;
  program_.Mark(faults::MarkKind::Report, 1);
  faults::Record& report = copy_.Mark(faults::MarkKind::Report, 1);
  EXPECT_EQ(Difference(), "");
  report.argument[0] = 2;
  EXPECT_EQ(Difference(), "it declared something else");
}

TEST_F(ForkControlTest, WhatItLeavesOnTheHostIsComparedBothWays) {
  const std::string of_host = "host_heap of malloc";
  copy_.Host(faults::HostCall::Allocate, 0x1000, 64);
  EXPECT_EQ(Difference(), "it left behind: " + of_host);
  program_.Host(faults::HostCall::Allocate, 0x2000, 64);
  EXPECT_EQ(Difference(), "") << "addresses are each run's own";
  program_.Host(faults::HostCall::Allocate, 0x3000, 64);
  EXPECT_EQ(Difference(), "it did not leave behind: " + of_host);
}

TEST_F(ForkControlTest, AJournalThatLostRecordsProvesNothing) {
  copy_.header().flags.fetch_or(faults::kRecordsDropped);
  EXPECT_THAT(Difference(), HasSubstr("the journal overflowed"));
}

TEST_F(ForkControlTest, CopiesAreForkedAtAFewCallsTheFirstAndTheLastAmongThem) {
  EXPECT_EQ(ControlPoints(program_.Read().evidence()).size(), 2U);
  for (int i = 0; i < 97; ++i) program_.Call(CallId::MemAlloc_v2);
  program_.Call(CallId::StreamQuery);
  const std::vector<faults::Fault> points = ControlPoints(program_.Read().evidence());
  ASSERT_EQ(points.size(), 5U);
  EXPECT_EQ(points.front().base, driver::BaseId::Init);
  EXPECT_EQ(points[2].base, driver::BaseId::MemAlloc);
  EXPECT_EQ(points[2].occurrence, 48U);
  EXPECT_EQ(points.back().base, driver::BaseId::StreamQuery);
  EXPECT_THAT(ControlPoints(JournalBuilder(dir_.File("empty")).Read().evidence()), IsEmpty());
}

TEST_F(ForkControlTest, OnlyACopyThatWasSeenToDoTheSameAllowsForks) {
  const Observation rehearsal = program_.Read();
  const std::vector<ForkRefusal> refusals = {ForkRefusal::Threads, ForkRefusal::None};
  ForkControl none(rehearsal);
  EXPECT_EQ(Words(none.WhyNot(refusals)), "the program has other threads there");
  ForkControl same(rehearsal);
  same.TakeCopy(1, copy_.Read(), kDeadlineMs);
  same.TakeTrunk(copy_.Read(), kDeadlineMs);
  EXPECT_EQ(Words(same.WhyNot(refusals)), "");
  ForkControl other(rehearsal);
  other.TakeCopy(0, copy_.Read(), kDeadlineMs);
  other.TakeCopy(1, copy_.Read({7, 0, false}), kDeadlineMs);
  EXPECT_EQ(Words(other.WhyNot(refusals)),
            "without a fault a copy forked at cuStreamCreate#1 is not what the program is: it exited with status 7");
  ForkControl trunk(rehearsal);
  trunk.TakeCopy(1, copy_.Read(), kDeadlineMs);
  trunk.TakeTrunk(copy_.Read({7, 0, false}), kDeadlineMs);
  EXPECT_THAT(Words(trunk.WhyNot(refusals)), HasSubstr("without a fault a run that forks is not what the program is"));
}

}  // namespace
}  // namespace cuaudit::harness::fork_tree_test
