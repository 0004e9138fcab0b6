// SPDX-License-Identifier: MIT
// `cuaudit audit` over the reducers of the tree: cases, result directory, exit status, and going on after a kill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "suites/e2e/audited_project.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::audit_cases_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

TEST(AuditCases, TheReducersOfTheTree) {
  const Project project("include = [\"" + std::string(CUAUDIT_REDUCERS_TOML) + "\"]\n");
  const CommandResult repaired = project.Audit({"--directory", CUAUDIT_REDUCERS, "--tag", "repaired", "--depth=1"});
  EXPECT_EQ(repaired.exit, 0) << repaired.out << repaired.err;
  EXPECT_THAT(repaired.out, HasSubstr("3 cases: 0 defects in 0, 3 clean; results in " + project.out + "\n"));
  EXPECT_EQ(RowOf(project.Index(), "graph_owner")["not_run"], "not selected");
  EXPECT_EQ(RowOf(project.Index(), "graph_owner_repaired")["reports"],
            Json::parse(R"(["graph_owner_repaired.sweep.json", "graph_owner_repaired.cycles.json"])"));

  const CommandResult all = project.Audit({"--directory", CUAUDIT_REDUCERS, "--depth=1"});
  EXPECT_EQ(all.exit, 1) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("graph_owner_repaired: clean"), HasSubstr("3 clean; 3 kept from before; results in ")));
  for (const char* const name : {"early_returns", "graph_owner", "picture_pool", "preallocation"}) {
    const Json report = project.Report(std::string(name) + ".sweep.json");
    EXPECT_EQ(report["outcome"], "findings") << name;
    EXPECT_FALSE(report["defects"].empty()) << name;
    EXPECT_THAT(report["findings"][0]["reproduce"].get<std::string>(), HasSubstr(std::string(" --directory=") + CUAUDIT_REDUCERS)) << name;
  }
  EXPECT_EQ(project.Report("graph_owner.cycles.json")["outcome"], "findings");
  EXPECT_EQ(RowOf(project.Index(), "graph_owner")["tags"], Json::parse(R"(["defective"])"));
  EXPECT_EQ(RowOf(project.Index(), "graph_owner")["trials"], "graph_owner.trials.jsonl");
}

TEST(AuditCases, TheSweepOfACaseIsThatOfTheSameCommand) {
  const Project project(CaseOf("a", "defective"));
  EXPECT_EQ(project.Audit().exit, 1);
  const std::string other = project.folder + "/other.json";
  const CommandResult sweep =
      RunCommand({Tool(), "sweep", "--driver=sim", "--directory", project.folder, "--format=json=" + other, "--", Program("defective")},
                 {.environment = {"SOURCE_DATE_EPOCH=0"}});
  EXPECT_EQ(sweep.exit, 1);
  EXPECT_EQ(ReadFile(project.out + "/a.sweep.json"), ReadFile(other));
}

TEST(AuditCases, RunInTheirFolderWithTheirEnvironment) {
  const std::string check = "[ \\\"$A$B\\\" = xy ] && [ -e here ] || exit 9; exec " + Program("client_linked");
  const Project project(
      "[defaults]\ndriver = \"sim\"\nenvironment = { A = \"w\", B = \"y\" }\n[case.a]\ncommand = [\"/bin/sh\", \"-c\", \"" + check +
      "\"]\nenvironment = { A = \"x\" }\ndirectory = \"sub\"\n");
  EXPECT_EQ(project.Audit().exit, 3) << "the folder is missing";
  EXPECT_THAT(RowOf(project.Index(), "a")["not_run"].get<std::string>(),
              AllOf(HasSubstr("cuaudit.toml:7:1: directory: "), HasSubstr("no such directory")));
  std::filesystem::create_directory(project.folder + "/sub");
  const CommandResult without = project.Audit();
  EXPECT_EQ(without.exit, 3) << "the program exits with 9";
  EXPECT_THAT(without.out, HasSubstr("exited with status 9"));
  WriteFile(project.folder + "/sub/here", "");
  const CommandResult with = project.Audit();
  EXPECT_EQ(with.exit, 0) << with.out << with.err;
}

TEST(AuditCases, AreAsGoodAsTheWorst) {
  const std::string clean = CaseOf("clean", "client_linked");
  const std::string nothing = CaseOf("nothing", "idle");
  const std::string missing = "[case.missing]\ncommand = [\"/none\"]\n";
  const std::string defects = CaseOf("defects", "defective", "depth = 1\n");
  EXPECT_EQ(Project(clean).Audit().exit, 0);
  const Project proves_nothing(clean + nothing);
  const CommandResult outcome = proves_nothing.Audit();
  EXPECT_EQ(outcome.exit, 3) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("2 cases: 0 defects in 0, 1 clean, 1 without a result; "));
  EXPECT_EQ(proves_nothing.Report("nothing.sweep.json")["outcome"], "not_exercised");
  EXPECT_EQ(Project(clean + missing).Audit().exit, 3);
  EXPECT_EQ(Project(clean + nothing + missing + defects).Audit().exit, 1);
}

TEST(AuditCases, GoOnAfterAKill) {
  // The light case comes second and waits for its turn in a pipe.
  const std::string fifo = TemporaryDirectory() + "/fifo";
  ASSERT_EQ(RunCommand({"mkfifo", fifo}).exit, 0);
  const std::string blocks = "if [ -p " + fifo + " ]; then echo $$ > " + fifo + "; exec sleep 1000; fi; exec " + Program("defective");
  const Project project(CaseOf("first", "defective", "weight = 2\n") +
                        "[case.second]\ndriver = \"sim\"\ncommand = [\"/bin/sh\", \"-c\", \"" + blocks + "\"]\n");
  {
    Spawned audit(project.Command({}));
    EXPECT_FALSE(ReadFile(fifo).empty()) << "the second case has begun";
    EXPECT_EQ(RowOf(project.Index(), "first")["reports"].size(), 1U) << "what is finished is on disk at once";
    EXPECT_EQ(RowOf(project.Index(), "second")["not_run"], "the audit did not come to it");
    audit.Kill(SIGKILL);
    EXPECT_EQ(audit.Wait().signal, SIGKILL);
  }
  const std::string before = ReadFile(project.out + "/first.sweep.json");
  std::filesystem::remove(fifo);
  const CommandResult again = project.Audit();
  EXPECT_EQ(again.exit, 1) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("first: "), HasSubstr("second: "), HasSubstr("; 1 kept from before; ")));
  EXPECT_EQ(ReadFile(project.out + "/first.sweep.json"), before);
  EXPECT_FALSE(RowOf(project.Index(), "second").contains("not_run"));
}

TEST(AuditCases, AnInterruptionIsInTheIndex) {
  const std::string fifo = TemporaryDirectory() + "/fifo";
  ASSERT_EQ(RunCommand({"mkfifo", fifo}).exit, 0);
  const Project project("[case.a]\ndriver = \"sim\"\ncommand = [\"/bin/sh\", \"-c\", \"echo $$ > " + fifo + "; exec sleep 1000\"]\n" +
                        CaseOf("b", "client_linked"));
  Spawned audit(project.Command({}));
  EXPECT_FALSE(ReadFile(fifo).empty());
  audit.Kill(SIGINT);
  const CommandResult outcome = audit.Wait();
  EXPECT_EQ(outcome.exit, 130) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("interrupted by SIGINT, the same command goes on from here"));
  EXPECT_EQ(RowOf(project.Index(), "a")["not_run"], "interrupted by SIGINT");
  EXPECT_EQ(RowOf(project.Index(), "b")["not_run"], "interrupted by SIGINT before its turn");
  EXPECT_EQ(project.Report("a.sweep.json")["outcome"], "interrupted");
}

TEST(AuditCases, WhatChangedIsCarriedOutAnew) {
  const std::string program = TemporaryDirectory() + "/program";
  std::filesystem::copy_file(Program("client_linked"), program);
  const Project project("[case.a]\ndriver = \"sim\"\ncommand = [\"" + program + "\"]\n");
  EXPECT_EQ(project.Audit().exit, 0);
  EXPECT_THAT(project.Audit().out, HasSubstr("1 kept"));
  EXPECT_THAT(project.Audit({}, {"MODE=other"}).out, Not(HasSubstr("kept"))) << "a variable that the program inherits";
  EXPECT_THAT(project.Audit({"--depth=1"}).out, Not(HasSubstr("kept")));
  EXPECT_THAT(project.Audit({}, {"CUAUDIT_AUDIT=--depth 1"}).out, HasSubstr("1 kept")) << "the same setting from another place";
  std::filesystem::copy_file(Program("defective"), program, std::filesystem::copy_options::overwrite_existing);
  const CommandResult rebuilt = project.Audit({"--depth=1"});
  EXPECT_EQ(rebuilt.exit, 1) << rebuilt.out << rebuilt.err;
}

TEST(AuditCases, PlainProgressIsTheSameInEveryLog) {
  const std::string cases = CaseOf("a", "defective") + CaseOf("b", "defective", "cycles = \"1,3\"\n");
  const auto log = [&] {
    const CommandResult outcome = Project(cases).Audit({"--progress=plain", "--jobs=1"});
    std::string lines;
    std::istringstream text(outcome.err);
    for (std::string line; std::getline(text, line);) {
      if (line.ends_with(" so far") || line.find(": case ") != std::string::npos) lines += line + "\n";
    }
    return lines;
  };
  const std::string first = log();
  EXPECT_THAT(first,
              AllOf(HasSubstr("cuaudit: case 1 of 2: a\n"), HasSubstr("cuaudit: case 2 of 2: b\n"), HasSubstr("cuaudit: 2 of 2: b: ")));
  EXPECT_EQ(log(), first);
  EXPECT_EQ(Project(cases).Audit({"--progress=none"}).err.find("so far\n"), std::string::npos);
}

TEST(AuditCases, ABudgetThatIsLargeEnoughChangesNothing) {
  // The second case comes to its places in two cycles, so that some first faults are of places that were tried.
  const std::string cases = CaseOf("a", "defective") + "[case.b]\ndriver = \"sim\"\ndepth = 1\ncommand = [\"" CUAUDIT_REDUCERS
                                                       "/graph_owner_repaired\", \"2\"]\n";
  const Project with(cases);
  const Project without(cases);
  const CommandResult limited = with.Audit({"--budget=1000h"});
  EXPECT_EQ(limited.exit, 1) << limited.err;
  EXPECT_EQ(without.Audit().exit, 1);
  for (const char* const name : {"a.sweep.json", "b.sweep.json"}) {
    Json one = with.Report(name);
    Json other = without.Report(name);
    EXPECT_EQ(one["totals"], other["totals"]) << name;
    EXPECT_EQ(one["defects"].size(), other["defects"].size()) << name;
    EXPECT_EQ(one["coverage"], other["coverage"]) << name;
  }
  EXPECT_THAT(with.Audit().out, HasSubstr("2 kept from before"));
}

// Whether a process ends in so much time.
bool EndsWithin(pid_t process, int milliseconds) {
  const int end = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  pollfd ended = {end, POLLIN, 0};
  const int events = poll(&ended, 1, milliseconds);
  close(end);
  return events != 0;
}

// A program whose fault-free run waits until the budget is over, so that one trial is all that follows.
struct Waiting {
  std::string folder = TemporaryDirectory();
  std::string begun = folder + "/begun";
  std::string go_on = folder + "/go_on";

  Waiting() { EXPECT_EQ(RunCommand({"mkfifo", begun, go_on}).exit, 0); }

  std::string Command(const std::string& program) const {
    return "command = [\"/bin/sh\", \"-c\", \"if [ -p " + begun + " ]; then echo $$ > " + begun + "; read word < " + go_on + "; fi; exec " +
           Program(program) + "\"]\n";
  }

  CommandResult AuditCutAfterOneTrial(const Project& project, std::vector<std::string> arguments = {}) const {
    arguments.emplace_back("--budget=1s");
    Spawned audit(project.Command(arguments));
    EXPECT_FALSE(ReadFile(begun).empty());
    EXPECT_FALSE(EndsWithin(audit.pid(), 1000)) << "no run without a fault is ended by a budget";
    std::filesystem::remove(begun);
    WriteFile(go_on, "now\n");
    return audit.Wait();
  }
};

TEST(AuditCases, WhatTheBudgetCutsIsNotCleanWhenItsDefectsAreSuppressed) {
  const Waiting waiting;
  setenv("CUAUDIT_TODAY", "2026-11-26", 1);
  WriteFile(waiting.folder + "/s.toml", "[[suppression]]\nrule = '*ed'\nreason = 'r'\nowner = 'o'\nuntil = 2027-03-31\n");
  const Project project("[case.a]\ndriver = \"sim\"\njobs = 1\nisolation = \"spawn\"\ncall = [\"cuMemAlloc\", \"cuMemFree\"]\n" +
                        ("suppressions = \"" + waiting.folder) + "/s.toml\"\n" + waiting.Command("defective"));
  const CommandResult cut = waiting.AuditCutAfterOneTrial(project);
  unsetenv("CUAUDIT_TODAY");
  EXPECT_EQ(cut.exit, 3) << cut.out << cut.err;
  const Json report = project.Report("a.sweep.json");
  EXPECT_EQ(report["outcome"], "not_exercised");
  EXPECT_FALSE(report["defects"].empty()) << "the trial was to show one";
  EXPECT_THAT(report["message"].dump(), HasSubstr("the budget was spent before each place was tried once, after 1 of "));
}

TEST(AuditCases, WhatTheBudgetCutsIsNotCleanWhenItsDefectsAreKnown) {
  const std::string calls = "call = [\"cuMemAlloc\", \"cuMemFree\"]\njobs = 1\nisolation = \"spawn\"\n";
  const Project before(CaseOf("a", "defective", calls));
  ASSERT_EQ(before.Audit().exit, 1);
  for (const auto& [policy, exit] : {std::pair{"--fail-on=new,changed,not-run", 1}, std::pair{"--fail-on=new", 3}}) {
    const Waiting waiting;
    const Project project("[case.a]\ndriver = \"sim\"\n" + calls + waiting.Command("defective"));
    const CommandResult cut = waiting.AuditCutAfterOneTrial(project, {"--base", before.out, policy});
    EXPECT_EQ(cut.exit, exit) << cut.out << cut.err;
    EXPECT_THAT(cut.out, AllOf(HasSubstr("0 new, 0 changed, 1 not run, 0 fixed, 1 unchanged"),
                               HasSubstr("\nnot run:\n  a: the budget was spent before each place was tried once\n")));
  }
}

TEST(AuditCases, WhatTheBudgetCutsIsNotClean) {
  const Waiting waiting;
  const Project project("[case.a]\ndriver = \"sim\"\njobs = 1\nisolation = \"spawn\"\ncycles = \"1,3\"\n" +
                        waiting.Command("client_linked") + CaseOf("b", "client_linked"));
  const CommandResult cut = waiting.AuditCutAfterOneTrial(project);
  EXPECT_EQ(cut.exit, 3) << cut.out << cut.err;
  EXPECT_THAT(cut.out, AllOf(HasSubstr("a: not exercised: the budget was spent before each place was tried once, after 1 of "),
                             HasSubstr("; cut short by the budget; cycles left out"),
                             HasSubstr("b: not run: the budget was spent before its turn\n"),
                             HasSubstr("2 cases: 0 defects in 0, 0 clean, 1 cut short by the budget, 1 without a result; ")));
  const Json row = RowOf(project.Index(), "a");
  EXPECT_EQ(row["not_run"], "the budget was spent before each place was tried once");
  EXPECT_EQ(row["reports"], Json::parse(R"(["a.sweep.json"])"));
  EXPECT_EQ(project.Report("a.sweep.json")["outcome"], "not_exercised");
  const CommandResult rest = project.Audit({"a", "--cycles=off"});
  EXPECT_EQ(rest.exit, 0) << rest.out << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("1 case: 0 defects in 0, 1 clean; "));
}

TEST(AuditCases, CyclesBeginOnlyWhenTheBudgetHasTimeForThem) {
  const Project project("[case.a]\ndriver = \"sim\"\ndepth = 1\ncycles = \"1,100000000\"\ncommand = [\"" CUAUDIT_REDUCERS
                        "/graph_owner_repaired\", \"{n}\"]\n");
  const CommandResult outcome = project.Audit({"--budget=10min"});
  EXPECT_EQ(outcome.exit, 3) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("a: clean"), HasSubstr("; cycles left out; cut short by the budget\n"),
                                 HasSubstr("1 case: 0 defects in 0, 0 clean, 1 cut short by the budget; ")));
  EXPECT_EQ(RowOf(project.Index(), "a")["not_run"], "the budget has no time for its cycles");
  EXPECT_EQ(RowOf(project.Index(), "a")["reports"], Json::parse(R"(["a.sweep.json"])"));
  EXPECT_EQ(project.Report("a.sweep.json")["outcome"], "clean");
}

TEST(AuditCases, SuppressionsThatFitNothingAreTold) {
  setenv("CUAUDIT_TODAY", "2026-11-26", 1);
  const std::string entry = "[[suppression]]\nfingerprint = \"v2-0123456789abcdef\"\nreason = \"r\"\nowner = \"o\"\nuntil = 2027-03-31\n";
  const Project project(CaseOf("a", "client_linked", "suppressions = \"s.toml\"\n") +
                        CaseOf("b", "client_linked", "suppressions = \"s.toml\"\n"));
  WriteFile(project.folder + "/s.toml", entry);
  EXPECT_THAT(project.Audit({"a"}).err, Not(HasSubstr("fits no defect"))) << "it may fit one of the other case";
  for (const char* const what : {"carried out", "kept"}) {
    const CommandResult all = project.Audit();
    EXPECT_EQ(all.exit, 0) << all.err;
    EXPECT_THAT(all.err, HasSubstr("s.toml:1: the suppression fits no defect\n")) << what;
    EXPECT_EQ(project.Index()["unused_suppressions"].size(), 1U) << what;
  }
  unsetenv("CUAUDIT_TODAY");
}

// A day changes nothing but which suppressions hold, so nothing is swept for it.
TEST(AuditCases, ASuppressionExpiresInAResultThatIsKept) {
  const Project project(CaseOf("a", "defective", "depth = 1\nsuppressions = \"s.toml\"\n"));
  WriteFile(project.folder + "/s.toml", "[[suppression]]\nmodule = \"defective\"\nreason = \"r\"\nowner = \"o\"\nuntil = 2027-03-31\n");
  const CommandResult first = project.Audit({}, {"CUAUDIT_TODAY=2026-11-26"});
  EXPECT_EQ(first.exit, 0) << first.out << first.err;
  const std::string report = ReadFile(project.out + "/a.sweep.json");
  const CommandResult kept = project.Audit({}, {"CUAUDIT_TODAY=2027-03-31"});
  EXPECT_EQ(kept.exit, 0) << kept.out << kept.err;
  EXPECT_THAT(kept.out, AllOf(HasSubstr(first.out.substr(0, first.out.find('\n'))), HasSubstr("1 kept from before")));
  EXPECT_EQ(ReadFile(project.out + "/a.sweep.json"), report);
  for (const char* const time : {"first", "again"}) {
    const CommandResult expired = project.Audit({}, {"CUAUDIT_TODAY=2027-04-01"});
    EXPECT_EQ(expired.exit, 1) << time << expired.out << expired.err;
    EXPECT_THAT(expired.out, testing::ContainsRegex("a: .*; [0-9]+ suppressions? ha(s|ve) expired\n.* in 1, 0 clean; 1 kept")) << time;
    EXPECT_EQ(project.Report("a.sweep.json")["outcome"], "findings");
    EXPECT_EQ(project.Report("a.sweep.json")["defects"][0]["suppressed"]["expired"], true);
  }
  WriteFile(project.out + "/a.sweep.json", report.substr(0, report.size() / 2));
  const CommandResult damaged = project.Audit({}, {"CUAUDIT_TODAY=2027-04-01"});
  EXPECT_THAT(damaged.out, Not(HasSubstr("kept from before"))) << "a report that cannot be read is made again";
}

TEST(AuditCases, NoNameReachesTheStateOfAnotherCase) {
  std::string cases;
  for (const char* const name : {"a", "lock", "work", "done", "settings"}) cases += CaseOf(name, "client_linked");
  const Project project(cases + "[case.\"a.done\"]\ndriver = \"sim\"\ncommand = [\"" + Program("client_linked") + "\"]\n");
  EXPECT_EQ(project.Audit().exit, 0);
  const CommandResult again = project.Audit();
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("6 clean; 6 kept from before; "));
  const CommandResult fresh = project.Audit({"--fresh", "a"});
  EXPECT_EQ(fresh.exit, 0) << fresh.err;
  EXPECT_THAT(fresh.out, AllOf(HasSubstr("1 clean; "), Not(HasSubstr("kept"))));
}

TEST(Ctest, TestsOfABuildAreCases) {
  const std::string build = TemporaryDirectory();
  WriteFile(build + "/CTestTestfile.cmake",
            "add_test(Pool.Leaks \"" + Program("defective") + "\")\nset_tests_properties(Pool.Leaks PROPERTIES LABELS \"gpu\")\n" +
                "add_test(Pool.Sound \"" + Program("client_linked") +
                "\")\nset_tests_properties(Pool.Sound PROPERTIES LABELS \"gpu;fast\" RESOURCE_GROUPS \"gpus:1\")\n" + "add_test(Text \"" +
                Program("idle") + "\")\n");
  const How here = {.environment = {}, .directory = build, .deadline_ms = 200000};
  const std::vector<std::string> command = {Tool(), "audit", "--ctest", build, "--driver=sim", "--depth=1"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = command;
    words.insert(words.end(), more.begin(), more.end());
    return RunCommand(words, here);
  };
  const CommandResult fast = with({"--tag=fast"});
  if (fast.exit == 3 && fast.err.find("ctest: not found") != std::string::npos) GTEST_SKIP() << "ctest is not installed";
  EXPECT_EQ(fast.exit, 0) << fast.err;
  EXPECT_THAT(fast.out + fast.err, AllOf(HasSubstr("Pool.Sound: clean"), HasSubstr("RESOURCE_GROUPS get no resources, as with ctest")));
  const CommandResult gpu = with({"--tag=gpu"});
  EXPECT_EQ(gpu.exit, 1) << gpu.err;
  EXPECT_THAT(gpu.out, AllOf(HasSubstr("Pool.Leaks: 1 defect"), HasSubstr("1 kept from before")));
  EXPECT_EQ(with({"Text"}).exit, 3) << "it calls no driver";
  EXPECT_THAT(with({"Pool.Leak"}).err, ::testing::EndsWith("cuaudit: Pool.Leak: no such case, did you mean Pool.Leaks?\n"));
  const CommandResult none = RunCommand({Tool(), "audit", "--ctest", build + "/none"}, here);
  EXPECT_EQ(none.exit, 2);
  EXPECT_THAT(none.err, HasSubstr("--ctest: "));
}

TEST(AuditCases, WrongCommandLinesAndFilesAreOneLine) {
  const Project project(CaseOf("pool", "client_linked", "tags = [\"slow\"]\n"));
  const auto line = [&](const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}) {
    const CommandResult outcome = project.Audit(arguments, environment);
    EXPECT_EQ(outcome.exit, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_EQ(line({"pol"}), "cuaudit: pol: no such case, did you mean pool?\n");
  EXPECT_EQ(line({"--tag=slwo"}), "cuaudit: --tag: 'slwo': no case has it, did you mean slow?\n");
  EXPECT_THAT(line({"--depth=3"}), HasSubstr("--depth"));
  EXPECT_THAT(line({"--how=explode"}), AllOf(HasSubstr("command line: how: "), HasSubstr("explode")));
  EXPECT_THAT(line({"--schedule=never"}), AllOf(HasSubstr("command line: schedule: "), HasSubstr("never")));
  EXPECT_THAT(line({}, {"CUAUDIT_AUDIT=--depth 9"}), HasSubstr("CUAUDIT_AUDIT: --depth"));
  EXPECT_THAT(line({}, {"CUAUDIT_AUDIT=--bogus"}), HasSubstr("CUAUDIT_AUDIT: "));
  EXPECT_THAT(line({"--out", "/dev/null/x"}), HasSubstr("--out: "));
  EXPECT_THAT(line({"--budget=10"}), HasSubstr("--budget: '10': expected a time"));
  EXPECT_THAT(line({"--", "./program"}), HasSubstr("audit takes no program"));
  EXPECT_FALSE(std::filesystem::exists(project.out)) << "nothing was begun";
}

TEST(AuditCases, WhatCuauditItselfCouldNotDoIsAFailureAlsoOfItsShards) {
  const Project project("[case.long]\ndriver = \"sim\"\nlimit = 1\nrecords = 1024\ncycles = [1, 100]\ncommand = [\"" +
                        std::string(CUAUDIT_REDUCERS) + "/graph_owner_repaired\", \"{n}\"]\n");
  EXPECT_EQ(project.Audit().exit, 125);
  const std::string plan = project.folder + "/plan";
  ASSERT_EQ(RunCommand({Tool(), "plan", "--config", project.file, "--to", plan, "--shards", "1"}).exit, 0);
  ASSERT_EQ(RunCommand({Tool(), "run-shard", plan, "0"}).exit, 0);
  const CommandResult merged = RunCommand({Tool(), "merge", plan, "--out", project.out});
  EXPECT_EQ(merged.exit, 125) << merged.out << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("the journal overflowed after 1024 records"));
}

}  // namespace
}  // namespace cuaudit::e2e::audit_cases_test
