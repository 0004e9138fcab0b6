// SPDX-License-Identifier: MIT
// What `cuaudit init` writes is what `cuaudit audit` reads.
#include "harness/project/init_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/process/files.h"
#include "harness/project/project.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::init_file_test {
namespace {

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

ProgramSeen Seen() { return {"sim", "no genuine libcuda.so.1 found", 23, 1, 1, 0, "", 120, {{"file_descriptor", 3, 1}}}; }

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

}  // namespace
}  // namespace cuaudit::harness::init_file_test
