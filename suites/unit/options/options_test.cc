// SPDX-License-Identifier: MIT
#include "harness/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/options/sweep_options.h"
#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::options_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Words = std::vector<std::string>;

std::string WhyNot(const Words& words) {
  const Result<Options> options = ParseOptions(words);
  EXPECT_FALSE(options.ok());
  EXPECT_EQ(options.status().exit(), Exit::Usage);
  EXPECT_EQ(options.status().message().find('\n'), std::string::npos);
  return options.status().message();
}

TEST(CommandLine, SplitsToolAndProgramAtTheFirstDashes) {
  const Result<Options> options = ParseOptions(Words{"sweep", "--jobs", "3", "--", "prog", "--jobs", "--", "x"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->command, kSweep);
  EXPECT_EQ(options->jobs, 3U);
  EXPECT_THAT(options->program, ElementsAre("prog", "--jobs", "--", "x"));
}

TEST(CommandLine, KnowsItsDefaults) {
  const Result<Options> options = ParseOptions(Words{"run", "--", "prog"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->driver, "auto");
  EXPECT_EQ(options->scope, "pinned");
  EXPECT_EQ(options->stacks, 16U);
  EXPECT_EQ(options->n, "1,10");
  EXPECT_EQ(options->how, "refuse");
  EXPECT_FALSE(options->keep);
}

TEST(CommandLine, RefusesWhatIsNoCommandLine) {
  EXPECT_THAT(WhyNot({}), HasSubstr("expected a command"));
  EXPECT_THAT(WhyNot({"swep", "--seed", "5"}), EndsWith("or reduce, not 'swep'"));
  EXPECT_THAT(WhyNot({"--seed", "dance"}), AllOf(HasSubstr("expected a command: doctor, run, "), EndsWith("or reduce, not 'dance'")));
  EXPECT_EQ(WhyNot({"sweep", "--work-dir", "", "--", "prog"}), "--work-dir: expected a value, not ''");
  EXPECT_THAT(WhyNot({""}), EndsWith("or reduce, not ''"));
  EXPECT_THAT(WhyNot({"env", "cargo", "test"}), HasSubstr("stand behind --"));
  EXPECT_THAT(WhyNot({"sweep"}), HasSubstr("expected -- and a program"));
  EXPECT_THAT(WhyNot({"sweep", "--"}), HasSubstr("expected -- and a program"));
  EXPECT_THAT(WhyNot({"sweep", "./prog"}), HasSubstr("stand behind --"));
  EXPECT_THAT(WhyNot({"sweep", "--bogus", "--", "prog"}), HasSubstr("--bogus"));
  EXPECT_THAT(WhyNot({"run", "--jobs", "2", "--", "prog"}), HasSubstr("--jobs"));
  EXPECT_THAT(WhyNot({"run", "--driver=none", "--", "prog"}), HasSubstr("--driver"));
  EXPECT_THAT(WhyNot({"run", "--stacks=25", "--", "prog"}), HasSubstr("--stacks: expected a number from 0 to 24, not '25'"));
  EXPECT_THAT(WhyNot({"sweep", "--codes=some", "--", "prog"}), HasSubstr("--codes: expected default or all, not 'some'"));
  EXPECT_THAT(WhyNot({"list"}), HasSubstr("list: expected a table: calls, kinds, "));
  EXPECT_THAT(WhyNot({"run", "--stacks=-1", "--", "prog"}), HasSubstr("--stacks"));
  EXPECT_THAT(WhyNot({"run", "--expect-exit=many", "--", "prog"}), HasSubstr("--expect-exit"));
  EXPECT_THAT(WhyNot({"run", "--host", "--no-host", "--", "prog"}), HasSubstr("not both"));
  EXPECT_THAT(WhyNot({"replay", "--", "prog"}), HasSubstr("--fault"));
  EXPECT_THAT(WhyNot({"explain"}), HasSubstr("journal"));
  EXPECT_THAT(WhyNot({"list", "cows"}), AllOf(StartsWith("table: expected calls or "), EndsWith("not 'cows'")));
  EXPECT_THAT(WhyNot({"doctor", "--", "prog"}), HasSubstr("takes no program"));
}

// An empty variable of a CI job. The next argument is not the value.
TEST(CommandLine, RefusesAnOptionWithNothingBehindItsEqualsSign) {
  EXPECT_EQ(WhyNot({"compare", "--fail-on=", "base.txt", "r1"}), "--fail-on=: expected a value behind '='");
  EXPECT_EQ(WhyNot({"sweep", "--limit=", "--", "prog"}), "--limit=: expected a value behind '='");
  EXPECT_TRUE(ParseOptions(Words{"run", "--environment=NAME=", "--", "prog", "--x="}).ok());
  for (const char* const word : {"--no-host=", ""}) {
    const Words words = *word == '\0' ? Words{"sweep", "--no-host", word, "--", "prog"} : Words{"sweep", word, "--", "prog"};
    EXPECT_EQ(WhyNot(words), "--no-host: takes no value, not ''");
  }
  EXPECT_EQ(WhyNot({"sweep", "--no-host=3", "--", "prog"}), "--no-host: takes no value, not '3'");
}

TEST(CommandLine, SaysWhatIsWrongInItsOwnWords) {
  EXPECT_EQ(WhyNot({"sweep", "--depth", "1", "--depth=2", "--", "prog"}), "--depth: expected at most once");
  EXPECT_EQ(WhyNot({"compare", "--fail-on=new", "--fail-on=fixed", "a", "b"}), "--fail-on: expected at most once");
  const TemporaryDir dir;
  const std::string config = dir.File("cuaudit.toml");
  ASSERT_TRUE(WriteFile(config, "[sweep]\ndepth = 1\n", Exit::Failure).ok());
  EXPECT_EQ(WhyNot({"--config", config, "--config", config, "sweep", "--", "prog"}), "--config: expected at most once");
  EXPECT_EQ(WhyNot({"sweep", "--config", "--", "prog"}), "--config: expected a value");
  EXPECT_EQ(WhyNot({"sweep", "--depth", "--", "prog"}), "--depth: expected a value");
  EXPECT_EQ(WhyNot({"explain", "--rule"}), "--rule: expected a value");
  EXPECT_EQ(WhyNot({"reduce", "--to"}), "not expected: --to (a program and its arguments stand behind --)");
  EXPECT_EQ(WhyNot({"list", "kinds", ""}), "not expected: '' (a program and its arguments stand behind --)");
  Options options;
  EXPECT_EQ(ParseLifecycleOptions("--no-host=maybe", &options).message(), "CUAUDIT_SWEEP: --no-host: takes no value");
  EXPECT_EQ(ParseLifecycleOptions("nothing", &options).message(), "CUAUDIT_SWEEP: not expected: nothing");
}

// CLI11 ends a command there, and takes it for the value of an option that has none yet.
TEST(CommandLine, TakesTwoPlusesForNothing) {
  EXPECT_EQ(WhyNot({"merge", "plan", "++"}), "not expected: ++");
  EXPECT_EQ(WhyNot({"sweep", "--host", "++", "--", "prog"}), "not expected: ++");
  EXPECT_EQ(WhyNot({"sweep", "--work-dir", "++", "--", "prog"}), "--work-dir: expected a value, not '++'");
  EXPECT_TRUE(ParseOptions(Words{"sweep", "--", "prog", "++"}).ok());
  Options options;
  EXPECT_EQ(ParseLifecycleOptions("--depth=1 ++", &options).message(), "CUAUDIT_SWEEP: not expected: ++");
  EXPECT_EQ(ParseLifecycleOptions("--suppressions ++", &options).message(), "CUAUDIT_SWEEP: --suppressions: expected a value, not '++'");
}

TEST(CommandLine, AnAuditWithoutABaseHasNoPolicy) {
  EXPECT_THAT(WhyNot({"audit", "--fail-on=none"}), HasSubstr("--fail-on: expected --base beside it"));
  EXPECT_TRUE(ParseOptions(Words{"audit", "--fail-on=none", "--base", "base.txt"}).ok());
}

TEST(CommandLine, TakesOneValuePerRepeatedFlag) {
  const Result<Options> options = ParseOptions(Words{"replay", "--fault", "a#1=B,refuse", "--fault", "c d", "--", "prog"});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(options->fault, ElementsAre("a#1=B,refuse", "c d"));
}

TEST(CommandLine, EchoesOnlyWhatChangesTheResultAndTheCommandKnows) {
  const Result<Options> options =
      ParseOptions(Words{"sweep", "--scope=process", "--host", "--jobs=2", "--keep", "--abandoned-is-leak", "--stacks=4", "--", "prog"});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(EchoOptions(*options, kReplay), ElementsAre("--scope=process", "--stacks=4", "--host", "--abandoned-is-leak"));
  EXPECT_THAT(EchoOptions(*options, kRun), ElementsAre("--scope=process", "--stacks=4", "--host"));
  EXPECT_THAT(EchoOptions(Options(), kReplay), IsEmpty());
}

TEST(CommandLine, EchoesWhatTheSimulatedDriverIsAskedFor) {
  const Result<Options> options = ParseOptions(Words{"sweep", "--schedule=random:7", "--devices=2", "--device-memory=64MiB", "--", "prog"});
  ASSERT_TRUE(options.ok());
  for (const Command command : {kReplay, kRun, kCycles}) {
    EXPECT_THAT(EchoOptions(*options, command), ElementsAre("--schedule=random:7", "--devices=2", "--device-memory=64MiB"));
  }
}

TEST(CommandLine, EchoedOptionsReadBackAsTheSame) {
  const Result<Options> first = ParseOptions(Words{"cycles", "--n=2,30", "--expect-exit=3", "--deadline-ms=500", "--no-host", "--", "p"});
  ASSERT_TRUE(first.ok());
  Words words = {"cycles"};
  for (const std::string& flag : EchoOptions(*first, kCycles)) words.push_back(flag);
  words.insert(words.end(), {"--", "p"});
  const Result<Options> again = ParseOptions(words);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->n, "2,30");
  EXPECT_EQ(again->expect_exit, 3U);
  EXPECT_EQ(again->deadline_ms, 500U);
  EXPECT_TRUE(again->no_host);
}

TEST(CommandLine, ReadsAConfigFileBySection) {
  const TemporaryDir dir;
  const std::string path = dir.File("cuaudit.toml");
  ASSERT_TRUE(WriteFile(path, "[sweep]\njobs = 7\ncall = [\"cuInit\", \"cuMemFree\"]\n[run]\nstacks = 3\n", Exit::Failure).ok());
  const Result<Options> sweep = ParseOptions(Words{"sweep", "--config", path, "--", "prog"});
  ASSERT_TRUE(sweep.ok()) << sweep.status().message();
  EXPECT_EQ(sweep->jobs, 7U);
  EXPECT_EQ(sweep->stacks, 16U);
  EXPECT_THAT(sweep->call, ElementsAre("cuInit", "cuMemFree"));
  const Result<Options> flag_wins = ParseOptions(Words{"sweep", "--config", path, "--jobs=2", "--", "prog"});
  ASSERT_TRUE(flag_wins.ok());
  EXPECT_EQ(flag_wins->jobs, 2U);
  const Result<Options> run = ParseOptions(Words{"run", "--config", path, "--", "prog"});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->stacks, 3U);
}

TEST(CommandLine, TakesTheValuesOfAConfigFileAsThoseOfAProjectFile) {
  const TemporaryDir dir;
  const std::string path = dir.File("options.toml");
  const std::string text =
      "[sweep]\nhost = true\nno-prune = false\nhow = [\"refuse\", \"sticky\"]\ncall = []\nwork-dir = \"a\"\ncodes = \"all\"\n"
      "environment = { A = \"b\", C = 1 }\n[cycles]\nn = [1, 20]\n";
  ASSERT_TRUE(WriteFile(path, text, Exit::Failure).ok());
  const Result<Options> sweep = ParseOptions(Words{"sweep", "--config", path, "--", "prog"});
  ASSERT_TRUE(sweep.ok()) << sweep.status().message();
  EXPECT_TRUE(sweep->host);
  EXPECT_FALSE(sweep->no_prune);
  EXPECT_EQ(sweep->how, "refuse,sticky");
  EXPECT_TRUE(sweep->call.empty());
  EXPECT_EQ(sweep->work_dir, "a");
  EXPECT_EQ(sweep->codes, "all");
  EXPECT_THAT(sweep->environment, ElementsAre("A=b", "C=1"));
  const Result<Options> cycles = ParseOptions(Words{"cycles", "--config", path, "--", "prog"});
  ASSERT_TRUE(cycles.ok()) << cycles.status().message();
  EXPECT_EQ(cycles->n, "1,20");
}

TEST(CommandLine, RefusesAConfigFileItDoesNotUnderstand) {
  const TemporaryDir dir;
  const std::string path = dir.File("cuaudit.toml");
  for (const char* const text : {"[sweep]\nbogus = 7\n", "[[[\n", "[sweep]\njobs = many\n"}) {
    ASSERT_TRUE(WriteFile(path, text, Exit::Failure).ok());
    WhyNot({"sweep", "--config", path, "--", "prog"});
  }
  ASSERT_TRUE(WriteFile(path, "[sweep]\ndepth = 0\n", Exit::Failure).ok());
  EXPECT_THAT(WhyNot({"sweep", "--config", path, "--", "prog"}),
              EndsWith("cuaudit.toml:2:9: depth: found 0, expected a number from 1 to 2"));
  WhyNot({"sweep", "--config", dir.File("none"), "--", "prog"});
  // One that never ends, and one that no configuration needs.
  EXPECT_THAT(WhyNot({"sweep", "--config", "/dev/zero", "--", "prog"}), HasSubstr("expected a regular file"));
  ASSERT_TRUE(WriteFile(path, std::string((1U << 20U) + 1, '#'), Exit::Failure).ok());
  EXPECT_THAT(WhyNot({"sweep", "--config", path, "--", "prog"}), HasSubstr("at most 1 MiB"));
}

TEST(CommandLine, ReadsABudgetWithItsUnit) {
  EXPECT_EQ(ParseBudget("90s")->value().count(), 90);
  EXPECT_EQ(ParseBudget("10min")->value().count(), 600);
  EXPECT_EQ(ParseBudget("2h")->value().count(), 7200);
  EXPECT_FALSE(ParseBudget("")->has_value());
  for (const char* const text : {"10", "0s", "-1s", "1.5h", "s", "10 min", "10m", "99999999999s", "1000001s", "10minutes"}) {
    EXPECT_THAT(ParseBudget(text).status().message(), HasSubstr(std::string("--budget: '") + text + "': expected a time")) << text;
  }
}

TEST(CommandLine, HelpNamesEveryOptionOfItsCommand) {
  const Result<Options> help = ParseOptions(Words{"sweep", "--help"});
  ASSERT_TRUE(help.ok());
  ASSERT_TRUE(help->done);
  for (const char* const flag :
       {"--driver", "--how", "--codes", "--call", "--limit", "--jobs", "--work-dir", "--keep", "--format", "--output"}) {
    EXPECT_THAT(help->message, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace cuaudit::harness::options_test
