// SPDX-License-Identifier: MIT
#include "harness/sweep/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "harness/sweep/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::program_test {
namespace {

using testing::HasSubstr;

class ProgramTest : public testing::Test {
 protected:
  std::string MakeFile(const std::string& name, mode_t mode) {
    const std::string path = dir_.File(name);
    EXPECT_TRUE(WriteFile(path, "#!/bin/sh\n", Exit::Failure).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string WhyNot(const std::string& name) {
    const Result<Program> program = ResolveProgram(name);
    EXPECT_FALSE(program.ok());
    EXPECT_EQ(program.status().exit(), Exit::Usage);
    return program.status().message();
  }
  TemporaryDir dir_;
};

TEST_F(ProgramTest, TakesANameWithASlashAsItIs) {
  const std::string path = MakeFile("tool", 0755);
  const Result<Program> program = ResolveProgram(path);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->path, path);
  EXPECT_FALSE(program->is_static);
}

TEST_F(ProgramTest, SaysWhyAFileIsNoProgram) {
  EXPECT_THAT(WhyNot(dir_.File("none")), HasSubstr(": not found"));
  EXPECT_THAT(WhyNot(dir_.path()), HasSubstr(": is a directory"));
  EXPECT_THAT(WhyNot(MakeFile("data", 0644)), HasSubstr(": not executable"));
  EXPECT_THAT(WhyNot(MakeFile("file", 0755) + "/below"), HasSubstr(": not found"));
  EXPECT_THAT(WhyNot(""), HasSubstr("empty"));
}

TEST_F(ProgramTest, SearchesPathAsTheShellDoes) {
  const std::string before = getenv("PATH");
  const TemporaryDir second;
  MakeFile("cuaudit-test-tool", 0644);
  ASSERT_EQ(setenv("PATH", (dir_.path() + ":" + second.path()).c_str(), 1), 0);
  EXPECT_THAT(WhyNot("cuaudit-test-tool"), HasSubstr("not executable"));
  ASSERT_TRUE(WriteFile(second.File("cuaudit-test-tool"), "#!/bin/sh\n", Exit::Failure).ok());
  ASSERT_EQ(chmod(second.File("cuaudit-test-tool").c_str(), 0755), 0);
  const Result<Program> program = ResolveProgram("cuaudit-test-tool");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->path, second.File("cuaudit-test-tool"));
  EXPECT_THAT(WhyNot("cuaudit-no-such-tool"), HasSubstr("not found"));
  setenv("PATH", before.c_str(), 1);
}

TEST_F(ProgramTest, ReadsADynamicProgramAsNotStatic) {
  const Result<Program> self = ResolveProgram("/proc/self/exe");
  ASSERT_TRUE(self.ok()) << self.status().message();
  EXPECT_FALSE(self->is_static);
}

TEST_F(ProgramTest, SurvivesAnElfCutAtAnyPlace) {
  Result<std::string> bytes = ReadFile("/proc/self/exe");
  ASSERT_TRUE(bytes.ok());
  for (std::size_t size = 0; size < 4096; size += 7) {
    Program program;
    ReadElf(std::string_view(*bytes).substr(0, size), &program);
    EXPECT_EQ(program.asan_library, "") << size;
  }
}

}  // namespace
}  // namespace cuaudit::harness::program_test
