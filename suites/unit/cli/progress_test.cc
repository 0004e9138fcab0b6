// SPDX-License-Identifier: MIT
#include "harness/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::progress_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Progress, KeepsItsWidthFromStartToEnd) {
  const std::string start = ProgressBar(0, 128);
  for (const std::size_t done : {1U, 9U, 10U, 99U, 100U, 128U}) EXPECT_EQ(ProgressBar(done, 128).size(), start.size()) << done;
}

TEST(Progress, IsFullOnlyAtTheEnd) {
  EXPECT_THAT(ProgressBar(0, 8), Not(HasSubstr("#")));
  EXPECT_THAT(ProgressBar(7, 8), HasSubstr("# "));
  EXPECT_THAT(ProgressBar(8, 8), HasSubstr("#] 8/8"));
}

TEST(Progress, SurvivesNothingToDo) { EXPECT_THAT(ProgressBar(0, 0), HasSubstr("0/0")); }

std::string Written(std::FILE* file) {
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

TEST(Progress, WithoutATerminalIsALineEveryTenSeconds) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const Progress::Clock::time_point start{};
  Progress progress(file, false, start);
  for (const int second : {0, 9, 10, 11, 19, 25}) progress.Show(static_cast<std::size_t>(second), 30, start + std::chrono::seconds(second));
  progress.Clear();
  EXPECT_EQ(Written(file), "cuaudit: 10 of 30 trials so far\ncuaudit: 25 of 30 trials so far\n");
  std::fclose(file);
}

TEST(Progress, OnATerminalIsABarThatIsRemoved) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(file, true, {});
  progress.Show(1, 2, {});
  progress.Clear();
  progress.Clear();
  EXPECT_EQ(Written(file), "\rcuaudit: " + ProgressBar(1, 2) + "\r\033[K");
  std::fclose(file);
}

TEST(FirstFound, NamesTheObjectItsPlaceAndTheFaults) {
  TrialResult trial;
  trial.faults = {"cuMemAlloc#3=OUT_OF_MEMORY,refuse", "cuMemFree#1=INVALID_VALUE,refuse"};
  TrialFindingText finding;
  finding.rule = Rule::Leak;
  finding.kind = driver::Kind::Stream;
  finding.count = 2;
  finding.acquired = {"cuStreamCreate", {{"prog", "Open\x1b", "pool.c", 12, 1}}};
  trial.findings = {finding};
  const std::string line = FirstFound(trial, 12, 864);
  EXPECT_THAT(line, HasSubstr("in trial 12 of 864 so far: leak of 2 stream, acquired by cuStreamCreate at "));
  EXPECT_THAT(line, HasSubstr("pool.c:12"));
  EXPECT_THAT(line, HasSubstr(", when cuMemAlloc#3=OUT_OF_MEMORY,refuse and then cuMemFree#1=INVALID_VALUE,refuse"));
  EXPECT_THAT(line, Not(HasSubstr("\x1b"))) << "nothing of the program's reaches the terminal as it is";
}

}  // namespace
}  // namespace cuaudit::harness::progress_test
