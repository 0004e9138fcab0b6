// SPDX-License-Identifier: MIT
#include "harness/compare/compare.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/defect_words.h"
#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::compare_test {
namespace {

using namespace small_audits;  // NOLINT(google-build-using-namespace)

TEST(Compare, TheSameDefectIsUnchanged) {
  for (const Base& base : {BaseOf(AuditOf({Sweep({Leak()})})), FileOf(AuditOf({Sweep({Leak()})}))}) {
    Audit head = AuditOf({Sweep({Leak()})});
    CompareWith(base, &head);
    EXPECT_EQ(ChangesOf(head), std::vector<Change>{Change::Unchanged});
    EXPECT_TRUE(head.comparison->gone.empty());
    EXPECT_EQ(head.cases[0].runs[0].defects[0].was, "");
  }
}

TEST(Compare, WhatTheBaseDoesNotHaveIsNew) {
  Audit head = AuditOf({Sweep({Leak(), {"load", "event", {"cuMemAlloc"}, "main", "cuEventCreate"}})});
  CompareWith(BaseOf(AuditOf({Sweep({Leak()})})), &head);
  EXPECT_EQ(ChangesOf(head), (std::vector{Change::Unchanged, Change::New}));
}

TEST(Compare, MoreFailingCallsAreAChange) {
  Leak more = {.failing = {"cuEventCreate", "cuMemAlloc"}};
  for (const Base& base : {BaseOf(AuditOf({Sweep({Leak()})})), FileOf(AuditOf({Sweep({Leak()})}))}) {
    Audit head = AuditOf({Sweep({more})});
    CompareWith(base, &head);
    ASSERT_EQ(ChangesOf(head), std::vector<Change>{Change::Changed});
    EXPECT_EQ(head.cases[0].runs[0].defects[0].was, "stream; calls fail at 1 place: cuEventCreate");
  }
  Audit fewer = AuditOf({Sweep({Leak()})});
  CompareWith(BaseOf(AuditOf({Sweep({more})})), &fewer);
  EXPECT_EQ(ChangesOf(fewer), std::vector<Change>{Change::Unchanged}) << "less is no regression";
}

TEST(Compare, OneMorePlaceOfTheSameCallIsAChange) {
  Leak twice = {.failing = {"cuEventCreate", "cuEventCreate"}};
  Audit head = AuditOf({Sweep({twice})});
  CompareWith(BaseOf(AuditOf({Sweep({Leak()})})), &head);
  EXPECT_EQ(ChangesOf(head), std::vector<Change>{Change::Changed});
}

TEST(Compare, AnotherKindIsAChange) {
  report::Run run = Sweep({Leak()});
  run.findings.push_back(run.findings[0]);
  run.findings[1].kind = "event";
  FindDefects(&run);
  ASSERT_EQ(run.defects.size(), 1U) << "they are lost together";
  Audit head = AuditOf({run});
  CompareWith(BaseOf(AuditOf({Sweep({Leak()})})), &head);
  EXPECT_EQ(ChangesOf(head), std::vector<Change>{Change::Changed});
}

TEST(Compare, FixedIsWhatWasTriedAgain) {
  const Audit before = AuditOf({Sweep({Leak()})});
  EXPECT_EQ(Fate(BaseOf(before), AuditOf({Sweep({}, {Tried("open_device")})})), "fixed");
  EXPECT_EQ(Fate(FileOf(before), AuditOf({Sweep({}, {Tried("open_device")})})), "fixed");
}

TEST(Compare, WhatNobodyLookedForIsNeverFixed) {
  const Audit before = AuditOf({Sweep({Leak()})});
  const report::Run clean = Sweep({}, {Tried("open_device")});
  report::Run interrupted = clean;
  interrupted.outcome = report::Outcome::Interrupted;
  interrupted.interrupted = report::Interrupted{"SIGINT", 3, 9, false};
  report::Run unexercised = clean;
  unexercised.outcome = report::Outcome::NotExercised;
  unexercised.message.told = "no driver call";
  report::Run old = clean;
  old.coverage.reset();
  report::Run cycles = {.mode = report::Mode::Cycles, .outcome = report::Outcome::Clean};
  Audit left_out = AuditOf({});
  left_out.cases[0].not_run = "left out by --tag";
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, Audit()), "the case is gone");
    EXPECT_EQ(Fate(base, AuditOf({clean}, "other")), "the case is gone");
    EXPECT_EQ(Fate(base, left_out), "left out by --tag");
    EXPECT_EQ(Fate(base, AuditOf({cycles})), "the case has no sweep");
    EXPECT_EQ(Fate(base, AuditOf({interrupted})), "interrupted, 3 of 9 trials (SIGINT)");
    EXPECT_EQ(Fate(base, AuditOf({unexercised})), "not exercised: no driver call");
    EXPECT_EQ(Fate(base, AuditOf({old})), "the report does not say which calls were made to fail");
    const std::string way = "cuEventCreate=OUT_OF_MEMORY,refuse in open_device";
    EXPECT_EQ(Fate(base, AuditOf({Sweep({}, {Tried("open_device", "cuMemAlloc")})})), way + " was not made to fail")
        << "filtered by --call";
    EXPECT_EQ(Fate(base, AuditOf({Sweep({}, {Tried("open_device"), Tried("other")})})), "fixed");
    report::Tried elsewhere = Tried("main");
    EXPECT_EQ(Fate(base, AuditOf({Sweep({}, {elsewhere})})), base.audit ? "fixed" : way + " was not made to fail")
        << "only a report tells that main is the old open_device";
  }
}

// The failing call is tried in a function that the base had, too: it cannot be the one that is gone.
TEST(Compare, AFunctionThatIsLeftOutIsNotRenamed) {
  const Audit before = AuditOf({Sweep({Leak()}, {Tried("other")})});
  EXPECT_EQ(Fate(BaseOf(before), AuditOf({Sweep({}, {Tried("other")})})),
            "cuEventCreate=OUT_OF_MEMORY,refuse in open_device was not made to fail");
}

TEST(Compare, FewerPlacesOfAFunctionAreCoverageLost) {
  Leak twice = {.failing = {"cuEventCreate", "cuEventCreate"}};
  EXPECT_EQ(Fate(BaseOf(AuditOf({Sweep({twice})})), AuditOf({Sweep({}, {Tried("open_device")})})),
            "cuEventCreate=OUT_OF_MEMORY,refuse in open_device was made to fail at fewer places");
}

TEST(Compare, ARenamedFunctionHasTheSameDefect) {
  Leak renamed = {.function = "device_open"};
  for (const Base& base : {BaseOf(AuditOf({Sweep({Leak()})})), FileOf(AuditOf({Sweep({Leak()})}))}) {
    Audit head = AuditOf({Sweep({renamed})});
    ASSERT_NE(head.cases[0].runs[0].defects[0].fingerprint, base.defects[0].fingerprint);
    CompareWith(base, &head);
    EXPECT_EQ(ChangesOf(head), std::vector<Change>{Change::Unchanged});
    EXPECT_TRUE(head.comparison->gone.empty());
    const std::vector<report::TakenFor>& taken = head.cases[0].runs[0].defects[0].taken_for;
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(report::Describe(head.cases[0].runs[0], head.cases[0].runs[0].defects[0], taken[0]),
              "taken for open_device of the base (function renamed), " + base.defects[0].fingerprint +
                  ": open_device -> device_open src/player.c:10");
    Audit same = AuditOf({Sweep({Leak()})});
    CompareWith(base, &same);
    EXPECT_TRUE(same.cases[0].runs[0].defects[0].taken_for.empty()) << "its fingerprint is the same";
  }
}

// One function was repaired and its neighbour got the same mistake. Both functions are in both reports.
TEST(Compare, ANeighbourWithTheSameMistakeIsNew) {
  Leak neighbour = {.function = "open_other"};
  Audit head = AuditOf({Sweep({neighbour}, {Tried("open_device")})});
  CompareWith(BaseOf(AuditOf({Sweep({Leak()}, {Tried("open_other")})})), &head);
  EXPECT_EQ(ChangesOf(head), std::vector<Change>{Change::New});
  ASSERT_EQ(head.comparison->gone.size(), 1U);
  EXPECT_EQ(head.comparison->gone[0].change, Change::Fixed);
}

// Another function is blamed for some of the failing calls, and nothing else is lost.
TEST(Compare, ADefectThatBecomesTwoIsNeitherNewNorFixed) {
  Leak whole = {.failing = {"cuEventCreate", "cuMemAlloc"}};
  const Audit one = AuditOf({Sweep({whole})});
  report::Run run = Sweep({whole});
  run.defects.push_back(run.defects[0]);
  run.defects[0].members[0].findings = {0};
  run.defects[1].members[0].findings = {1};
  run.defects[1].blame = report::Blame{At("close_device", 40), report::BlamedBecause::BeganRelease};
  run.defects[1].fingerprint = "v2-ffffffffffffffff";
  Audit two = AuditOf({run});
  CompareWith(BaseOf(one), &two);
  EXPECT_EQ(ChangesOf(two), (std::vector{Change::Unchanged, Change::Unchanged}));
  EXPECT_TRUE(two.comparison->gone.empty());
  Audit again = one;
  CompareWith(BaseOf(AuditOf({run})), &again);
  EXPECT_TRUE(again.comparison->gone.empty()) << "and one again";
}

TEST(Compare, OneReportIsComparedWithTheOnlyCase) {
  Audit head = AuditOf({Sweep({Leak()})}, "");
  CompareWith(BaseOf(AuditOf({Sweep({Leak()})}, "player")), &head);
  EXPECT_EQ(ChangesOf(head), std::vector<Change>{Change::Unchanged});
}

TEST(Compare, ADefectWithoutAFaultIsFixedByTheRun) {
  report::Run run = {.mode = report::Mode::Run, .outcome = report::Outcome::Findings};
  report::Finding finding;
  finding.rule = report::Rule::DoubleRelease;
  finding.kind = "stream";
  finding.where = "cuStreamDestroy";
  finding.where_stack = {At("close", 9)};
  run.findings.push_back(finding);
  FindDefects(&run);
  report::Run clean = {.mode = report::Mode::Run, .outcome = report::Outcome::Clean};
  EXPECT_EQ(Fate(BaseOf(AuditOf({run})), AuditOf({clean})), "fixed");
  clean.outcome = report::Outcome::Error;
  clean.message.told = "the program exited with status 3";
  EXPECT_EQ(Fate(BaseOf(AuditOf({run})), AuditOf({clean})), "error: the program exited with status 3");
}

// A leak that only a second fault shows: cuStreamDestroy fails after cuEventCreate has.
report::Run OnTheWayBack() {
  report::Run run = Sweep({Leak()});
  report::Finding& finding = run.findings[0];
  finding.then = {
      {"cuStreamSynchronize", 1, "refuse", "ILLEGAL_ADDRESS", "cuStreamSynchronize#1=ILLEGAL_ADDRESS,refuse", {At("close", 40)}}};
  run.coverage->tried.push_back({"cuStreamSynchronize", "ILLEGAL_ADDRESS", "refuse", true, "", 1});
  FindDefects(&run);
  return run;
}

TEST(Compare, ADefectOfTwoFaultsIsFixedOnlyWhenNoTrialWasLeftOut) {
  const Audit before = AuditOf({OnTheWayBack()});
  const report::Run clean = Sweep({}, OnTheWayBack().coverage->tried);
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, AuditOf({clean})), "fixed");
    for (const report::Reason why : {report::Reason::BeyondLimit, report::Reason::OverBudget, report::Reason::NotChosen,
                                     report::Reason::SecondNotChosen, report::Reason::SecondKilled}) {
      report::Run left_out = clean;
      left_out.totals.skipped[{why, ""}] = 3;
      EXPECT_EQ(Fate(base, AuditOf({left_out})), "it needs 2 faults in one trial, and trials were left out: " + words::Words(why));
    }
    report::Run chosen = clean;
    chosen.message.chosen = report::Part{3, 9};
    EXPECT_EQ(Fate(base, AuditOf({chosen})), "it needs 2 faults in one trial, and trials were left out");
    report::Run depth = clean;
    depth.coverage->tried.pop_back();
    EXPECT_EQ(Fate(base, AuditOf({depth})), "then cuStreamSynchronize=ILLEGAL_ADDRESS,refuse was not made to fail");
  }
  report::Run killed = OnTheWayBack();
  killed.totals.skipped[{report::Reason::SecondKilled, ""}] = 1;
  report::Run still = clean;
  still.totals.skipped = killed.totals.skipped;
  EXPECT_EQ(Fate(BaseOf(AuditOf({killed})), AuditOf({still})), "fixed") << "the base left out the same";
  report::Run limited = Sweep({}, {Tried("open_device")});
  limited.totals.skipped[{report::Reason::BeyondLimit, ""}] = 3;
  EXPECT_EQ(Fate(BaseOf(AuditOf({Sweep({Leak()})})), AuditOf({limited})), "fixed") << "a first fault is known by its function";
}

TEST(Compare, ADefectOfThreeFaultsNeedsTrialsWithThree) {
  report::Run three = OnTheWayBack();
  three.findings[0].then.insert(three.findings[0].then.begin(), *three.findings[0].fault);
  FindDefects(&three);
  report::Run clean = Sweep({}, three.coverage->tried);
  const Audit before = AuditOf({three});
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, AuditOf({clean})),
              "it needs 3 faults in one trial, and the report does not say that there were as many (--depth)");
    report::Run deep = clean;
    deep.sequence = report::Sequence();
    deep.sequence->trials.emplace_back().faults = {"a", "b", "c"};
    EXPECT_EQ(Fate(base, AuditOf({deep})), "fixed");
  }
}

TEST(Compare, WhatTheHeadDoesNotLookAtIsNotFixed) {
  Leak leak = {.kind = "host_heap"};
  report::Run run = Sweep({leak});
  run.host.probes = {"host_fd", "host_heap"};
  run.driver.kind = report::DriverKind::Simulated;
  run.driver.world = "schedule=lazy";
  run.scope = "process";
  const Audit before = AuditOf({run});
  report::Run clean = Sweep({}, run.coverage->tried);
  clean.host = run.host;
  clean.driver = run.driver;
  clean.scope = run.scope;
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, AuditOf({clean})), "fixed");
    report::Run without = clean;
    without.host.probes = {"host_fd"};
    EXPECT_EQ(Fate(base, AuditOf({without})), "nobody looked at host_heap (--host)");
    report::Run real = clean;
    real.driver.kind = report::DriverKind::Genuine;
    EXPECT_EQ(Fate(base, AuditOf({real})), "the driver is another one: real, and the base has sim");
    report::Run eager = clean;
    eager.driver.world = "schedule=eager";
    EXPECT_EQ(Fate(base, AuditOf({eager})), "the simulated driver is another one: schedule=eager, and the base has schedule=lazy");
    report::Run pinned = clean;
    pinned.scope = "pinned";
    EXPECT_EQ(Fate(base, AuditOf({pinned})), "the scope is another one: pinned, and the base has process");
  }
}

TEST(Compare, MoreObjectsOrTwiceTheBytesAreAChange) {
  const auto with = [](std::uint64_t count, std::uint64_t bytes) {
    report::Run run = Sweep({Leak()});
    run.findings[0].count = count;
    run.findings[0].bytes = bytes;
    FindDefects(&run);
    return AuditOf({run});
  };
  for (const Base& base : {BaseOf(with(2, 100)), FileOf(with(2, 100))}) {
    Audit same = with(2, 199);
    CompareWith(base, &same);
    EXPECT_EQ(ChangesOf(same), std::vector<Change>{Change::Unchanged});
    for (Audit more : {with(3, 100), with(2, 200)}) {
      CompareWith(base, &more);
      ASSERT_EQ(ChangesOf(more), std::vector<Change>{Change::Changed});
      EXPECT_EQ(more.cases[0].runs[0].defects[0].was, "2 stream of 100 bytes; calls fail at 1 place: cuEventCreate");
    }
  }
  Base old = FileOf(with(2, 100));
  old.defects[0].lost.clear();
  Audit more = with(3, 100);
  CompareWith(old, &more);
  EXPECT_EQ(ChangesOf(more), std::vector<Change>{Change::Unchanged});
}

}  // namespace
}  // namespace cuaudit::harness::compare_test
