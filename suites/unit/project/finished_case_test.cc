// SPDX-License-Identifier: MIT
#include "harness/project/finished_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::finished_case_test {
namespace {

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

TEST(ThatMatter, LeavesOutTerminalsAndLogins) {
  EXPECT_THAT(ThatMatter({"PATH=/bin", "SHLVL=2", "PWD=/", "_=x", "SOURCE_DATE_EPOCH=0", "A", "CUAUDIT_AUDIT=--depth 1", "A=1"}),
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
}  // namespace cuaudit::harness::finished_case_test
