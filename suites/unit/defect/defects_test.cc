// SPDX-License-Identifier: MIT
// Which findings have one cause.
#include "harness/defect/defects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cuaudit::harness::defects_test {
namespace {

using driver::Kind;
using report::Rule;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

report::Blame By(const std::string& function) { return {report::Frame{"prog", function, "prog.c", 1, 1}, report::BlamedBecause::HeldIt}; }

// A report in the making: each call adds a finding that one trial shows.
class Report {
 public:
  Report& Lost(std::size_t trial, Kind kind, std::uint64_t place, const std::string& blamed) {
    return Add(Rule::Leak, trial, kind, place, blamed);
  }
  Report& Declined(std::size_t trial, Kind kind, std::uint64_t place, const std::string& blamed) {
    Lost(trial, kind, place, blamed);
    run_.findings.back().where = "cuMemAddressFree";
    return *this;
  }
  Report& Add(Rule rule, std::size_t trial, Kind kind, std::uint64_t place, const std::string& blamed) {
    report::Finding finding = {.rule = rule, .kind = std::string(kind == Kind::None ? "" : driver::Name(kind)), .count = 1};
    finding.acquired.call = "call " + std::to_string(place);
    run_.findings.push_back(finding);
    Shown shown{trial, run_.findings.size() - 1, kind, place, {}, nullptr};
    if (!blamed.empty()) shown.blame = By(blamed);
    finder_.Add(shown, rule);
    return *this;
  }
  // `shown` without its finding, which is made here; with `again` the newest finding is shown once more.
  Report& Add(Rule rule, Shown shown, const std::string& blamed, bool again = false) {
    if (!again) {
      report::Finding& finding = run_.findings.emplace_back();
      finding.rule = rule;
      finding.kind = driver::Name(shown.kind);
      finding.count = 1;
    }
    shown.finding = run_.findings.size() - 1;
    shown.blame = By(blamed);
    finder_.Add(shown, rule);
    return *this;
  }
  // Each defect as the kinds of its members.
  std::vector<std::vector<std::string>> Kinds() {
    std::vector<std::vector<std::string>> all;
    for (const report::Defect& defect : Find()) {
      std::vector<std::string>& kinds = all.emplace_back();
      for (const report::Member& member : defect.members) kinds.push_back(run_.findings[member.findings.front()].kind);
    }
    return all;
  }
  const std::vector<report::Defect>& Find() {
    finder_.Find(&run_);
    return run_.defects;
  }

 private:
  report::Run run_;
  DefectFinder finder_;
};

TEST(Defects, OneObjectLostByManyFailingCallsIsOne) {
  Report report;
  for (std::size_t trial = 0; trial < 230; ++trial) report.Lost(trial, Kind::Stream, 1, "open");
  const std::vector<report::Defect>& defects = report.Find();
  ASSERT_THAT(defects, SizeIs(1));
  EXPECT_EQ(defects[0].trials, 230U);
  EXPECT_THAT(defects[0].members, SizeIs(1));
}

TEST(Defects, OnePathThatLeavesMoreAndMoreIsOne) {
  Report report;
  report.Lost(1, Kind::Stream, 1, "open").Lost(2, Kind::Stream, 1, "open").Lost(2, Kind::Event, 2, "open");
  report.Lost(3, Kind::Stream, 1, "open").Lost(3, Kind::Event, 2, "open").Lost(3, Kind::DeviceMemory, 3, "open");
  EXPECT_THAT(report.Kinds(), ElementsAre(ElementsAre("stream", "event", "device_memory")));
}

TEST(Defects, WhatStoodInTheWayOfAReleaseComesFirst) {
  EXPECT_THAT(Report().Lost(1, Kind::AddressReservation, 1, "done").Lost(1, Kind::Mapping, 2, "grow").Kinds(),
              ElementsAre(ElementsAre("address_reservation", "mapping")));
  EXPECT_THAT(Report().Declined(1, Kind::AddressReservation, 1, "done").Lost(1, Kind::Mapping, 2, "grow").Kinds(),
              ElementsAre(ElementsAre("mapping", "address_reservation")));
}

TEST(Defects, TwoLossesOfOneFunctionThatNeverComeTogetherAreTwo) {
  EXPECT_THAT(Report().Lost(1, Kind::Stream, 1, "open").Lost(2, Kind::Event, 2, "open").Kinds(), SizeIs(2));
}

TEST(Defects, OneObjectThatTwoFunctionsLoseIsTwo) {
  EXPECT_THAT(Report().Lost(1, Kind::Stream, 1, "open").Lost(2, Kind::Stream, 1, "work").Kinds(), SizeIs(2));
}

TEST(Defects, WhatIsAlwaysLostTogetherIsOneAndItsOwnerComesFirst) {
  for (const bool alone : {false, true}) {
    Report report;
    for (const std::size_t trial : {4U, 7U}) {
      report.Lost(trial, Kind::HostHeap, 1, "alloc").Lost(trial, Kind::Stream, 2, "stream").Lost(trial, Kind::Context, 3, "open");
      report.Lost(trial, Kind::FileDescriptor, 4, "import");
    }
    if (!alone) {
      EXPECT_THAT(report.Kinds(), ElementsAre(ElementsAre("context", "stream", "file_descriptor", "host_heap")));
    } else {
      report.Lost(8, Kind::HostHeap, 1, "alloc");
      EXPECT_THAT(report.Kinds(), ElementsAre(ElementsAre("host_heap"), ElementsAre("context", "stream", "file_descriptor")));
    }
  }
}

TEST(Defects, ACycleThatDoesNotRecoverAfterALossIsItsConsequence) {
  for (const bool alone : {false, true}) {
    Report report;
    report.Lost(1, Kind::Context, 1, "open").Lost(2, Kind::Context, 1, "open").Add(Rule::NotRecovered, 2, Kind::None, 0, "step");
    if (alone) report.Add(Rule::NotRecovered, 3, Kind::None, 0, "step");
    EXPECT_THAT(report.Find(), SizeIs(alone ? 2 : 1)) << "without a loss it has a cause of its own";
  }
}

TEST(Defects, AFailureThatOneFunctionRemembersIsOneWhereverItIsNoticed) {
  Report report;
  for (std::size_t trial = 0; trial < 10; ++trial) report.Add(Rule::NotRecovered, trial, Kind::None, trial % 3, "a_init");
  report.Add(Rule::NotRecovered, 11, Kind::None, 0, "b_init");
  const std::vector<report::Defect>& defects = report.Find();
  ASSERT_THAT(defects, SizeIs(2));
  EXPECT_EQ(defects[0].trials, 10U);
  EXPECT_THAT(Report().Add(Rule::NotRecovered, 1, Kind::None, 1, "").Add(Rule::NotRecovered, 1, Kind::None, 2, "").Find(), SizeIs(2))
      << "nobody is blamed";
}

TEST(Defects, OneWrongCallIsOneWhateverFailedBefore) {
  Report report;
  for (std::size_t trial = 0; trial < 5; ++trial) report.Add(Rule::DoubleRelease, trial, Kind::Stream, 9, "close");
  report.Add(Rule::DoubleRelease, 6, Kind::Stream, 10, "other");
  EXPECT_THAT(report.Kinds(), SizeIs(2));
}

TEST(Defects, NobodyBlamedKeepsThingsApart) {
  EXPECT_THAT(Report().Add(Rule::Crash, 1, Kind::None, 1, "").Add(Rule::Crash, 1, Kind::None, 2, "").Find(), SizeIs(2));
}

TEST(Defects, ALeakAndTheSameLossByItsContextAreOne) {
  EXPECT_THAT(Report().Lost(1, Kind::Stream, 1, "open").Add(Rule::Orphaned, 2, Kind::Stream, 1, "open").Find(), SizeIs(1));
}

Shown At(std::size_t trial, Kind kind, std::uint64_t place) { return {trial, 0, kind, place, {}, nullptr}; }

TEST(Defects, OneFindingOfWhichTwoFunctionsAreBlamedIsOne) {
  for (const bool same : {true, false}) {
    Report report;
    report.Add(Rule::Leak, At(1, Kind::ExecutableGraph, 1), "refresh");
    report.Add(Rule::Leak, At(2, Kind::ExecutableGraph, 2), "run", same);
    EXPECT_THAT(report.Find(), SizeIs(same ? 1 : 2)) << "another failing call may have a cause of its own";
    EXPECT_THAT(report.Find()[0].members, SizeIs(1)) << "and they are the same objects";
  }
}

TEST(Defects, WhatFollowsOneEarlyReleaseIsOne) {
  const auto ended = [](std::size_t trial, std::uint64_t place, std::uint64_t end) {
    Shown shown = At(trial, Kind::Module, place);
    shown.common_call = end;
    return shown;
  };
  Report one;
  one.Add(Rule::UseAfterRelease, ended(1, 1, 77), "function").Add(Rule::DoubleRelease, ended(1, 2, 77), "~Cache");
  one.Add(Rule::DoubleRelease, ended(2, 2, 77), "~Cache");
  const std::vector<report::Defect>& defects = one.Find();
  ASSERT_THAT(defects, SizeIs(1));
  EXPECT_EQ(defects[0].trials, 2U);
  Report another;
  another.Add(Rule::UseAfterRelease, ended(1, 1, 77), "function").Add(Rule::DoubleRelease, ended(1, 2, 78), "~Cache");
  EXPECT_THAT(another.Find(), SizeIs(2)) << "an object that was released elsewhere";
  Report apart;
  apart.Add(Rule::UseAfterRelease, ended(1, 1, 77), "function").Add(Rule::DoubleRelease, ended(2, 2, 77), "~Cache");
  EXPECT_THAT(apart.Find(), SizeIs(2)) << "never in one trial";
  Report alive;
  alive.Add(Rule::UseAfterRelease, ended(1, 1, 0), "function").Add(Rule::DoubleRelease, ended(1, 2, 0), "~Cache");
  EXPECT_THAT(alive.Find(), SizeIs(2)) << "nobody knows the releases";
}

TEST(Defects, TheSameCallThatFailsAtTheSamePlaceAgainIsNoNewCause) {
  const auto lost = [](std::size_t trial, std::uint64_t place, std::size_t faults, std::uint64_t failed_at, std::uint64_t acquirer) {
    Shown shown = At(trial, Kind::ExecutableGraph, place);
    shown.faults = faults;
    shown.failed_at = failed_at;
    shown.acquirer = acquirer;
    return shown;
  };
  const auto count = [&](const Shown& second) {
    Report report;
    report.Add(Rule::Leak, lost(1, 1, 1, 5, 8), "refresh").Add(Rule::Leak, second, "run");
    return report.Find().size();
  };
  EXPECT_EQ(count(lost(2, 2, 2, 5, 8)), 1U);
  EXPECT_EQ(count(lost(2, 2, 2, 0, 8)), 2U) << "another call failed, too";
  EXPECT_EQ(count(lost(2, 2, 2, 6, 8)), 2U) << "the call at another place";
  EXPECT_EQ(count(lost(2, 2, 2, 5, 9)), 2U) << "another function acquired it";
  EXPECT_EQ(count(lost(2, 2, 1, 5, 8)), 2U) << "it needs one failing call only";
  Report report;
  report.Add(Rule::Leak, lost(1, 1, 1, 5, 8), "refresh").Add(Rule::Leak, lost(2, 2, 2, 5, 8), "run");
  report.Add(Rule::Leak, lost(3, 2, 2, 0, 8), "run");
  EXPECT_THAT(report.Find(), SizeIs(2)) << "it shows after other faults, too";
  Report alone;
  alone.Add(Rule::Leak, lost(1, 1, 1, 5, 8), "refresh").Add(Rule::Leak, lost(2, 2, 2, 5, 8), "run");
  alone.Add(Rule::Leak, lost(3, 2, 1, 6, 8), "run");
  EXPECT_THAT(alone.Find(), SizeIs(2)) << "it shows after one other fault, too";
  Report unknown;
  unknown.Add(Rule::Leak, lost(1, 1, 1, 0, 8), "refresh").Add(Rule::Leak, lost(2, 2, 2, 0, 8), "run");
  EXPECT_THAT(unknown.Find(), SizeIs(2)) << "nobody knows where the calls failed";
}

TEST(Defects, AReferenceThatTheFirstFaultAloneShowsTakenIsTheSame) {
  const auto taken = [](std::size_t trial, std::uint64_t place, std::size_t faults, std::uint64_t first) {
    Shown shown = At(trial, Kind::PrimaryContext, place);
    shown.faults = faults;
    shown.first_fault = first;
    return shown;
  };
  const auto count = [&](const Shown& second) {
    Report report;
    report.Add(Rule::Deficit, taken(1, 1, 1, 5), "fail").Add(Rule::OverReleasedPrimary, second, "main");
    return report.Find().size();
  };
  EXPECT_EQ(count(taken(2, 2, 2, 5)), 1U);
  EXPECT_EQ(count(taken(2, 2, 2, 6)), 2U) << "after another first fault";
  EXPECT_EQ(count(taken(2, 2, 1, 5)), 2U) << "it needs one failing call only";
}

TEST(Defects, WithoutAFaultWhatOneFunctionLeavesIsOne) {
  report::Run run;
  const auto grows = [&run](const char* kind, const char* function, int line) {
    report::Finding finding;
    finding.rule = Rule::Growth;
    finding.kind = kind;
    finding.acquired = {"cuCall", {report::Frame{"prog", function, "prog.c", line, static_cast<std::uint64_t>(line)}}};
    run.findings.push_back(finding);
  };
  grows("stream", "open", 1);
  grows("event", "open", 2);
  grows("module", "load", 3);
  FindDefects(&run);
  ASSERT_THAT(run.defects, SizeIs(2));
  EXPECT_THAT(run.defects[0].members, SizeIs(2));
  EXPECT_EQ(run.defects[0].trials, 0U);
}

TEST(Defects, WithoutAFaultAndWithoutAStackNothingIsPutTogether) {
  report::Run run;
  for (const char* const kind : {"stream", "event"}) {
    report::Finding finding = {.rule = Rule::Growth, .kind = kind};
    run.findings.push_back(finding);
  }
  FindDefects(&run);
  EXPECT_THAT(run.defects, SizeIs(2));
  FindDefects(&run);
  EXPECT_THAT(run.defects, SizeIs(2)) << "they take the place of those found before";
}

TEST(Defects, WhatWasLeftIsToldApartByTheCallThatAcquiredIt) {
  report::Run run;
  for (const char* const call : {"cuStreamCreate", "cuStreamCreateWithPriority"}) {
    report::Finding finding;
    finding.rule = Rule::LeftAtExit;
    finding.kind = "stream";
    finding.acquired = {call, {report::Frame{"prog", "open", "prog.c", 3, 3}}};
    run.findings.push_back(finding);
  }
  FindDefects(&run);
  ASSERT_THAT(run.defects, SizeIs(1)) << "one function left both";
  EXPECT_THAT(run.defects[0].members, SizeIs(2));
}

// Three lines of one function call the same wrapper, and each leaves a stream of its own when the program exits.
TEST(Defects, WhatARunLeftIsAddedUp) {
  report::Run run;
  for (int line = 1; line <= 3; ++line) {
    report::Finding finding = {.rule = Rule::LeftAtExit, .kind = "stream", .count = 1, .bytes = 8};
    const auto frame = [](const char* function, int at) {
      return report::Frame{"prog", function, "prog.c", at, static_cast<std::uint64_t>(at)};
    };
    finding.acquired = {"cuStreamCreate", {frame("make", 9), frame("main", 10 + line)}};
    run.findings.push_back(finding);
  }
  FindDefects(&run);
  ASSERT_THAT(run.defects, SizeIs(1));
  ASSERT_THAT(run.defects[0].members, SizeIs(1));
  EXPECT_EQ(run.defects[0].members[0].count, 3U);
  EXPECT_EQ(run.defects[0].members[0].bytes, 24U);
}

TEST(Defects, NoFindingIsLostAndNoneIsTwice) {
  Report report;
  report.Lost(1, Kind::Stream, 1, "a")
      .Lost(2, Kind::Event, 2, "b")
      .Lost(1, Kind::Event, 2, "b")
      .Add(Rule::Swallowed, 3, Kind::None, 0, "c");
  std::vector<int> seen(4);
  for (const report::Defect& defect : report.Find()) {
    for (const report::Member& member : defect.members) {
      for (const std::size_t finding : member.findings) ++seen[finding];
    }
  }
  EXPECT_THAT(seen, ElementsAre(1, 1, 1, 1));
}

// Which of two kinds that are always lost together names the defect.
std::string FirstOf(Kind one, Kind other) { return Report().Lost(1, one, 1, "a").Lost(1, other, 2, "b").Kinds().front().front(); }

TEST(Defects, AContextOwnsWhatTheDriverMadeAndThatOwnsTheHosts) {
  for (const Kind context : {Kind::Context, Kind::PrimaryContext, Kind::GreenContext})
    EXPECT_EQ(FirstOf(Kind::Stream, context), driver::Name(context));
  for (const Kind last : {Kind::Block, Kind::FileDescriptor}) EXPECT_EQ(FirstOf(last, Kind::Stream), "stream");
}

// One finding that trials show with these counts: of a thing that one function loses, and of another one.
std::size_t DefectsOf(const std::vector<std::uint64_t>& one, const std::vector<std::uint64_t>& other, const char* loser) {
  Report report;
  std::size_t trial = 0;
  const auto show = [&](std::uint64_t place, std::uint64_t count, const char* blamed) {
    Shown shown = At(++trial, Kind::Stream, place);
    shown.count = count;
    report.Add(Rule::Leak, shown, blamed, trial != 1);
  };
  for (const std::uint64_t count : one) show(1, count, "open");
  for (const std::uint64_t count : other) show(2, count, loser);
  return report.Find().size();
}

TEST(Defects, OneFindingOfWhichTwoFunctionsLoseDifferentNumbersIsTwo) {
  EXPECT_EQ(DefectsOf({2, 2}, {2}, "run"), 1U);
  EXPECT_EQ(DefectsOf({2, 1}, {2}, "run"), 2U);
  EXPECT_EQ(DefectsOf({1, 2}, {1}, "run"), 2U);
  EXPECT_EQ(DefectsOf({1, 2}, {1}, "open"), 1U) << "one function may lose any number";
}

TEST(Defects, ACycleThatDoesNotRecoverFollowsOneLossAlone) {
  Report report;
  report.Lost(1, Kind::Stream, 1, "a").Lost(2, Kind::Stream, 1, "a").Lost(2, Kind::Event, 2, "b").Lost(3, Kind::Event, 2, "b");
  EXPECT_THAT(report.Add(Rule::NotRecovered, 2, Kind::None, 0, "step").Find(), SizeIs(2));
}

TEST(Defects, WhichOfTwoCausesComesAgainNobodyKnows) {
  Report report;
  std::size_t trial = 0;
  for (const char* const blamed : {"refresh", "other", "run"}) {
    ++trial;
    Shown shown = At(trial, Kind::Stream, trial);
    shown.faults = trial == 3 ? 2 : 1;
    shown.failed_at = 5;
    shown.acquirer = 8;
    report.Add(Rule::Leak, shown, blamed);
  }
  EXPECT_THAT(report.Find(), SizeIs(3));
}

TEST(Defects, MutexesThatGrowBecauseTheirMemoryIsFreedAreOne) {
  report::Run run;
  for (const Rule rule : {Rule::Growth, Rule::MutexFreed}) {
    report::Finding& finding = run.findings.emplace_back();
    finding.rule = rule;
    finding.kind = "mutex";
    finding.acquired = {"pthread_mutex_init", {report::Frame{"prog", "make", "prog.c", 1, 1}}};
    if (rule == Rule::MutexFreed) finding.where_stack = {report::Frame{"prog", "drop", "prog.c", 2, 2}};
  }
  FindDefects(&run);
  EXPECT_THAT(run.defects, SizeIs(1));
}

TEST(Defects, AReportWithoutFindingsHasNone) {
  report::Run run;
  FindDefects(&run);
  EXPECT_THAT(run.defects, IsEmpty());
}

}  // namespace
}  // namespace cuaudit::harness::defects_test
