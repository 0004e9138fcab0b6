// SPDX-License-Identifier: MIT
// What is gone of a base: fixed, or not run, or taken for something else.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/compare/compare.h"
#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/json_reader.h"
#include "reports/message.h"
#include "reports/writers.h"
#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::fixed_test {
namespace {

// What is gone is fixed only when the new audit could have shown it.

using namespace small_audits;  // NOLINT(google-build-using-namespace)

const std::string kWay = "cuEventCreate=OUT_OF_MEMORY,refuse in open_device";
const std::string kNotTried = kWay + " was not made to fail";

TEST(Fixed, AFunctionIsRenamedOnlyWhenAnotherOneMakesTheSameCalls) {
  Leak twice = {.failing = {"cuEventCreate", "cuMemAlloc"}};
  const Base base = BaseOf(AuditOf({Sweep({twice})}));
  const auto head = [](std::vector<report::Tried> tried) { return AuditOf({Sweep({}, tried)}); };
  EXPECT_EQ(Fate(base, head({Tried("device_open"), Tried("device_open", "cuMemAlloc")})), "fixed");
  EXPECT_EQ(Fate(base, head({Tried("other")})), kNotTried) << "it makes one of the two calls";
  EXPECT_EQ(Fate(base, head({Tried("one"), Tried("two", "cuMemAlloc")})), kNotTried) << "two functions for one";
  report::Tried more = Tried("device_open");
  more.places = 2;
  EXPECT_EQ(Fate(base, head({more, Tried("device_open", "cuMemAlloc")})), kNotTried) << "at more places";
  EXPECT_EQ(Fate(base, head({Tried("device_open"), Tried("device_open", "cuMemAlloc"), Tried("other")})), kNotTried)
      << "one function more, so nobody knows which one it is";
  const Base beside = BaseOf(AuditOf({Sweep({Leak()}, {Tried("close", "cuMemFree")})}));
  EXPECT_EQ(Fate(beside, head({Tried("other"), Tried("stop", "cuMemHostUnregister")})), kNotTried) << "another program";
}

TEST(Fixed, AReplayLooksForWhatItsOwnFaultsShow) {
  const std::string fault = "cuEventCreate#1=OUT_OF_MEMORY,refuse";
  const Audit before = AuditOf({Replay({Leak()}, fault, "cuEventCreate", "open_device")});
  const auto head = [](const std::string& text, const std::string& call, const std::string& function) {
    return AuditOf({Replay({}, text, call, function)});
  };
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, head(fault, "cuEventCreate", "open_device")), "fixed");
    EXPECT_EQ(Fate(base, head("cuEventCreate#4@work=OUT_OF_MEMORY,refuse", "cuEventCreate", "open_device")), "fixed") << "calls before it";
    EXPECT_EQ(Fate(base, head("cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuMemAlloc", "open_device")), kNotTried);
    EXPECT_EQ(Fate(base, head("cuEventCreate#1=INVALID_VALUE,refuse", "cuEventCreate", "open_device")), kNotTried);
    EXPECT_EQ(Fate(base, head("cuEventCreate#1=OUT_OF_MEMORY,after", "cuEventCreate", "open_device")), kNotTried);
    EXPECT_EQ(Fate(base, head(fault, "cuEventCreate", "other")), kNotTried) << "the same count is another call now";
  }
  Audit no_fault = head(fault, "cuEventCreate", "open_device");
  no_fault.cases[0].runs[0].faults.clear();
  EXPECT_EQ(Fate(BaseOf(before), no_fault), kNotTried);
}

TEST(Fixed, AReplayOfABurstIsKnownByAllItsWords) {
  report::Run run = Replay({Leak()}, "cuEventCreate#1=OUT_OF_MEMORY,refuse,burst=3", "cuEventCreate", "open_device");
  run.findings[0].fault->how = "refuse,burst=3";
  FindDefects(&run);
  const auto head = [](const std::string& text) { return AuditOf({Replay({}, text, "cuEventCreate", "open_device")}); };
  EXPECT_EQ(Fate(BaseOf(AuditOf({run})), head(run.faults[0].text)), "fixed");
  EXPECT_NE(Fate(BaseOf(AuditOf({run})), head("cuEventCreate#1=OUT_OF_MEMORY,refuse")), "fixed");
  EXPECT_NE(Fate(BaseOf(AuditOf({run})), head("cuEventCreate#1=OUT_OF_MEMORY")), "fixed") << "without a way it means refuse";
}

TEST(Fixed, AReplayOfTwoFaultsNeedsBoth) {
  report::Run run = Replay({Leak()}, "cuEventCreate#1=OUT_OF_MEMORY,refuse", "cuEventCreate", "open_device");
  const std::string second = "cuStreamSynchronize#+1=ILLEGAL_ADDRESS,refuse";
  run.findings[0].then = {{"cuStreamSynchronize", 1, "refuse", "ILLEGAL_ADDRESS", second, {At("close", 40)}}};
  FindDefects(&run);
  run.faults.push_back({second, false});
  report::Run clean = Replay({}, run.faults[0].text, "cuEventCreate", "open_device");
  EXPECT_EQ(Fate(BaseOf(AuditOf({run})), AuditOf({clean})), "then cuStreamSynchronize=ILLEGAL_ADDRESS,refuse was not made to fail");
  clean.faults = run.faults;
  EXPECT_EQ(Fate(BaseOf(AuditOf({run})), AuditOf({clean})), "fixed");
}

Audit WithCommand(report::Run run, std::vector<std::string> command, std::vector<std::string> settings = {}) {
  run.command = std::move(command);
  run.settings = std::move(settings);
  return AuditOf({std::move(run)});
}

TEST(Fixed, AnotherCommandShowsNothing) {
  const Base base = BaseOf(WithCommand(Sweep({Leak()}), {"/old/player", "2", "/old/film.mp4"}, {"--environment=MODE=fast"}));
  const report::Run clean = Sweep({}, {Tried("open_device")});
  const auto head = [&](std::vector<std::string> command, const std::string& mode = "fast") {
    return WithCommand(clean, std::move(command), {"--environment=MODE=" + mode});
  };
  EXPECT_EQ(Fate(base, head({"new/player", "2", "/new/film.mp4"})), "fixed") << "another checkout";
  EXPECT_EQ(Fate(base, head({"new/player", "1", "/new/film.mp4"})),
            "the command is another one: new/player 1 /new/film.mp4, and the base has /old/player 2 /old/film.mp4");
  for (const std::vector<std::string>& other : std::vector<std::vector<std::string>>{{"/old/recorder", "2", "/old/film.mp4"},
                                                                                     {"/old/player", "2"},
                                                                                     {"/old/player", "2", "/old/other.mp4"},
                                                                                     {"/old/player", "2", "/old/film.mp4", "-v"}}) {
    EXPECT_TRUE(Fate(base, head(other)).starts_with("the command is another one: ")) << other.back();
  }
  EXPECT_EQ(Fate(base, head({"player", "2", "/film.mp4"}, "slow")),
            "the environment is another one: MODE=slow, and the base has MODE=fast");
  Audit told = head({"player", "1", "/film.mp4"});
  CompareWith(base, &told);
  ASSERT_EQ(told.comparison->warnings.size(), 1U);
  EXPECT_EQ(told.comparison->warnings[0],
            "player, sweep: the command is another one: player 1 /film.mp4, and the base has /old/player 2 /old/film.mp4");
  std::ostringstream text;
  ASSERT_TRUE(report::WriteComparisonText(told, text, false));
  EXPECT_NE(text.str().find("  warning  player, sweep: the command is another one: "), std::string::npos) << text.str();
  Audit same = head({"player", "2", "/film.mp4"});
  CompareWith(base, &same);
  EXPECT_TRUE(same.comparison->warnings.empty());
}

TEST(Fixed, WhatIsNotAcquiredAnyMoreIsNotLookedFor) {
  const auto with = [](report::Run run, const std::string& call) {
    run.sequence = report::Sequence();
    run.sequence->places = {{"cuEventCreate", At("open_device", 101)}, {call, At("open_device", 10)}};
    return AuditOf({std::move(run)});
  };
  const report::Run clean = Sweep({}, {Tried("open_device")});
  const Audit before = with(Sweep({Leak()}), "cuStreamCreate");
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, with(clean, "cuStreamCreate")), "fixed");
    EXPECT_EQ(Fate(base, with(clean, "cuStreamCreate_v2")), "fixed");
    EXPECT_EQ(Fate(base, with(clean, "cuInit")), "cuStreamCreate is not made any more");
    Audit more = with(clean, "cuInit");
    more.cases[0].runs[0].sequence->more = 7;
    EXPECT_EQ(Fate(base, more), "fixed") << "it may be among the calls that are not listed";
    Audit back = with(Sweep({}, {Tried("open_device"), {"cuStreamCreate", "OUT_OF_MEMORY", "refuse", true, "", 1}}), "cuInit");
    EXPECT_EQ(Fate(base, back), "fixed") << "it is made on a way back";
  }
  EXPECT_EQ(Fate(BaseOf(with(Sweep({Leak()}), "cuInit")), with(clean, "cuInit")), "fixed") << "the base had it on a way back only";
}

TEST(Fixed, ASettingThatAcceptsTheDefectHidesIt) {
  Leak leak;
  report::Run run = Sweep({leak});
  const auto as = [&run](report::Rule rule) {
    report::Run other = run;
    for (report::Finding& finding : other.findings) finding.rule = rule;
    FindDefects(&other);
    return other;
  };
  const report::Run clean = Sweep({}, {Tried("open_device")});
  struct Row {
    report::Rule rule;
    std::vector<std::string> before;
    std::vector<std::string> after;
    std::string fate;
  };
  const std::string benign = "--benign=cuEventCreate#2@player!open_device";
  const std::vector<Row> rows = {
      {report::Rule::Orphaned, {"--orphans=finding"}, {}, "the base has --orphans=finding"},
      {report::Rule::Orphaned, {"--orphans=finding"}, {"--orphans=finding", "--stacks=8"}, "fixed"},
      {report::Rule::Orphaned, {}, {"--orphans=finding"}, "fixed"},
      {report::Rule::Leak, {"--orphans=finding"}, {}, "fixed"},
      {report::Rule::Leak, {"--abandoned-is-leak"}, {}, "the base has --abandoned-is-leak"},
      {report::Rule::Swallowed, {"--strict-exit"}, {}, "the base has --strict-exit"},
      {report::Rule::Swallowed, {}, {benign}, benign + " was not there in the base"},
      {report::Rule::Swallowed, {benign}, {benign}, "fixed"},
      {report::Rule::Swallowed, {}, {"--benign=cuMemAlloc"}, "fixed"},
      {report::Rule::LeftAtExit, {}, {"--allow-left"}, "--allow-left was not there in the base"},
      {report::Rule::LeftAtExit, {}, {"--lifetime=kept.txt"}, "--lifetime=kept.txt was not there in the base"},
      {report::Rule::DoubleRelease, {}, {"--allow-left", "--deadline-ms=9"}, "fixed"},
  };
  for (const Row& row : rows) {
    const Audit before = WithCommand(as(row.rule), {"player"}, row.before);
    for (const Base& base : {BaseOf(before), FileOf(before)}) {
      EXPECT_EQ(Fate(base, WithCommand(clean, {"player"}, row.after)), row.fate) << (row.before.empty() ? row.after : row.before)[0];
    }
  }
}

TEST(Fixed, AReportHasItsSettings) {
  report::Run run = Sweep({});
  run.settings = {"--orphans=finding", "--benign=cuMemAlloc@player!open \x01"};
  std::ostringstream out;
  ASSERT_TRUE(report::WriteJson(run, out));
  report::Run read;
  EXPECT_EQ(report::ReadJson(out.str(), &read), "");
  EXPECT_EQ(read.settings, run.settings);
}

report::Run Cycles(std::vector<std::uint64_t> counts, std::vector<std::uint64_t> live) {
  report::Run run = {.mode = report::Mode::Cycles, .outcome = report::Outcome::Clean, .cycle_counts = std::move(counts)};
  report::CycleRow& row = run.cycle_rows.emplace_back();
  row.kind = "stream";
  row.acquired = {"cuStreamCreate", {At("open_device", 10)}};
  row.live = std::move(live);
  return run;
}

report::Finding Grows(report::Rule rule) {
  return {.rule = rule, .kind = "stream", .acquired = {"cuStreamCreate", {At("open_device", 10)}}};
}

report::Run Growing(std::vector<std::uint64_t> counts, std::vector<std::uint64_t> live) {
  report::Run run = Cycles(std::move(counts), std::move(live));
  run.outcome = report::Outcome::Findings;
  run.findings = {Grows(report::Rule::Growth)};
  FindDefects(&run);
  return run;
}

// The base asked for 1 and 10 cycles, and went on because something grew.
TEST(Fixed, GrowthIsFixedByAsManyCyclesAsFirstShowedIt) {
  const Audit before = AuditOf({Growing({1, 10, 20, 40, 80}, {1, 10, 20, 40, 80})});
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, AuditOf({Cycles({1, 10}, {0, 0})})), "fixed");
    EXPECT_EQ(Fate(base, AuditOf({Cycles({1, 5}, {0, 0})})), "fewer cycles were run: 5, and the base has 10");
    report::Run undecided = Growing({1, 10}, {1, 2});
    undecided.findings[0].kind = "event";
    undecided.findings[0].acquired.call = "cuEventCreate";
    FindDefects(&undecided);
    undecided.notes = {Grows(report::Rule::Undecided)};
    EXPECT_EQ(Fate(base, AuditOf({undecided})), "what cuStreamCreate acquires grows, and may be a leak");
  }
  const Audit late = AuditOf({Growing({1, 10, 20, 40}, {1, 1, 1, 2})});
  EXPECT_EQ(Fate(BaseOf(late), AuditOf({Cycles({1, 10}, {0, 0})})), "fewer cycles were run: 10, and the base has 40");
  report::Run no_row = Growing({1, 10, 40}, {1, 10, 40});
  no_row.cycle_rows.clear();
  const Audit meter = AuditOf({no_row});
  EXPECT_EQ(Fate(FileOf(meter), AuditOf({Cycles({1, 10}, {0, 0})})), "fewer cycles were run: 10, and the base has 40");
  Base old = FileOf(before);
  old.defects[0].shown_by.cycles = 0;
  EXPECT_EQ(Fate(old, AuditOf({Cycles({1, 80}, {0, 0})})), "the baseline does not say how many cycles showed it");
}

// The same program, compiled without function names, or audited without stacks.
TEST(Fixed, DefectsWithoutFunctionNamesAreNotFixedByThoseWithNames) {
  Leak nameless = {.function = "", .caller = ""};
  for (const Base& base : {BaseOf(AuditOf({Sweep({nameless})})), FileOf(AuditOf({Sweep({nameless})}))}) {
    Audit head = AuditOf({Sweep({Leak()})});
    EXPECT_EQ(Fate(base, head), "the base has no function names");
    CompareWith(base, &head);
    EXPECT_EQ(ChangesOf(head), std::vector<Change>{Change::New});
    EXPECT_EQ(Fate(base, AuditOf({Sweep({}, {Tried("")})})), "fixed") << "neither of them has names";
  }
  for (const Base& base : {BaseOf(AuditOf({Sweep({Leak()})})), FileOf(AuditOf({Sweep({Leak()})}))}) {
    EXPECT_EQ(Fate(base, AuditOf({Sweep({nameless})})), "the report has no function names");
  }
  report::Run grown = Growing({1, 10}, {1, 10});
  for (report::Frame& frame : grown.findings[0].acquired.stack) frame.function.clear();
  grown.cycle_rows[0].acquired = grown.findings[0].acquired;
  FindDefects(&grown);
  EXPECT_EQ(Fate(BaseOf(AuditOf({grown})), AuditOf({Cycles({1, 10}, {1, 1})})), "the base has no function names");
}

// What of the base vanished without a defect, what was taken for what, the identifier of a base, and many defects.

// What was not run of the base, whether it has defects there or not, in words.
std::string Missing(const Base& base, Audit head) {
  CompareWith(base, &head);
  std::string text;
  for (const report::NotProved& one : head.comparison->not_run) {
    text += one.case_name + ", " + std::string(report::Name(one.mode)) + ": " + one.why + "\n";
  }
  return text;
}

TEST(Compare, ACleanCaseOfTheBaseThatVanishesIsNotRun) {
  Audit before = AuditOf({Sweep({}, {Tried("open_device")})});
  before.cases.push_back(AuditOf({Sweep({Leak()})}, "decoder").cases[0]);
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Missing(base, before), "");
    EXPECT_EQ(Missing(base, AuditOf({Sweep({Leak()})}, "decoder")), "player, sweep: the case is gone\n");
    EXPECT_EQ(Missing(base, Audit()), "decoder, sweep: the case is gone\nplayer, sweep: the case is gone\n");
  }
}

TEST(Compare, ACleanModeOfTheBaseThatVanishesIsNotRun) {
  report::Run cycles = {.mode = report::Mode::Cycles, .outcome = report::Outcome::Clean};
  const Audit before = AuditOf({Sweep({Leak()}), cycles});
  Audit left_out = AuditOf({Sweep({Leak()})});
  left_out.cases[0].not_run = "the budget has no time for its cycles";
  report::Run unexercised = cycles;
  unexercised.outcome = report::Outcome::NotExercised;
  unexercised.message.told = "no driver call";
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Missing(base, AuditOf({Sweep({Leak()})})), "player, cycles: the case has no cycles\n");
    EXPECT_EQ(Missing(base, AuditOf({Sweep({Leak()})}, "")), ", cycles: the case has no cycles\n") << "the only case";
    // The head itself says so of these; each is said once.
    for (Audit head : {left_out, AuditOf({Sweep({Leak()}), unexercised})}) {
      EXPECT_EQ(Missing(base, head), "");
      CompareWith(base, &head);
      EXPECT_EQ(report::NothingProved(head).size(), 1U);
    }
  }
  EXPECT_EQ(Missing(BaseOf(AuditOf({Sweep({Leak()}), unexercised})), AuditOf({Sweep({Leak()})})), "")
      << "what proved nothing before is no loss";
}

TEST(Compare, ABaselineOfVersionOneHasNoRuns) {
  Baseline known = BaselineOf(AuditOf({Sweep({Leak()})}));
  known.runs.clear();
  std::string text = BaselineText(known);
  text.replace(0, text.find('\n'), "cuaudit baseline 1");
  const Result<Baseline> old = ParseBaseline(text, "base.txt");
  ASSERT_TRUE(old.ok()) << old.status().message();
  EXPECT_EQ(Missing({"base.txt", old->defects, old->runs, {}}, Audit()), "");
  EXPECT_EQ(Fate({"base.txt", old->defects, old->runs, {}}, Audit()), "the case is gone");
}

TEST(Compare, EachWayToTakeADefectForAnotherHasItsReason) {
  const auto why = [](const Leak& before, Leak after) {
    Audit head = AuditOf({Sweep({after})});
    CompareWith(BaseOf(AuditOf({Sweep({before})})), &head);
    const std::vector<report::TakenFor>& taken = head.cases[0].runs[0].defects[0].taken_for;
    return taken.size() == 1 ? std::string(words::Name(taken[0].why)) + " " + taken[0].function : std::to_string(taken.size());
  };
  Leak moved = {.function = "player::Device<int>::open_device"};
  EXPECT_EQ(why(Leak(), moved), "moved open_device");
  Leak inlined = {.function = "main", .caller = "_start"};
  EXPECT_EQ(why({"open_device", "stream", {"cuEventCreate"}, "main", "cuStreamCreate"}, inlined), "inlined open_device");
}

// Whoever compares by a SARIF file finds the same base, whether it was a result or the baseline file of it.
TEST(Compare, ABaseHasOneIdentifierHoweverItIsKept) {
  const Audit before = AuditOf({Sweep({Leak()})});
  Audit head = before;
  CompareWith(BaseOf(before), &head);
  const std::string guid = head.comparison->base_guid;
  EXPECT_EQ(guid, report::GuidOf(report::ResultKeysOf(before)));
  CompareWith(FileOf(before), &head);
  EXPECT_EQ(head.comparison->base_guid, guid);
  CompareWith(BaseOf(AuditOf({Sweep({})})), &head);
  EXPECT_NE(head.comparison->base_guid, guid);
}

// Every function is renamed, so that every defect may be every other one, and a second time none is left.
TEST(Compare, TenThousandDefectsOnEitherSideAreCompared) {
  constexpr int kCount = 10000;
  const auto many = [](const std::string& prefix) {
    std::vector<Leak> leaks;
    for (int i = 0; i < kCount; ++i) {
      const std::string number = std::to_string(i);
      leaks.push_back({prefix + number, "stream", {"cuEventCreate"}, "caller" + number, "cuStreamCreate"});
    }
    report::Run run = Sweep(leaks);
    run.defects.clear();  // all are of one trial there
    for (std::size_t i = 0; i < run.findings.size(); ++i) {
      report::Defect& defect = run.defects.emplace_back();
      defect.members = {{{i}, 1, 0}};
      defect.blame = report::Blame{run.findings[i].acquired.stack[0], report::BlamedBecause::HeldIt};
      defect.fingerprint = "v2-" + prefix + std::to_string(i) + "x";
    }
    return AuditOf({run});
  };
  const Audit before = many("open_");
  Audit head = many("create_");
  CompareWith(BaseOf(before), &head);
  const std::vector<report::Defect>& defects = head.cases[0].runs[0].defects;
  ASSERT_EQ(defects.size(), static_cast<std::size_t>(kCount));
  for (const report::Defect& defect : defects) {
    ASSERT_EQ(defect.change, Change::Unchanged);
    const std::string is = defect.blame->function.function;
    ASSERT_EQ(defect.taken_for.at(0).function, "open_" + is.substr(is.find('_') + 1));
  }
  EXPECT_TRUE(head.comparison->gone.empty());
  Audit repaired = AuditOf({Sweep({}, before.cases[0].runs[0].coverage->tried)});
  CompareWith(BaseOf(before), &repaired);
  EXPECT_EQ(repaired.comparison->gone.size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(repaired.comparison->gone.back().change, Change::Fixed);
}

}  // namespace
}  // namespace cuaudit::harness::fixed_test
