// SPDX-License-Identifier: MIT
// `cuaudit init` writes a project file that `cuaudit audit` can carry out, and no file for a program that cannot be audited. An audit
// goes on with a sweep that was killed. `cuaudit audit --base` first tries what the earlier result did not try, and ends with the
// comparison.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "suites/e2e/audited_project.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::audit_base_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Init, WhatItWritesIsAuditedAtOnce) {
  const std::string folder = TemporaryDirectory();
  const How here = {.environment = {}, .directory = folder, .deadline_ms = 200000};
  const CommandResult init =
      RunCommand({Tool(), "init", "--driver=sim", "--depth=1", "--host", "--", CUAUDIT_REDUCERS "/graph_owner_repaired", "{n}"}, here);
  ASSERT_EQ(init.exit, 0) << init.err;
  EXPECT_EQ(init.out, "cuaudit.toml: case graph_owner_repaired; now: cuaudit audit\n");
  const std::string text = ReadFile(folder + "/cuaudit.toml");
  EXPECT_THAT(text, AllOf(HasSubstr("#   driver   simulated\n"), HasSubstr("#   order    the same in both runs\n"),
                          HasSubstr("\ncycles = true "), HasSubstr("\ndepth = 1 "), HasSubstr("\nhost = true ")));
  const CommandResult audit = RunCommand({Tool(), "audit"}, here);
  EXPECT_EQ(audit.exit, 0) << audit.out << audit.err << text;
  EXPECT_THAT(ReadFile(folder + "/cuaudit-results/audit.json"), HasSubstr("\"graph_owner_repaired.cycles.json\""));

  const CommandResult again = RunCommand({Tool(), "init", "--driver=sim", "--", Program("marked")}, here);
  EXPECT_EQ(again.exit, 2);
  EXPECT_THAT(again.err, HasSubstr("cuaudit.toml: is there already"));
  EXPECT_EQ(ReadFile(folder + "/cuaudit.toml"), text);
}

TEST(Init, WritesNothingForAProgramThatCannotBeAudited) {
  const std::string folder = TemporaryDirectory();
  const How here = {.environment = {}, .directory = folder, .deadline_ms = kDeadlineMs};
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--", Program("idle")}, here).exit, 3);
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--", "/none"}, here).exit, 2);
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--how=explode", "--", Program("defective")}, here).exit, 2);
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--config=none/x.toml", "--", Program("defective")}, here).exit, 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

// What an audit in `environment` says after one that was killed with three trials done.
CommandResult AuditedAfterAKill(const std::vector<std::string>& environment) {
  const std::string folder = TemporaryDirectory();
  const std::string fifo = folder + "/fifo";
  EXPECT_EQ(RunCommand({"mkfifo", fifo}).exit, 0);
  // The sixth run of the program waits: after two without a fault, and three trials one after the other.
  const std::string script = "echo run >> " + folder + "/runs; [ $(wc -l < " + folder + "/runs) = 6 ] && echo $$ > " + fifo +
                             " && exec sleep 1000; exec " + Program("defective");
  const Project project("[case.long]\ndriver = \"sim\"\nisolation = \"spawn\"\njobs = 1\ncommand = [\"/bin/sh\", \"-c\", \"" + script +
                        "\"]\n");
  {
    Spawned audit(project.Command({}));
    EXPECT_FALSE(ReadFile(fifo).empty());
    audit.Kill(SIGKILL);
    audit.Wait();
  }
  std::filesystem::remove(fifo);
  CommandResult again = project.Audit({}, environment);
  EXPECT_EQ(again.exit, 1) << again.err;
  EXPECT_FALSE(std::filesystem::exists(project.out + "/.cuaudit/work/long")) << "the work of a finished case is removed";
  return again;
}

TEST(AuditCases, AKilledSweepGoesOnWhereItWas) { EXPECT_THAT(AuditedAfterAKill({}).err, HasSubstr("going on: 3 of ")); }

TEST(AuditCases, AKilledSweepBeginsAnewInAnotherEnvironment) {
  EXPECT_THAT(AuditedAfterAKill({"MODE=other"}).err, Not(HasSubstr("going on")));
}

// A release of a program with one defect in the decoder, or also with one in the encoder, which allocates later.
std::string Release(const std::string& name, const std::string& more = "") {
  return "[case.codec]\ndriver = \"sim\"\njobs = 1\nisolation = \"spawn\"\ncommand = [\"" + Program("releases") + "\", \"" + name +
         "\"]\n" + more;
}

std::string FirstFound(const CommandResult& outcome) {
  const std::size_t at = outcome.err.find("first found");
  return at == std::string::npos ? outcome.err : outcome.err.substr(at, outcome.err.find('\n', at) - at);
}

TEST(AuditBase, BeginsWithWhatTheBaseDidNotTry) {
  const Project before(Release("base", "call = [\"cuEventCreate\"]\n"));
  ASSERT_EQ(before.Audit().exit, 1);
  const Project now(Release("regression"));
  const CommandResult plain = now.Audit();
  EXPECT_THAT(FirstFound(plain), HasSubstr("when cuEventCreate#1"));
  EXPECT_THAT(plain.out, Not(HasSubstr("compare")));
  const nlohmann::json alone = now.Report("codec.sweep.json");
  const CommandResult outcome = now.Audit({"--fresh", "--base", before.out});
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_THAT(FirstFound(outcome), HasSubstr("when cuMemAlloc#1")) << "the base made only the event fail";
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("1 case: 2 defects in 1, 0 clean; results in "),
                                 HasSubstr("cuaudit compare: 1 new, 0 changed, 0 not run, 0 fixed, 1 unchanged\n"),
                                 HasSubstr("open_encoder returned without cuStreamDestroy")));
  nlohmann::json report = now.Report("codec.sweep.json");
  for (const char* const key : {"totals", "defects", "coverage", "findings"})
    EXPECT_EQ(report[key], alone[key]) << "the order changes no result";
  const nlohmann::json comparison = now.Report("comparison.json");
  EXPECT_EQ(comparison["counts"]["new"], 1) << comparison;
  EXPECT_EQ(comparison["counts"]["unchanged"], 1);
}

TEST(AuditBase, OldDefectsAreNoReasonForStatus1) {
  const Project base(Release("base"));
  ASSERT_EQ(base.Audit().exit, 1);
  const std::string baseline = base.folder + "/baseline.txt";
  ASSERT_EQ(RunCommand({Tool(), "baseline", "write", base.out, baseline}).exit, 0);
  const Project again(Release("base"));
  for (const std::string& known : {base.out, base.out + "/audit.json", baseline}) {
    const CommandResult same = again.Audit({"--base", known});
    EXPECT_EQ(same.exit, 0) << same.out << same.err;
    EXPECT_THAT(same.out, HasSubstr("0 new, 0 changed, 0 not run, 0 fixed, 1 unchanged"));
    EXPECT_EQ(again.Audit({"--base", known, "--fail-on=unchanged"}).exit, 1);
  }
  const Project worse(Release("regression"));
  EXPECT_EQ(worse.Audit({"--base", baseline, "--budget=1000h"}).exit, 1);
  EXPECT_EQ(worse.Audit({"--base", baseline, "--fail-on=none"}).exit, 0);
  const Project repaired(Release("repaired"));
  const CommandResult fixed = repaired.Audit({"--base", baseline, "--budget=1000h"});
  EXPECT_EQ(fixed.exit, 0) << fixed.out << fixed.err;
  EXPECT_THAT(fixed.out, HasSubstr("0 new, 0 changed, 0 not run, 1 fixed, 0 unchanged"));
}

// A case with a limit is clean without findings, so a known one is no reason for another status.
TEST(AuditBase, SaysWhatALimitCut) {
  const Project base(Release("base", "limit = 8\n"));
  ASSERT_EQ(base.Audit().exit, 1);
  const Project again(Release("base", "limit = 8\n"));
  const CommandResult same = again.Audit({"--base", base.out});
  EXPECT_EQ(same.exit, 0) << same.out << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("0 not run, 0 fixed, 1 unchanged"), HasSubstr("\ncut short:\n  codec, sweep: "),
                              HasSubstr(" beyond --limit\n")));
}

TEST(AuditBase, WhatProvesNothingIsNeverClean) {
  const Project base(CaseOf("codec", "idle"));
  ASSERT_EQ(base.Audit().exit, 3);
  const Project again(CaseOf("codec", "idle"));
  const CommandResult nothing = again.Audit({"--base", base.out});
  EXPECT_EQ(nothing.exit, 1) << nothing.out;
  EXPECT_EQ(again.Audit({"--base", base.out, "--fail-on=new"}).exit, 3);
}

// Else what is new would be old when the same command is given once more.
TEST(AuditBase, IsNotWhereTheAuditWrites) {
  const Project project(Release("base"));
  ASSERT_EQ(project.Audit().exit, 1);
  const std::string before = ReadFile(project.out + "/audit.json");
  std::filesystem::create_directory_symlink(project.out, project.folder + "/link");
  std::filesystem::create_directory(project.out + "/inner");
  for (const std::string& base : {project.out, project.out + "/", project.out + "/../results/.", project.folder + "/link",
                                  project.out + "/audit.json", project.out + "/inner", project.folder}) {
    const CommandResult outcome = project.Audit({"--base", base});
    EXPECT_EQ(outcome.exit, 2) << base << outcome.err;
    EXPECT_EQ(outcome.err, "cuaudit: --base: " + base + ": expected a result that is not in --out " + project.out +
                               ", nor around it, because the result is written there\n");
  }
  EXPECT_EQ(ReadFile(project.out + "/audit.json"), before);
}

TEST(AuditBase, ABudgetThatIsLargeEnoughChangesNothing) {
  const Project base(Release("base"));
  ASSERT_EQ(base.Audit().exit, 1);
  const Project with(Release("regression") + CaseOf("other", "defective"));
  const Project without(Release("regression") + CaseOf("other", "defective"));
  EXPECT_EQ(without.Audit().exit, 1);
  EXPECT_EQ(with.Audit({"--budget=1000h", "--base", base.out}).exit, 1);
  for (const char* const name : {"codec.sweep.json", "other.sweep.json"}) {
    nlohmann::json one = with.Report(name);
    nlohmann::json other = without.Report(name);
    for (const char* const key : {"totals", "coverage", "outcome"}) EXPECT_EQ(one[key], other[key]) << name << ' ' << key;
    EXPECT_EQ(one["defects"].size(), other["defects"].size()) << name;
  }
}

TEST(AuditBase, AWrongBaseIsOneLineBeforeAnythingRuns) {
  const Project project(Release("base"));
  const auto line = [&](const std::vector<std::string>& arguments) {
    const CommandResult outcome = project.Audit(arguments);
    EXPECT_EQ(outcome.exit, 2) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(project.out));
    return outcome.err;
  };
  EXPECT_THAT(line({"--base", "/none"}), HasSubstr("cuaudit: --base: /none: "));
  WriteFile(project.folder + "/cut.json", "{\"schema\": 1, \"cases\": [");
  EXPECT_THAT(line({"--base", project.folder + "/cut.json"}), HasSubstr("cut.json"));
  EXPECT_THAT(line({"--base", project.file}), HasSubstr("expected"));
  EXPECT_THAT(line({"--base", project.file, "--fail-on=worse"}), HasSubstr("--fail-on: 'worse'"));
}

TEST(AuditBase, WhatIsKeptSaysWhatWasCompared) {
  const std::string folder = TemporaryDirectory();
  WriteFile(folder + "/weights", "one");
  const Project project(CaseOf("a", "client_linked", "inputs = [\"" + folder + "/weights\"]\n"));
  const CommandResult first = project.Audit();
  EXPECT_EQ(first.exit, 0) << first.err;
  EXPECT_THAT(first.err, Not(HasSubstr("kept:")));
  const CommandResult again = project.Audit();
  EXPECT_THAT(again.out, HasSubstr("1 kept from before"));
  EXPECT_THAT(again.err, HasSubstr("no other file that a program opens was compared"));
  WriteFile(folder + "/weights", "two");
  EXPECT_THAT(project.Audit().out, Not(HasSubstr("kept"))) << "the program reads another file now";
}

TEST(AuditSettings, SuppressionsThatCannotBeReadAreToldBeforeAnythingRuns) {
  const Project project(CaseOf("a", "client_linked") + CaseOf("b", "client_linked", "suppressions = \"none.toml\"\n"));
  const CommandResult outcome = project.Audit();
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, ::testing::ContainsRegex("^cuaudit: [^\n]*cuaudit.toml:7:1: suppressions: [^\n]*none.toml: no such file\n$"));
  EXPECT_FALSE(std::filesystem::exists(project.out));
  EXPECT_EQ(project.Audit({"a"}).exit, 0) << "the case is not selected";
}

}  // namespace

}  // namespace cuaudit::e2e::audit_base_test
