// SPDX-License-Identifier: MIT
// Where cases come from that nobody typed: `cuaudit init`, the tests of a build, and an earlier audit that has finished them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "harness/process/files.h"
#include "harness/project/finished_case.h"
#include "harness/project/init_file.h"
#include "harness/project/project.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::cases_test {
namespace {

// What `cuaudit init` writes is what `cuaudit audit` reads.

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ProjectCase CaseOf(const std::vector<std::string>& program, std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), "init");
  flags.emplace_back("--");
  flags.insert(flags.end(), program.begin(), program.end());
  const Result<Options> options = ParseOptions(flags);
  EXPECT_TRUE(options.ok()) << options.status().message();
  ProjectCase one;
  ApplyGiven(*options, "command line", &one);
  one.options.program = program;
  one.name = CaseNameOf(program.front());
  return one;
}

ProgramSeen Seen() {
  return {DriverKind::Simulated, "no genuine libcuda.so.1 found", 23, 1, 1, 0, "", 120, {{"file_descriptor", 3, 2, 1}}};
}

ProjectCase ReadBack(const std::string& text) {
  const TemporaryDir dir;
  EXPECT_TRUE(WriteFile(dir.File("cuaudit.toml"), text, Exit::Failure).ok());
  const Result<std::vector<ProjectCase>> cases = ReadProject(dir.File("cuaudit.toml"));
  EXPECT_TRUE(cases.ok()) << cases.status().message() << text;
  EXPECT_TRUE(!cases.ok() || CheckCase(cases->front()).ok());
  return cases.ok() ? cases->front() : ProjectCase();
}

TEST(InitFile, SaysWhatWasSeenAndIsReadBack) {
  const std::string text = InitFile(CaseOf({"./build/pool test", "a b", "{n}"}, {"--depth=1", "--environment=A=b"}), Seen(), "", "/here");
  EXPECT_THAT(text,
              AllOf(HasSubstr("#   driver   simulated: no genuine libcuda.so.1 found\n"),
                    HasSubstr("#   calls    23 driver calls by 1 thread of 1 process\n"), HasSubstr("#   order    the same in both runs\n"),
                    HasSubstr("#   cycles   none marked"), HasSubstr("#   time     120 ms a run\n"),
                    HasSubstr("#   host     3 file_descriptor (1 left at the end)\n"), Not(HasSubstr("deadline_ms"))));
  const ProjectCase one = ReadBack(text);
  EXPECT_EQ(one.name, "pool_test");
  EXPECT_THAT(one.options.program, ElementsAre("./build/pool test", "a b", "{n}"));
  EXPECT_EQ(one.options.driver, "sim");
  EXPECT_EQ(CountsOf(one), "1,10") << "the command takes a count";
  EXPECT_EQ(one.options.depth, 1U);
  EXPECT_THAT(one.options.environment, ElementsAre("A=b"));
}

TEST(InitFile, WritesDownWhatNeedsASetting) {
  ProgramSeen seen = Seen();
  seen.cycles = 3;
  seen.run_ms = 2500;
  seen.drift = "call 12: cuMemAlloc, then cuStreamCreate";
  const std::string text = InitFile(CaseOf({"prog"}), seen, "", "/here");
  EXPECT_THAT(text, AllOf(HasSubstr("two runs differ at call 12: "), HasSubstr("3 marked"), HasSubstr("2.5 s a run")));
  const ProjectCase one = ReadBack(text);
  EXPECT_EQ(CountsOf(one), "1,10");
  EXPECT_EQ(one.options.deadline_ms, 30000U);
  EXPECT_EQ(ReadBack(InitFile(CaseOf({"prog"}, {"--deadline-ms=7", "--cycles=off"}), seen, "", "/here")).options.deadline_ms, 7U);
}

TEST(InitFile, InAnotherFolderTheProgramRunsHere) {
  EXPECT_EQ(ReadBack(InitFile(CaseOf({"./p"}), Seen(), "conf", "/here")).options.directory, "/here");
  EXPECT_EQ(ReadBack(InitFile(CaseOf({"./p"}, {"--directory=sub"}), Seen(), "conf", "/here")).options.directory, "/here/sub");
}

TEST(InitFile, NoNameBreaksIt) {
  for (const std::string& name :
       {std::string("a\nb]\x1b"), std::string("\xff\xfe"), std::string(10000, 'x'), std::string("..."), std::string("[\"#")}) {
    ProgramSeen seen = Seen();
    seen.drift = name;
    seen.why = name;
    const bool utf8 = name[0] != '\xff';  // TOML holds no other text, so such a program cannot be named
    const std::string text = InitFile(CaseOf({utf8 ? "./" + name : "p"}), seen, "", "/here");
    const ProjectCase one = ReadBack(text);
    EXPECT_TRUE(IsCaseName(one.name)) << one.name;
    EXPECT_THAT(one.options.program, ElementsAre(utf8 ? "./" + name : "p"));
  }
}

TEST(InitFile, ACaseIsNamedAfterItsProgramAsFarAsANameMayGo) {
  EXPECT_EQ(CaseNameOf("/opt/my prog [1]"), "my_prog_1");
  EXPECT_EQ(CaseNameOf("./a__b"), "a__b");
  EXPECT_EQ(CaseNameOf("\xc3\xa4rger"), "case_rger");
  EXPECT_EQ(CaseNameOf("[]"), "case_");
  EXPECT_EQ(CaseNameOf(""), "case");
}

using testing::IsEmpty;

constexpr const char* kTests = R"({"kind": "ctestInfo", "version": {"major": 1, "minor": 0}, "tests": [
  {"name": "Pool.Grows/1", "command": ["/b/pool_test", "--gtest_filter=Pool.Grows/1"], "config": "Debug",
   "properties": [{"name": "LABELS", "value": ["gpu", "slow"]}, {"name": "WORKING_DIRECTORY", "value": "/b"},
                  {"name": "ENVIRONMENT", "value": ["A=1", "B=2"]}, {"name": "TIMEOUT", "value": 3.0}]},
  {"name": "Pool.Grows_1", "command": ["/b/other"],
   "properties": [{"name": "RESOURCE_GROUPS", "value": [{"requirements": [{".type": "gpus", "slots": 1}]}]}]},
  {"name": "off", "command": ["/b/off"], "properties": [{"name": "DISABLED", "value": true}]},
  {"name": "fails", "command": ["/b/fails"], "properties": [{"name": "WILL_FAIL", "value": true}]},
  {"name": "not_built"}
]})";

TEST(CtestCases, AreTheTestsOfABuild) {
  ProjectCase defaults;
  defaults.options.depth = 1;
  defaults.options.environment = {"D=4", "A=0"};
  const Result<CtestCases> all = CasesOfCtest(kTests, "build", defaults);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->left_out, 2U);
  ASSERT_EQ(all->cases.size(), 2U);
  const ProjectCase& first = all->cases[0];
  EXPECT_THAT(first.name, testing::MatchesRegex("Pool.Grows_1-[0-9a-f]+"));
  EXPECT_THAT(first.tags, ElementsAre("gpu", "slow"));
  EXPECT_THAT(first.options.program, ElementsAre("/b/pool_test", "--gtest_filter=Pool.Grows/1"));
  EXPECT_EQ(first.options.directory, "/b");
  EXPECT_THAT(first.options.environment, ElementsAre("D=4", "A=1", "B=2"));
  EXPECT_THAT(ShowCase(first), testing::ContainsRegex("\nenvironment = [^\n]*# default, build, build\n"));
  EXPECT_EQ(first.options.depth, 1U);
  EXPECT_EQ(first.options.deadline_ms, 3000U) << "TIMEOUT";
  EXPECT_EQ(all->will_fail, 1U);
  EXPECT_EQ(all->resources, 1U);
  EXPECT_NE(all->cases[1].name, first.name) << "names stay different";
  EXPECT_THAT(all->cases[1].tags, IsEmpty());
}

TEST(CtestCases, WhatMayNotRunBesideOthersHasOneJob) {
  const auto jobs_of = [](const std::string& property) {
    ProjectCase defaults;
    defaults.options.jobs = 3;
    const Result<CtestCases> all =
        CasesOfCtest(R"({"tests": [{"name": "a", "command": ["p"], "properties": [)" + property + "]}]}", "build", defaults);
    EXPECT_TRUE(all.ok()) << all.status().message();
    return all.ok() ? all->cases.front().options.jobs : 0;
  };
  EXPECT_EQ(jobs_of(R"({"name": "RUN_SERIAL", "value": true})"), 1U);
  for (const char* const name : {"RESOURCE_LOCK", "DEPENDS", "FIXTURES_REQUIRED"}) {
    EXPECT_EQ(jobs_of(std::string(R"({"name": ")") + name + R"(", "value": ["other"]})"), 1U) << name;
  }
  EXPECT_EQ(jobs_of(R"({"name": "RUN_SERIAL", "value": false})"), 3U);
  EXPECT_EQ(jobs_of(R"({"name": "FIXTURES_SETUP", "value": ["other"]})"), 3U);
  EXPECT_FALSE(
      CasesOfCtest(R"({"tests": [{"name": "a", "command": ["p"], "properties": [{"name": "RUN_SERIAL", "value": "x"}]}]})", "build", {})
          .ok());
}

// The name of the test in a build of these tests.
std::string NameOf(const std::string& test, const std::vector<std::string>& tests) {
  std::string json;
  for (const std::string& name : tests)
    json += std::string(json.empty() ? "" : ", ") + R"({"name": ")" + name + R"(", "command": [")" + name + "\"]}";
  const Result<CtestCases> all = CasesOfCtest("{\"tests\": [" + json + "]}", "build", {});
  if (!all.ok()) return all.status().message();
  for (const ProjectCase& one : all->cases) {
    if (one.options.program.front() == test) return one.name;
  }
  return "none";
}

TEST(CtestCases, NamesDoNotDependOnTheOrder) {
  EXPECT_EQ(NameOf("a/b", {"a/b", "c"}), "a_b");
  const std::string among = NameOf("a/b", {"a/b", "a:b"});
  EXPECT_EQ(NameOf("a/b", {"a:b", "a/b"}), among);
  EXPECT_NE(NameOf("a:b", {"a:b", "a/b"}), among);
  const std::string cut(90, 'x');
  EXPECT_NE(NameOf(cut + "1", {cut + "1"}), NameOf(cut + "2", {cut + "2"})) << "also of two builds";
  EXPECT_EQ(NameOf(cut + "1", {cut + "1"}), NameOf(cut + "1", {cut + "2", cut + "1"}));
  const std::string long_name = NameOf(std::string(10000, 'x'), {std::string(10000, 'x')});
  EXPECT_TRUE(IsCaseName(long_name)) << long_name;
}

TEST(CtestCases, AFileThatCtestDidNotWriteIsRefused) {
  const auto why_not = [](const std::string& text) { return CasesOfCtest(text, "build", {}).status(); };
  for (const std::string& text : {std::string(), std::string("No tests were found!!!"), std::string("[]"), std::string("{\"tests\": 3}"),
                                  std::string("{\"tests\": [3]}"), std::string(R"({"tests": [{"name": 3}]})"),
                                  std::string(R"({"tests": [{"name": "a", "command": "b"}]})"), std::string("\xff"),
                                  std::string(100000, '['), std::string(kTests).substr(0, 200)}) {
    EXPECT_EQ(why_not(text).exit(), Exit::Usage) << text.substr(0, 50);
    EXPECT_EQ(why_not(text).message().find('\n'), std::string::npos);
  }
  EXPECT_THAT(why_not("{\"tests\": []}").message(), HasSubstr("build: no test that can run"));
  const Result<CtestCases> hostile =
      CasesOfCtest(R"({"tests": [{"name": "../\n\u0000x", "command": ["p"]}, {"name": "", "command": ["p"]}]})", "build", {});
  ASSERT_TRUE(hostile.ok());
  for (const ProjectCase& one : hostile->cases) EXPECT_TRUE(IsCaseName(one.name)) << one.name;
}

class Finished : public testing::Test {
 protected:
  Finished() {
    case_.name = "a";
    case_.options.program = {"./program", "input", "--table=input"};
    case_.options.directory = dir_.path();
    Write("program", "one");
    Write("library", "one");
    Write("a.sweep.json", "{}");
    finished_.digest = Digest();
    finished_.reports = {"a.sweep.json"};
    finished_.line = "a: clean\xff";
    finished_.defects = 3;
    finished_.unused_suppressions = {"s.toml:1"};
    finished_.exit = Exit::Findings;
    AddModules({dir_.File("library")}, &finished_);
    EXPECT_TRUE(WriteFinished(dir_.File("a.done"), finished_).ok());
  }

  void Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFile(dir_.File(name), text, Exit::Failure).ok());
    EXPECT_EQ(chmod(dir_.File(name).c_str(), 0755), 0);
  }
  std::string Digest() const { return ConfigDigest(case_, "1.0", environment_); }
  std::optional<FinishedCase> Read() const { return ReadFinished(dir_.File("a.done"), Digest(), dir_.path()); }

  const TemporaryDir dir_;
  ProjectCase case_;
  std::vector<std::string> environment_ = {"A=1"};
  FinishedCase finished_;
};

TEST_F(Finished, IsReadBack) {
  const std::optional<FinishedCase> again = Read();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->reports, finished_.reports);
  EXPECT_EQ(again->modules, finished_.modules);
  EXPECT_EQ(again->line, "a: clean\xef\xbf\xbd");
  EXPECT_EQ(again->defects, 3U);
  EXPECT_EQ(again->unused_suppressions, finished_.unused_suppressions);
  EXPECT_EQ(again->exit, Exit::Findings);
}

TEST_F(Finished, IsNoneOnceAnInputChanged) {
  Write("weights", "one");
  ASSERT_EQ(mkdir(dir_.File("kernels").c_str(), 0755), 0);
  Write("kernels/a", "one");
  const std::string without = Digest();
  case_.options.inputs = {dir_.File("weights"), dir_.File("kernels")};
  const std::string before = Digest();
  EXPECT_NE(before, without);
  Write("weights", "two");
  EXPECT_NE(Digest(), before);
  Write("weights", "one");
  EXPECT_EQ(Digest(), before) << "content counts, not the time";
  Write("kernels/b", "");
  EXPECT_NE(Digest(), before) << "a file more in a folder";
  EXPECT_EQ(unlink(dir_.File("kernels/b").c_str()), 0);
  EXPECT_EQ(symlink(dir_.path().c_str(), dir_.File("kernels/circle").c_str()), 0);
  EXPECT_EQ(Digest(), before) << "a folder is not left by a link";
  EXPECT_EQ(rename(dir_.File("kernels/a").c_str(), dir_.File("kernels/c").c_str()), 0);
  EXPECT_NE(Digest(), before) << "the name of a file";
  EXPECT_EQ(unlink(dir_.File("weights").c_str()), 0);
  EXPECT_NE(Digest(), before);
}

TEST_F(Finished, IsNoneOnceAnythingChanged) {
  case_.options.jobs = 7;
  EXPECT_TRUE(Read().has_value()) << "how many run at a time changes no report";
  case_.options.depth = 1;
  EXPECT_FALSE(Read().has_value()) << "a setting";
  case_.options.depth = 2;
  EXPECT_TRUE(Read().has_value());
  Write("program", "two");
  EXPECT_FALSE(Read().has_value()) << "the program";
  Write("program", "one");
  Write("input", "new");
  EXPECT_FALSE(Read().has_value()) << "a file that an argument names";
  EXPECT_EQ(unlink(dir_.File("input").c_str()), 0);
  EXPECT_TRUE(Read().has_value());
  Write("library", "two");
  EXPECT_FALSE(Read().has_value()) << "a library that calls the driver";
  Write("library", "one");
  environment_ = {"A=2"};
  EXPECT_FALSE(Read().has_value()) << "a variable that the program inherits";
  environment_ = {"A=1"};
  EXPECT_TRUE(Read().has_value());
  EXPECT_NE(ConfigDigest(case_, "1.1", environment_), Digest()) << "the tool";
  EXPECT_EQ(unlink(dir_.File("a.sweep.json").c_str()), 0);
  EXPECT_FALSE(Read().has_value()) << "a report is missing";
}

TEST_F(Finished, ASweepSharesVariables) {
  const auto shared = [&](const std::vector<std::string>& inherited) {
    Settings settings;
    AddVariables(inherited, &settings);
    return settings;
  };
  const Settings before = shared({"A=1", "TOKEN=secret", "TERM=xterm"});
  EXPECT_EQ(Differences(before, shared({"TOKEN=secret", "TERM=dumb", "A=1"})), "");
  EXPECT_EQ(Differences(before, shared({"A=2", "TOKEN=secret", "B\nC=1"})),
            "the variable \"A\" differs, the variable \"B\\u000AC\" differs");
  for (const auto& [name, value] : before) EXPECT_THAT(value, testing::MatchesRegex("#[0-9a-f]+")) << "no value of a variable is written";
}

TEST(ThatMatter, LeavesOutTerminalsAndLogins) {
  EXPECT_THAT(ThatMatter({"PATH=/bin", "SHLVL=2", "PWD=/", "_=x", "SOURCE_DATE_EPOCH=0", "A", "CUAUDIT_AUDIT=--depth 1", "A=1",
                          "SLURM_JOB_ID=7", "XDG_RUNTIME_DIR=/run/user/0"}),
              testing::ElementsAre("A", "A=1", "PATH=/bin"));
}

TEST_F(Finished, IsNoneInAFileThatIsNotOne) {
  const std::string whole = *ReadFile(dir_.File("a.done"));
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    Write("a.done", whole.substr(0, length));
    EXPECT_FALSE(Read().has_value()) << length;
  }
  for (const char* const text : {"[]", "{}", "3", "null", "{\"digest\": 3}", "\xff\xfe"}) {
    Write("a.done", text);
    EXPECT_FALSE(Read().has_value()) << text;
  }
}

}  // namespace
}  // namespace cuaudit::harness::cases_test
