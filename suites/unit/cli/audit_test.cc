// SPDX-License-Identifier: MIT
// The real tool over a real program on the simulated driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"
#include "suites/unit/cli/tool.h"

namespace cuaudit::harness::audit_test {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

using Words = std::vector<std::string>;

Said Tool(Words options, const Words& program, Words environment = {}) {
  options.insert(options.begin() + 1, "--driver=sim");
  options.insert(options.end(), {"--", CUAUDIT_SUBJECT});
  options.insert(options.end(), program.begin(), program.end());
  environment.emplace_back("SOURCE_DATE_EPOCH=0");
  return RunTool(options, environment);
}

Json Report(const Said& said) {
  const Json report = Json::parse(said.out, nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << said.out << said.err;
  return report;
}

std::size_t CountRule(const Json& findings, const std::string& rule) {
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), [&](const Json& one) { return one["rule"] == rule; }));
}

TEST(Sweep, SoundProgramIsClean) {
  const Said said = Tool({"sweep", "--format=json"}, {"sound"});
  EXPECT_EQ(said.status, 0) << said.err;
  const Json report = Report(said);
  EXPECT_EQ(report["outcome"], "clean");
  EXPECT_GE(report["totals"]["fired"], 8);
  EXPECT_EQ(report["totals"]["fired"], report["totals"]["trials"]);
}

TEST(Sweep, SeveralFormatsComeFromOneSweep) {
  const TemporaryDir dir;
  const Said said =
      Tool({"sweep", "--format=text", "--format=json=" + dir.File("a.json"), "--format=junit=" + dir.File("a.xml")}, {"leaks"});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_THAT(said.out, HasSubstr("cuaudit sweep on the simulated driver: 1 defect\n"));
  EXPECT_EQ(*ReadFile(dir.File("a.json")), Tool({"sweep", "--format=json"}, {"leaks"}).out) << "the same bytes on stdout";
  EXPECT_EQ(*ReadFile(dir.File("a.xml")), Tool({"sweep", "--format=junit"}, {"leaks"}).out);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 2) << "nothing is left of how they were written";
}

TEST(Sweep, AResultThatCannotBeWrittenKeepsNoOtherBack) {
  const TemporaryDir dir;
  const Said said = Tool({"sweep", "--format=text=/dev/full", "--format=json=" + dir.File("a.json")}, {"sound"});
  EXPECT_EQ(said.status, 125);
  EXPECT_THAT(said.err, HasSubstr("/dev/full: cannot write"));
  EXPECT_EQ(Json::parse(*ReadFile(dir.File("a.json")))["outcome"], "clean");
}

TEST(Replay, AFaultWithoutAnErrorTakesTheLikeliestAndSaysWhich) {
  const Said said = Tool({"replay", "--format=json", "--fault=cuMemAlloc#1"}, {"leaks"});
  EXPECT_THAT(said.err, HasSubstr("--fault: 'cuMemAlloc#1': no error given, taken the likeliest documented one: "
                                  "cuMemAlloc#1=OUT_OF_MEMORY,refuse\n"));
  const Json report = Report(said);
  EXPECT_EQ(report["faults"], Json::parse(R"([{"text": "cuMemAlloc#1=OUT_OF_MEMORY,refuse", "code_chosen": true}])"));
  EXPECT_EQ(report["totals"]["fired"], 1);
  const Said text = Tool({"replay", "--fault=malloc#1", "--fault=cuMemAlloc#1=OUT_OF_MEMORY"}, {"sound"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("  fault    malloc#1=host_oom (given without an error: this is the likeliest documented one)\n"),
                              HasSubstr("  fault    cuMemAlloc#1=OUT_OF_MEMORY,refuse\n")));
}

TEST(Replay, AFaultIsReportedInOneFormHoweverItWasWritten) {
  const Json report = Report(Tool({"replay", "--format=json", "--fault=cuMemAlloc#1=OUT_OF_MEMORY,burst"}, {"leaks"}));
  EXPECT_EQ(report["faults"], Json::parse(R"([{"text": "cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=2", "code_chosen": false}])"));
}

TEST(Sweep, LeakOnAnErrorPathIsFoundAndReplayed) {
  const Said said = Tool({"sweep", "--format=json"}, {"leaks"});
  EXPECT_EQ(said.status, 1) << said.err;
  const Json report = Report(said);
  ASSERT_EQ(report["findings"].size(), 1U) << report["findings"].dump(1);
  const Json& finding = report["findings"][0];
  // The program goes on to release its primary context, so the stream dies with that instead of staying.
  EXPECT_EQ(finding["rule"], "orphaned");
  EXPECT_EQ(finding["kind"], "stream");
  EXPECT_EQ(finding["count"], 1);
  EXPECT_EQ(finding["acquired"]["call"], "cuStreamCreate");
  EXPECT_EQ(finding["acquired"]["stack"][0]["function"], "work");
  EXPECT_EQ(finding["fault"]["call"], "cuMemAlloc");
  const std::string text = finding["fault"]["text"];
  EXPECT_EQ(finding["reproduce"], CUAUDIT_TOOL " replay --driver=sim --fault '" + text + "' -- " CUAUDIT_SUBJECT " leaks");

  const Said replay = Tool({"replay", "--format=json", "--fault", text}, {"leaks"});
  EXPECT_EQ(replay.status, 1) << replay.err;
  ASSERT_EQ(Report(replay)["findings"].size(), 1U);
  EXPECT_EQ(Report(replay)["findings"][0]["fingerprint"], finding["fingerprint"]);
}

TEST(Sweep, ReportDoesNotDependOnTheNumberOfJobs) {
  const Said one = Tool({"sweep", "--format=json", "--jobs=1"}, {"leaks", "3"});
  const Said four = Tool({"sweep", "--format=json", "--jobs=4"}, {"leaks", "3"});
  EXPECT_EQ(one.out, four.out);
  EXPECT_EQ(one.status, 1);
}

TEST(Sweep, CrashAbortAndHangAreVerdictsOfTheirOwn) {
  EXPECT_EQ(CountRule(Report(Tool({"sweep", "--format=json"}, {"crashes"}))["findings"], "crash"), 1U);
  EXPECT_EQ(CountRule(Report(Tool({"sweep", "--format=json"}, {"aborts"}))["findings"], "abort"), 1U);
  EXPECT_EQ(CountRule(Report(Tool({"sweep", "--format=json", "--deadline-ms=1500"}, {"hangs"}))["findings"], "hang"), 1U);
}

TEST(Sweep, LeavingByExitIsNoLeakUnlessAsked) {
  // Only driver calls are seen: whether it gave up or unwound the rest is not known.
  const Said unseen = Tool({"sweep"}, {"exits"});
  EXPECT_EQ(unseen.status, 3);
  EXPECT_THAT(unseen.out, AllOf(HasSubstr("not exercised"), HasSubstr("1 of "), HasSubstr("trials abandoned at exit")));
  const Said visible = Tool({"sweep", "--host"}, {"exits"});
  EXPECT_EQ(visible.status, 0);
  EXPECT_THAT(visible.out, AllOf(HasSubstr("clean, 1 trial abandoned at exit"), HasSubstr("fault cuMemAlloc#1=")));
  const Said said = Tool({"sweep", "--abandoned-is-leak", "--format=json"}, {"exits"});
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(Report(said)["findings"][0]["reproduce"], HasSubstr("--abandoned-is-leak"));
}

TEST(Sweep, GoesOnWhereAKilledSweepWas) {
  const TemporaryDir dir;
  const std::string work = dir.File("work");
  const Said whole = Tool({"sweep", "--format=json", "--work-dir", work}, {"leaks"});
  const std::string log = dir.File("work/trials.jsonl");
  const std::string text = *ReadFile(log);
  // As after a kill: two whole lines and half a third.
  const std::size_t second = text.find('\n', text.find('\n') + 1);
  ASSERT_TRUE(WriteFile(log, text.substr(0, second + 20), Exit::Failure).ok());
  const Said again = Tool({"sweep", "--format=json", "--work-dir", work}, {"leaks"});
  EXPECT_THAT(again.err, AllOf(HasSubstr("going on: 2 of "), HasSubstr("first found, in trial ")));
  EXPECT_EQ(again.out, whole.out);
  EXPECT_EQ(again.status, 1);
  ASSERT_TRUE(WriteFile(log, text.substr(0, text.size() - 5), Exit::Failure).ok());  // only the last trial is left
  EXPECT_THAT(Tool({"sweep", "--work-dir", work}, {"leaks"}).err, HasSubstr("first found, in an earlier run: orphaned of 1 stream"));
}

TEST(Sweep, AnotherSweepsDirectoryIsRefused) {
  const TemporaryDir dir;
  EXPECT_EQ(Tool({"sweep", "--work-dir", dir.File("work")}, {"sound"}).status, 0);
  const Said said = Tool({"sweep", "--work-dir", dir.File("work")}, {"leaks"});
  EXPECT_EQ(said.status, 2);
  EXPECT_TRUE(IsOneLine(said.err)) << said.err;
  EXPECT_THAT(said.err, HasSubstr("holds the plan of another sweep"));
}

TEST(Sweep, OtherSettingsAreRefusedByName) {
  const TemporaryDir dir;
  const std::string work = dir.File("work");
  ASSERT_EQ(Tool({"sweep", "--work-dir", work, "--jobs=1"}, {"sound"}).status, 0);
  const std::pair<const char*, const char*> kOthers[] = {
      {"--host", "--host was false and is true"},
      {"--stacks=4", "--stacks was 16 and is 4"},
      {"--strict-exit", "--strict-exit was false and is true"},
      {"--abandoned-is-leak", "--abandoned-is-leak was false and is true"},
      {"--scope=process", "--scope was \"pinned\" and is \"process\""},
      {"--schedule=fifo", "--schedule was \"\" and is \"fifo\""},
      {"--deadline-ms=5000", "--deadline-ms was 0 and is 5000"},
      {"--how=after", "--how was \"refuse\" and is \"after\""},
  };
  for (const auto& [option, differs] : kOthers) {
    const Said other = Tool({"sweep", "--work-dir", work, option}, {"sound"});
    EXPECT_EQ(other.status, 2) << other.out;
    EXPECT_TRUE(IsOneLine(other.err)) << other.err;
    EXPECT_THAT(other.err, HasSubstr(std::string("plan.txt: holds the plan of another sweep: ") + differs + ": choose another --work-dir"));
  }
  const Said same = Tool({"sweep", "--work-dir", work, "--jobs=2", "--coverage-at-least=1"}, {"sound"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("nothing was run anew"));
}

// The program loses a block on its failing path when LOSES is set or a file loses.txt is in its directory; fault-free runs are the same.
TEST(Sweep, TrialsOfAnotherEnvironmentAreNotTaken) {
  const TemporaryDir dir;
  for (const char* const folder : {"sound", "loses"}) std::filesystem::create_directory(dir.File(folder));
  ASSERT_TRUE(WriteFile(dir.File("loses/loses.txt"), "", Exit::Failure).ok());
  const std::string sound = "--directory=" + dir.File("sound");
  const auto sweep = [&](const std::string& work, const std::string& option, const std::vector<std::string>& environment = {}) {
    return Tool({"sweep", "--format=json", "--work-dir", dir.File(work), option}, {"loses_when_told"}, environment);
  };
  ASSERT_EQ(sweep("work", sound).status, 0);
  constexpr auto kOfTheUser = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  EXPECT_EQ(std::filesystem::status(dir.File("work/plan.txt")).permissions(), kOfTheUser) << "it tells of the environment";
  EXPECT_EQ(sweep("work", sound, {"SHLVL=7", "OLDPWD=/", "TERM=dumb"}).status, 0) << "what differs from shell to shell";
  const Said elsewhere = sweep("work", "--directory=" + dir.File("loses"));
  EXPECT_EQ(elsewhere.status, 2) << elsewhere.out;
  EXPECT_THAT(elsewhere.err,
              AllOf(HasSubstr("the working directory was \""), HasSubstr("/sound\" and is \""), HasSubstr("/loses\": choose another")));
  const Said inherits = sweep("work", sound, {"LOSES=1"});
  EXPECT_EQ(inherits.status, 2) << inherits.out;
  EXPECT_THAT(inherits.err, HasSubstr("holds the plan of another sweep: the variable \"LOSES\" differs: choose another --work-dir"));
  ASSERT_EQ(sweep("here", "--jobs=1").status, 0);
  const Said told = sweep("here", "--environment=LOSES=1");
  EXPECT_EQ(told.status, 2) << told.out;
  EXPECT_THAT(told.err, HasSubstr("--environment differs: choose another --work-dir"));
  EXPECT_EQ(sweep("fresh", "--environment=LOSES=1").status, 1);
  EXPECT_EQ(sweep("other", "--directory=" + dir.File("loses")).status, 1);
}

// A program whose argument names a file: the file is part of what was swept.
TEST(Sweep, ChangedFilesMakeAnotherSweepAndAFinishedOneSaysThatNothingWasRun) {
  const TemporaryDir dir;
  const std::string input = dir.File("input");
  ASSERT_TRUE(WriteFile(input, "one", Exit::Failure).ok());
  const auto sweep = [&] { return Tool({"sweep", "--work-dir", dir.File("work")}, {"sound", input}); };
  const Said first = sweep();
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, testing::Not(HasSubstr("nothing was run anew")));
  const Said again = sweep();
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("nothing was run anew"));
  ASSERT_TRUE(WriteFile(input, "two", Exit::Failure).ok());
  const Said changed = sweep();
  EXPECT_EQ(changed.status, 2) << changed.out;
  EXPECT_THAT(changed.err, HasSubstr("of another build of the program"));
}

TEST(Sweep, LeavesNoJournalsBehindUnlessKept) {
  const TemporaryDir dir;
  EXPECT_EQ(Tool({"sweep", "--limit=2", "--work-dir", dir.File("a")}, {"sound"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(dir.File("a/trial-0.journal")));
  EXPECT_EQ(Tool({"sweep", "--limit=2", "--keep", "--work-dir", dir.File("b")}, {"sound"}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(dir.File("b/trial-0.journal")));
  const Said explained = RunTool({"explain", dir.File("b/trial-0.journal")});
  EXPECT_EQ(explained.status, 0) << explained.err;
  EXPECT_THAT(explained.out, AllOf(HasSubstr("cuInit"), HasSubstr("[injected by fault 1]")));
}

TEST(Sweep, RemovesItsFreshDirectory) {
  const TemporaryDir dir;
  Words words = {"sweep", "--driver=sim", "--limit=1", "--", CUAUDIT_SUBJECT, "sound"};
  EXPECT_EQ(RunTool(words, {"TMPDIR=" + dir.path()}).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Sweep, AReaderThatWentAwayIsAFailedWriteAndLeavesNothingBehind) {
  const TemporaryDir dir;
  const Said said = RunToolUnread({"sweep", "--driver=sim", "--limit=1", "--", CUAUDIT_SUBJECT, "sound"}, {"TMPDIR=" + dir.path()});
  EXPECT_EQ(said.status, 125);
  EXPECT_THAT(said.err, HasSubstr("stdout"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Run, AProgramDiesOfABrokenPipeAsWithoutUs) {
  const Said said = RunToolUnread({"run", "--driver=sim", "--", "/bin/sh", "-c", "echo x; echo y"});
  EXPECT_THAT(said.err, HasSubstr("died of signal 13"));
}

TEST(Sweep, ReproduceLinesCallTheToolAsItWasCalled) {
  const TemporaryDir dir;
  std::filesystem::create_symlink(std::filesystem::path(CUAUDIT_TOOL).parent_path(), dir.File("a dir"));
  const std::string end = " sweep --driver=sim -- " CUAUDIT_SUBJECT " leaks >" + dir.File("out") + " 2>/dev/null";
  const std::string by_path = "PATH=" + dir.path() + "/'a dir':$PATH cuaudit" + end;
  const std::string relative = "cd " + dir.path() + " && './a dir/cuaudit'" + end;
  EXPECT_EQ(system(by_path.c_str()), 1 << 8);
  EXPECT_THAT(*ReadFile(dir.File("out")), HasSubstr("reproduce cuaudit replay "));
  EXPECT_EQ(system(relative.c_str()), 1 << 8);
  EXPECT_THAT(*ReadFile(dir.File("out")), HasSubstr("reproduce './a dir/cuaudit' replay "));
}

TEST(Sweep, UnfitProgramIsToldWithItsLastOutputAndNoVerdict) {
  const Said fails = Tool({"sweep", "--format=json"}, {"fails"});
  EXPECT_EQ(fails.status, 3);
  EXPECT_THAT(fails.err, HasSubstr("exited with status 4, expected exit status 0"));
  EXPECT_THAT(fails.err, testing::EndsWith("cuaudit: the last lines of its output:\ncycles: 1\n"));
  EXPECT_EQ(Report(fails)["outcome"], "error");
  EXPECT_EQ(Tool({"sweep", "--expect-exit=4"}, {"fails"}).status, 0);
  EXPECT_THAT(Tool({"sweep"}, {"crashes-always"}).err, HasSubstr("died of signal 11"));
  EXPECT_THAT(Tool({"sweep", "--deadline-ms=300"}, {"hangs-always"}).err, HasSubstr("did not finish within 300 ms"));
}

TEST(Sweep, ProgramThatNeverCallsTheDriverIsNotExercised) {
  const TemporaryDir dir;
  for (const char* const command : {"sweep", "run", "cycles"}) {
    const Said said = Tool({command, "--format=json", "--output", dir.File(command)}, {"calls-nothing", "{n}"});
    EXPECT_EQ(said.status, 3) << command;
    EXPECT_THAT(said.err, HasSubstr("cuaudit: not exercised: ")) << command;
    EXPECT_THAT(said.err, HasSubstr(": the program never called the CUDA driver")) << command;
    EXPECT_EQ(said.err.find("not exercised: "), said.err.rfind("not exercised: ")) << said.err;
    EXPECT_EQ(Json::parse(*ReadFile(dir.File(command)))["outcome"], "not_exercised") << command;
  }
}

TEST(Sweep, TooSmallAJournalIsOurErrorWithAHint) {
  const Said said = Tool({"sweep", "--records=1024"}, {"sound", "300"});
  EXPECT_EQ(said.status, 125);
  EXPECT_THAT(said.err, HasSubstr("--records"));
}

TEST(Run, PassesOutputThroughAndListsWhatIsAlive) {
  const TemporaryDir dir;
  const Said said = Tool({"run", "--format=json", "--output", dir.File("r.json")}, {"grows", "3"});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_EQ(said.out, "cycles: 3\n");
  const Json report = Json::parse(*ReadFile(dir.File("r.json")));
  const auto stream = std::find_if(report["live"].begin(), report["live"].end(), [](const Json& row) { return row["kind"] == "stream"; });
  ASSERT_NE(stream, report["live"].end());
  EXPECT_EQ((*stream)["acquired"], 3);
  EXPECT_EQ((*stream)["orphaned"], 3);  // it releases its context without them
  EXPECT_EQ((*stream)["live"], 0);
}

TEST(Run, AReportForProgramsStandsAloneOnStdout) {
  const Said said = Tool({"run", "--format=json"}, {"grows", "3"});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_EQ(Report(said)["outcome"], "left");
  EXPECT_EQ(said.err, "cycles: 3\n") << "what the program says goes to stderr";
}

TEST(Run, ViolationIsAFinding) {
  const TemporaryDir dir;
  const Said said = Tool({"run", "--format=json", "--output", dir.File("r.json")}, {"releases-twice"});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_THAT(*ReadFile(dir.File("r.json")), HasSubstr("\"double_release\""));
}

TEST(Run, ReportsTheProgramsOwnExitStatus) {
  const Said said = Tool({"run"}, {"fails"});
  EXPECT_EQ(said.status, 3);
  EXPECT_THAT(said.err, HasSubstr("exited with status 4"));
  EXPECT_EQ(Tool({"run", "--expect-exit=4"}, {"fails"}).status, 0);
  const Said good = Tool({"run"}, {"sound"});
  EXPECT_EQ(good.status, 0);
  EXPECT_EQ(good.err, "");
}

TEST(Run, SaysWhatIsLeftAndFromWhere) {
  const Said said = Tool({"run", "--scope=process"}, {"grows", "3"});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("left: 3 objects, 1 defect"), HasSubstr("3 stream acquired by cuStreamCreate < work ")));
  const Said allowed = Tool({"run", "--scope=process", "--allow-left"}, {"grows", "3"});
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_THAT(allowed.out, AllOf(HasSubstr("no rule broken, 3 objects orphaned"), HasSubstr("3 stream, cuStreamCreate < work ")));
}

TEST(Cycles, GrowthIsAFindingPerSite) {
  const Said said = Tool({"cycles", "--no-host", "--format=json"}, {"grows", "{n}"});
  EXPECT_EQ(said.status, 1) << said.err;
  const Json report = Report(said);
  EXPECT_EQ(report["per_cycle"], Json({{"stream", 1.0}}));
  ASSERT_EQ(report["findings"].size(), 1U);
  EXPECT_EQ(report["findings"][0]["rule"], "growth");
  EXPECT_EQ(report["cycles"]["counts"], Json({1, 10, 20, 40, 80})) << "it may be a cache that fills, so the counts go on";
}

TEST(Cycles, SoundProgramIsCleanWithTheHostInView) {
  const Said said = Tool({"cycles"}, {"sound", "{n}"});
  EXPECT_EQ(said.status, 0) << said.out << said.err;
}

TEST(Cycles, MarksOfTheProgramStandForCounts) {
  const Said said = Tool({"cycles", "--no-host", "--format=json"}, {"grows", "4"});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_EQ(Report(said)["cycles"]["counts"], Json({1, 4}));
  EXPECT_EQ(Report(said)["per_cycle"], Json({{"stream", 1.0}}));
}

TEST(Cycles, NeitherCountNorMarksIsAUsageError) {
  const Said said = Tool({"cycles"}, {"sound"});
  EXPECT_EQ(said.status, 2);
  EXPECT_TRUE(IsOneLine(said.err)) << said.err;
  EXPECT_THAT(said.err, HasSubstr("expected {n}"));
}

}  // namespace
}  // namespace cuaudit::harness::audit_test
