// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "harness/defect/defects.h"
#include "reports/defect_words.h"
#include "reports/text_findings.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::text_writer_test {
namespace {

std::string Written(const Run& run, bool colour = false) {
  std::ostringstream out;
  EXPECT_TRUE(WriteText(run, out, {.colour = colour}));
  return out.str();
}

bool Holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(TextWriter, ASimulatedDriverAlwaysSaysSo) {
  for (suites::Sample& sample : suites::Samples()) {
    sample.run.driver.kind = DriverKind::Simulated;
    EXPECT_TRUE(Holds(Written(sample.run), "driver   simulated")) << sample.name;
    EXPECT_TRUE(Holds(Written(sample.run), " on the simulated driver: ")) << sample.name;
    sample.run.driver.kind = DriverKind::Genuine;
    EXPECT_FALSE(Holds(Written(sample.run), "driver   simulated")) << sample.name;
    EXPECT_TRUE(Holds(Written(sample.run), " on the genuine driver: ")) << sample.name;
  }
}

TEST(TextWriter, NotExercisedIsSaidOnce) {
  report::Run run = {.mode = Mode::Sweep, .outcome = Outcome::NotExercised};
  run.message.nothing = NothingPlanned::NothingCanFail;
  EXPECT_TRUE(Written(run).starts_with("cuaudit sweep: not exercised\n  no call of the program can be made to fail\n")) << Written(run);
}

TEST(TextWriter, AFindingNamesWhereItWasAcquiredAndWhatLostIt) {
  const std::string text = Written(suites::SweepWithFindings());
  EXPECT_TRUE(Holds(text, ": 2 defects\n"));
  EXPECT_TRUE(Holds(text, "     picture_alloc held it, saw the failure and returned\n")) << text;
  EXPECT_TRUE(Holds(text, "1. leak: 1 stream"));
  EXPECT_TRUE(Holds(text, "acquired by cuStreamCreate\n       libplug.so+0x77\n       make_stream src/picture.c:61"));
  EXPECT_TRUE(Holds(text, "lost when cuEventCreate#2=OUT_OF_MEMORY,refuse failed\n       make_events src/picture.c:88"));
  EXPECT_TRUE(Holds(text, "reproduce cuaudit replay"));
  EXPECT_TRUE(Holds(text, "notes: 1 not_exercised, 1 release_refused\n"));
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(TextWriter, OneDefectIsToldWithAllThatItLoses) {
  const std::string text = Written(suites::OnePlaceManyCalls());
  EXPECT_TRUE(Holds(text, ": 2 defects, 8 findings\n")) << text;
  EXPECT_TRUE(Holds(text, "1. leak: 1 stream, 1 event, in 5 trials\n")) << text;
  EXPECT_TRUE(Holds(text, "     lost when cuEventCreate#88=OUT_OF_MEMORY,refuse failed\n"));
  for (const char* const line : {"90", "92", "94", "96"}) {
    const std::string number(line);
    EXPECT_TRUE(
        Holds(text, "also lost when cuEventCreate#" + number + "=OUT_OF_MEMORY,refuse failed at make_events src/picture.c:" + number));
  }
  EXPECT_TRUE(Holds(text, "     with it 1 event, acquired by cuStreamCreate < libplug.so+0x77 < make_stream src/picture.c:70")) << text;
  EXPECT_EQ(CountOf(text, "reproduce cuaudit replay"), 2U) << "one for each defect";
  EXPECT_FALSE(Holds(text, "findings:"));
}

// One defect of one finding after one fault.
Run One(Rule rule, const Acquired& acquired, const Acquired& where, const Acquired& other) {
  Run run = {.mode = Mode::Sweep, .outcome = Outcome::Findings};
  Finding finding;
  finding.rule = rule;
  finding.kind = "stream";
  finding.count = 1;
  finding.acquired = acquired;
  finding.where = where.call;
  finding.where_stack = where.stack;
  finding.other = other;
  finding.fault = Fault{"cuMemAlloc", 1, "refuse", "OUT_OF_MEMORY", "cuMemAlloc#1=OUT_OF_MEMORY,refuse", {}};
  run.findings = {finding};
  run.defects.resize(1);
  run.defects[0].members = {{{0}, 1, 0}};
  return run;
}

Acquired Call(const char* call, const char* function, int line) { return {call, {{"prog", function, "prog.c", line, 1}}}; }

// Who mends only what the first line names has half of it still to do.
TEST(TextWriter, WhatElseLosesAThingThatIsLostWithAnotherIsNamed) {
  report::Run run = One(Rule::Leak, Call("cuUserObjectCreate", "make", 2), {}, {});
  run.findings.push_back(run.findings[0]);
  run.findings[1].kind = "host_heap";
  run.findings.push_back(run.findings[1]);
  run.findings[2].fault->text = "cuUserObjectCreate#1=INVALID_VALUE,refuse";
  run.findings[2].fault->stack = Call("", "make", 2).stack;
  run.defects[0].members.push_back({{1, 2}, 1, 64});
  EXPECT_TRUE(Holds(Written(run),
                    "     with it 1 host_heap, 64 bytes, acquired by cuUserObjectCreate < make prog.c:2\n"
                    "       also lost when cuUserObjectCreate#1=INVALID_VALUE,refuse failed at make prog.c:2\n"))
      << Written(run);
  EXPECT_EQ(CountOf(Written(run), "lost when"), 2U) << "the fault of the first thing is named once";
}

TEST(TextWriter, TheReleaseThatCameFirstIsNamed) {
  report::Run run =
      One(Rule::DoubleRelease, Call("cuStreamCreate", "open", 1), Call("cuStreamDestroy", "close", 9), Call("cuStreamDestroy", "fail", 5));
  EXPECT_TRUE(Holds(Written(run),
                    "     seen at cuStreamDestroy\n       close prog.c:9\n     first released by cuStreamDestroy\n"
                    "       fail prog.c:5\n"))
      << Written(run);
  run.findings[0].rule = Rule::UseAfterRelease;
  EXPECT_TRUE(Holds(Written(run), "     released by cuStreamDestroy\n       fail prog.c:5\n"));
  run.findings[0].rule = Rule::Deficit;
  EXPECT_TRUE(Holds(Written(run), "     closed before by cuStreamDestroy\n"));
  std::vector<std::string> says;
  for (const Step& step : StepsOf(run, run.defects[0])) says.push_back(step.says);
  EXPECT_EQ(says, (std::vector<std::string>{"acquired by cuStreamCreate", "cuMemAlloc#1=OUT_OF_MEMORY,refuse fails",
                                            "closed before by cuStreamDestroy", "seen at cuStreamDestroy"}));
}

TEST(TextWriter, WhatIsLeftChangedNamesWhoOwesItAndWhoUsedIt) {
  report::Run run = One(Rule::CaptureLeftActive, {}, Call("cuStreamBeginCapture", "compute", 13), Call("cuStreamSynchronize", "run", 39));
  EXPECT_FALSE(Holds(Written(run), "returned without"));
  run.defects[0].blame = Blame{{"prog", "compute", "prog.c", 15, 2}, BlamedBecause::HeldIt};
  EXPECT_TRUE(Holds(Written(run), "     compute returned without cuStreamEndCapture\n")) << Written(run);
  EXPECT_TRUE(Holds(Written(run), "     then used by cuStreamSynchronize\n       run prog.c:39\n"));
  EXPECT_FALSE(Holds(Written(run), "collides"));
  std::vector<std::string> says;
  for (const Step& step : StepsOf(run, run.defects[0])) says.push_back(step.says);
  EXPECT_EQ(says, (std::vector<std::string>{"cuMemAlloc#1=OUT_OF_MEMORY,refuse fails", "seen at cuStreamBeginCapture",
                                            "then used by cuStreamSynchronize"}));
  run.findings[0].rule = Rule::ContextNotRestored;
  EXPECT_TRUE(Holds(Written(run), "     compute returned without making the former context current again\n"));
  run.defects[0].blame->because = BlamedBecause::MadeTheCall;
  EXPECT_FALSE(Holds(Written(run), "returned without")) << "it only made the call";
  run = One(Rule::ContextStack, Call("cuCtxPushCurrent", "alloc", 6), {}, {});
  run.defects[0].blame = Blame{{"prog", "alloc", "prog.c", 8, 2}, BlamedBecause::HeldIt};
  EXPECT_TRUE(Holds(Written(run), "     alloc returned without cuCtxPopCurrent\n"));
  run.findings[0].acquired = {};
  EXPECT_FALSE(Holds(Written(run), "returned without")) << "it popped too much";
}

TEST(TextWriter, ASettingThatIsLeftIsNamedWithItsWayBack) {
  report::Run run = One(Rule::SettingNotRestored, {}, Call("cuCtxSetLimit", "compute", 13), Call("cuLaunchKernel", "run", 39));
  run.defects[0].blame = Blame{{"prog", "compute", "prog.c", 15, 2}, BlamedBecause::HeldIt};
  run.findings[0].title = "left";
  run.findings[0].detail = "CU_LIMIT_STACK_SIZE 1024 -> 8192";
  run.defects[0].released = Call("cuCtxSetLimit", "compute", 19);
  EXPECT_TRUE(Holds(Written(run), "left: CU_LIMIT_STACK_SIZE 1024 -> 8192\n     compute returned without putting the setting back\n"));
  EXPECT_TRUE(Holds(Written(run), "     without the fault: put back by cuCtxSetLimit < compute prog.c:19\n"));
  EXPECT_EQ(ReleaseOf(run, run.defects[0])->says, "without the fault put back by cuCtxSetLimit");
}

TEST(TextWriter, OneKindThatIsWrongInTwoWaysIsNotAddedUp) {
  report::Run run = One(Rule::Leak, Call("cuDevicePrimaryCtxRetain", "open", 6), {}, {});
  run.findings.resize(3, run.findings[0]);
  run.findings[1].rule = Rule::Deficit;
  run.findings[2].rule = Rule::Orphaned;
  run.defects[0].members = {{{0}, 1, 64}, {{1}, 1, 0}, {{2}, 2, 0}};
  EXPECT_EQ(AmountOf(run, run.defects[0]), "3 stream (64 bytes, leak), 1 stream (deficit)");
  run.findings[1].kind = "event";
  EXPECT_EQ(AmountOf(run, run.defects[0]), "3 stream (64 bytes), 1 event");
  const std::vector<Rule> rules = {Rule::UseAfterRelease, Rule::DoubleRelease, Rule::DoubleRelease};
  for (std::size_t i = 0; i < rules.size(); ++i) run.findings[i].rule = rules[i];
  run.findings[1].kind = "stream";
  run.defects[0].members = {{{0}, 1, 0}, {{1}, 1, 0}, {{2}, 1, 0}};
  EXPECT_EQ(AmountOf(run, run.defects[0]), "2 stream") << "two streams are released twice, and one of them is used in between";
}

TEST(TextWriter, FindingsAreListedBelowWhenAskedFor) {
  std::ostringstream out;
  ASSERT_TRUE(WriteText(suites::OnePlaceManyCalls(), out, {.findings = true}));
  const std::string all = out.str();
  const std::string text = all.substr(all.find("\n8 findings:\n"));
  EXPECT_TRUE(Holds(text, "1. leak: stream, 5 findings\n"));
  EXPECT_EQ(CountOf(text, "make_stream src/picture.c:61"), 1U);
  for (const char* const line : {"88", "90", "92", "94", "96"}) {
    const std::string number(line);
    EXPECT_TRUE(Holds(
        text, "lost when cuEventCreate#" + number + "=OUT_OF_MEMORY,refuse failed at make_events src/picture.c:" + number + ": 1 stream"));
  }
  EXPECT_TRUE(Holds(text, "src/picture.c:90: 1 stream, in 4 trials\n"));
  EXPECT_TRUE(Holds(text, "… and 4 more reproduce lines, see --format json"));
  EXPECT_EQ(CountOf(text, "reproduce cuaudit replay"), 1U + 2U + 1U) << "the first of five, both of two, the only one of the crash";
}

TEST(TextWriter, OfVeryManyFailingCallsSomeAreShownAndTheRestCounted) {
  report::Run run = suites::OnePlaceManyCalls();
  run.findings.resize(1);
  for (int i = 2; i <= 25; ++i) {
    run.findings.push_back(run.findings.front());
    run.findings.back().fault->text = "cuInit#" + std::to_string(i);
  }
  harness::FindDefects(&run);
  const std::string text = Written(run);
  EXPECT_TRUE(Holds(text, ": 1 defect, 25 findings\n")) << text;
  EXPECT_EQ(CountOf(text, "lost when"), 1U + 5U);
  EXPECT_TRUE(Holds(text, "… and 19 more failing calls, listed by --findings"));
  std::ostringstream out;
  ASSERT_TRUE(WriteText(run, out, {.findings = true}));
  EXPECT_EQ(CountOf(out.str(), "lost when"), 6U + 20U);
  EXPECT_TRUE(Holds(out.str(), "… and 5 more, see --format json"));
}

TEST(TextWriter, KindRuleAndPlaceKeepFindingsApart) {
  const Finding one = suites::OnePlaceManyCalls().findings.front();
  Finding other = one;
  other.fault->text = "cuInit#1";
  EXPECT_EQ(GroupByPlace({one, other}).size(), 1U);
  other.kind = "event";
  EXPECT_EQ(GroupByPlace({one, other}).size(), 2U);
  other = one;
  other.rule = Rule::Orphaned;
  EXPECT_EQ(GroupByPlace({one, other}).size(), 2U);
  other = one;
  other.acquired.stack.back().offset += 1;
  EXPECT_EQ(GroupByPlace({one, other}).size(), 2U);
  other = one;
  other.where = "cuStreamDestroy";
  EXPECT_EQ(GroupByPlace({one, other}).size(), 2U);
}

TEST(TextWriter, NothingIsLostByACrash) {
  const std::string text = Written(suites::OnePlaceManyCalls());
  EXPECT_TRUE(Holds(text, "     after cuEventCreate#2=OUT_OF_MEMORY,refuse failed\n"));
  EXPECT_FALSE(Holds(text, "lost when cuEventCreate#2="));
}

TEST(TextWriter, TheSameStackIsPrintedOnce) {
  report::Run run = suites::SweepWithFindings();
  Finding& misuse = run.findings[1];
  misuse.where_stack = misuse.acquired.stack;
  const std::string text = Written(run);
  EXPECT_EQ(CountOf(text, "player+0x2468"), 1U);
  EXPECT_TRUE(Holds(text, "seen at cuMemFree_v2, called from the same place\n"));
  misuse.where = misuse.acquired.call;
  EXPECT_EQ(CountOf(Written(run), "player+0x2468"), 1U);
  EXPECT_FALSE(Holds(Written(run), "seen at"));
  misuse.other.call = "munmap";  // what was acquired is used by a later call of the same line
  EXPECT_TRUE(Holds(Written(run), "seen at " + misuse.where + ", the same line again\n"));
}

TEST(TextWriter, NotesAreShownByRuleAndTheRestCounted) {
  const std::string text = Written(suites::AbandonedTrials());
  EXPECT_TRUE(Holds(text, ": clean, 7 trials abandoned at exit\n")) << text;
  EXPECT_TRUE(Holds(text, "notes: 7 abandoned_at_exit\n  abandoned_at_exit: the program left by exit"));
  EXPECT_EQ(CountOf(text, "    1 stream, cuStreamCreate < libplug.so+0x77 < make_stream src/picture.c:61, fault cuEventCreate#"), 5U);
  EXPECT_TRUE(Holds(text, "    … 2 more\n"));
}

TEST(TextWriter, ANoteWithoutAnotherPlaceNamesThatOfItsFault) {
  report::Run run = suites::SweepWithFindings();
  Finding note = {.rule = Rule::Absorbed};
  note.fault = Fault{
      "cuMemcpyHtoD", 1, "refuse", "INVALID_CONTEXT", "cuMemcpyHtoD#1=INVALID_CONTEXT,refuse", {{"player", "copy", "src/copy.c", 12, 0}}};
  run.notes = {note};
  EXPECT_TRUE(Holds(Written(run), "    fault cuMemcpyHtoD#1=INVALID_CONTEXT,refuse at copy src/copy.c:12\n")) << Written(run);
  run.notes[0].where = "cuMemFree";
  EXPECT_TRUE(Holds(Written(run), "    seen at cuMemFree, fault cuMemcpyHtoD#1=INVALID_CONTEXT,refuse\n")) << Written(run);
}

TEST(TextWriter, KernelsThatDidNothingAreSaid) {
  report::Run run = suites::LiveTable();
  EXPECT_TRUE(Holds(Written(run),
                    "  kernels  host kernels stood in for 3; 12 launches of kernels did nothing: register host kernels with "
                    "--kernels; of these, 2 had other parameters than the host kernel registered\n"))
      << Written(run);
  run.driver.kernels = report::Kernels{0, 1, 0};
  EXPECT_TRUE(Holds(Written(run), "  kernels  1 launch of kernels did nothing: register host kernels with --kernels\n")) << Written(run);
  run.driver.kernels = report::Kernels{4, 0, 0};
  EXPECT_TRUE(Holds(Written(run), "  kernels  host kernels stood in for 4\n")) << Written(run);
  run.driver.kernels.reset();
  EXPECT_FALSE(Holds(Written(run), "kernels"));
}

TEST(TextWriter, WhatARunLeavesIsListedByPlace) {
  const std::string text = Written(suites::LiveTable());
  EXPECT_TRUE(Holds(text, ": no rule broken, 7 objects left, 1 host resource kept until the end\n")) << text;
  const std::size_t streams = text.find("    5 stream, cuStreamCreate < load src/load.c:14\n");
  const std::size_t memory = text.find("    2 device_memory, 8388608 bytes, cuMemAlloc < plug_alloc (libplug.so) < load src/load.c:12\n");
  ASSERT_NE(streams, std::string::npos) << text;
  ASSERT_NE(memory, std::string::npos) << text;
  EXPECT_LT(streams, memory) << "the most first";
  EXPECT_FALSE(Holds(text, "notes:")) << "told once";
}

TEST(TextWriter, ObjectsThatDiedWithTheirContextHaveAColumn) {
  report::Run run = suites::LiveTable();
  EXPECT_TRUE(Holds(Written(run), "acquired  released  live    bytes\n")) << Written(run);
  run.notes.clear();
  for (LiveRow& row : run.live) row.live = 0;
  run.live[1].orphaned = 2;
  run.live[2].orphaned = 5;
  const std::string text = Written(run);
  EXPECT_TRUE(Holds(text, ": no rule broken, 7 objects orphaned\n")) << text;
  EXPECT_TRUE(Holds(text, "acquired  released  orphaned  live    bytes\n")) << text;
  EXPECT_TRUE(Holds(text, "device_memory          12        10         2     0  8388608\n")) << text;
}

TEST(TextWriter, ARunThatLeavesNothingIsClean) {
  report::Run run = suites::LiveTable();
  run.notes.clear();
  for (LiveRow& row : run.live) row.live = 0;
  EXPECT_TRUE(Holds(Written(run), ": clean\n"));
}

TEST(TextWriter, WhatNobodyJudgedOfTheHostStandsBesideTheWordClean) {
  report::Run run = suites::CleanSweep();
  run.notes.resize(1);
  run.notes[0].rule = Rule::HostLeft;
  run.notes[0].kind = "thread";
  run.notes[0].count = 1;
  run.notes[0].trials = 4;
  const std::string words = "; 1 host place left, judged with --host";
  for (const bool all : {true, false}) {
    if (!all) run.message.chosen = Part{1, 44};
    const std::string text = Written(run);
    EXPECT_TRUE(Holds(text, (all ? ": clean" : ": clean for 1 of 44 planned faults") + words + "\n")) << text;
    EXPECT_EQ(CountOf(text, "judged with --host"), 1U) << text;
    EXPECT_EQ(CountOf(text, "clean"), 1U) << text;
    EXPECT_TRUE(Holds(text, "    1 thread, after 4 faults")) << text;
  }
}

// What --limit and --call left out nobody tried: a reader of one line has to see that. Another fault stands for what was pruned.
TEST(TextWriter, OnlyWhenAllFaultsAreAccountedForTheHeadlineSaysCleanAlone) {
  report::Run run = suites::CleanSweep();
  run.message.chosen = Part{1, 44};
  run.totals.pruned = {{{Reason::SecondAsFirst}, 42}};
  EXPECT_TRUE(Holds(Written(run), ": clean for 1 of 44 planned faults\n  clean for 1 of 44 planned faults, 42 pruned as equal"));
  run.totals.pruned = {{{Reason::SecondAsFirst}, 43}};
  EXPECT_TRUE(Holds(Written(run), ": clean\n  clean for 1 of 44 planned faults, 43 pruned as equal (--no-prune tries them)\n"));
  run.totals.pruned = {};
  run.totals.skipped = {{{Reason::OverBudget}, 40}, {{Reason::BeyondLimit}, 3}};
  EXPECT_TRUE(Holds(Written(run), "\n  clean for 1 of 44 planned faults, 40 trials left out when --budget was spent, 3 beyond --limit\n"));
}

TEST(TextWriter, OfManyPlacesARunLeftObjectsAtTenAreListed) {
  report::Run run = suites::LiveTable();
  for (int i = 0; i < 11; ++i) run.notes.push_back(run.notes.front());
  const std::string text = Written(run);
  EXPECT_EQ(CountOf(text, "cuStreamCreate <") + CountOf(text, "cuMemAlloc <"), 10U);
  EXPECT_TRUE(Holds(text, "    … 3 more\n"));
}

TEST(TextWriter, CyclesShowOneColumnPerCount) {
  const std::string text = Written(suites::CyclesWithGrowth());
  EXPECT_TRUE(Holds(text, "N=1  N=10  per cycle"));
  EXPECT_TRUE(Holds(text, "malloc < state_init src/state.c:40"));
  EXPECT_TRUE(Holds(text, "growth per cycle: host_heap +2, stream +0.50"));
}

TEST(TextWriter, WhatStoppedGrowingGrowsByNothingACycle) {
  report::Run run = suites::CyclesWithGrowth();
  run.cycle_rows.resize(1);
  run.cycle_rows[0].per_cycle = 0.38;
  run.cycle_rows[0].course.trend = report::Trend::Bounded;
  EXPECT_FALSE(Holds(Written(run), "+0.38")) << Written(run);
  run.cycle_rows[0].course.trend = report::Trend::Growth;
  EXPECT_TRUE(Holds(Written(run), "+0.38")) << Written(run);
}

TEST(TextWriter, MetersThatAreNotJudgedAreCalledMeters) {
  report::Run run = suites::CyclesWithGrowth();
  run.meters = report::Meters();
  run.meters->absent[report::kAllMeters] = {Reason::MeterNoMarks};
  EXPECT_TRUE(Holds(Written(run), "  memory meters: not judged: the program marks no cycles")) << Written(run);
}

TEST(TextWriter, NothingAliveAfterCyclesIsSaid) {
  report::Run run = {.mode = Mode::Cycles, .cycle_counts = {1, 10}};
  EXPECT_TRUE(Holds(Written(run), "nothing was alive at exit"));
}

TEST(TextWriter, ColourOnlyWhenAsked) {
  for (const suites::Sample& sample : suites::Samples()) {
    EXPECT_FALSE(Holds(Written(sample.run, false), "\x1b")) << sample.name;
    EXPECT_TRUE(Holds(Written(sample.run, true), "\x1b[")) << sample.name;
  }
}

TEST(TextWriter, ControlCharactersNeverReachTheTerminal) {
  const std::string text = Written(suites::HostileStrings());
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  EXPECT_TRUE(Holds(text, "\\033[31mred"));
}

}  // namespace
}  // namespace cuaudit::report::text_writer_test
