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
  Progress progress(file, ProgressForm::Lines, start);
  for (const int second : {0, 9, 10, 11, 19, 25}) progress.Show(static_cast<std::size_t>(second), 30, start + std::chrono::seconds(second));
  progress.Clear();
  EXPECT_EQ(Written(file), "cuaudit: 10 of 30 trials so far\ncuaudit: 25 of 30 trials so far\n");
  std::fclose(file);
}

TEST(Progress, OnATerminalIsABarThatIsRemoved) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(file, ProgressForm::Bar, {});
  progress.Show(1, 2, {});
  progress.Clear();
  progress.Clear();
  EXPECT_EQ(Written(file), "\rcuaudit: " + ProgressBar(1, 2) + "\033[K\r\033[K");
  std::fclose(file);
}

TEST(Progress, OnATerminalHasRateEstimateAndTheSlowestCase) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const Progress::Clock::time_point start{};
  Progress progress(file, ProgressForm::Bar, start);
  progress.Begin("trials", "2 of 3: pool\x1b", "slowest: open, 12 s", start);
  progress.Show(10, 110, start);  // an earlier sweep's
  progress.Show(30, 110, start + std::chrono::seconds(4));
  const std::string text = Written(file);
  std::fclose(file);
  EXPECT_THAT(text, HasSubstr("cuaudit: 2 of 3: pool\\x1b " + ProgressBar(10, 110) + ", slowest: open, 12 s\033[K"));
  EXPECT_THAT(text, HasSubstr(ProgressBar(30, 110) + ", 5 trials a second, about 16 s left, slowest: open, 12 s\033[K"));
}

TEST(Progress, PlainIsALineForEachTenthWhateverTheTime) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(file, ProgressForm::Plain, {});
  progress.Begin("trials", "1 of 2: pool", "slowest: open, 12 s", {});
  for (std::size_t done = 0; done < 30; ++done) progress.Show(done, 30, {});
  progress.Show(30, 60, {});  // the next round is planned
  progress.Begin("runs", "", "", {});
  progress.Show(0, 2, {});
  progress.Show(1, 2, {});
  const std::string text = Written(file);
  std::fclose(file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11) << text;
  EXPECT_THAT(text, testing::StartsWith("cuaudit: 1 of 2: pool: 3 of 30 trials so far\ncuaudit: 1 of 2: pool: 6 of 30 trials so far\n"));
  EXPECT_THAT(text,
              testing::EndsWith("27 of 30 trials so far\ncuaudit: 1 of 2: pool: 30 of 60 trials so far\ncuaudit: 1 of 2 runs so far\n"));
}

TEST(Progress, NoneIsSilent) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(file, ProgressForm::None, {});
  progress.Show(1, 2, Progress::Clock::time_point{} + std::chrono::hours(1));
  progress.Clear();
  EXPECT_EQ(Written(file), "");
  std::fclose(file);
}

TEST(Progress, TakesItsFormFromTheOptionAndTheTerminal) {
  EXPECT_EQ(FormOf("auto", true), ProgressForm::Bar);
  EXPECT_EQ(FormOf("auto", false), ProgressForm::Lines);
  EXPECT_EQ(FormOf("bar", false), ProgressForm::Bar);
  EXPECT_EQ(FormOf("plain", true), ProgressForm::Plain);
  EXPECT_EQ(FormOf("none", true), ProgressForm::None);
}

TEST(Progress, RoundsTimesUp) {
  EXPECT_EQ(RoughTime(0.2), "1 s");
  EXPECT_EQ(RoughTime(120), "120 s");
  EXPECT_EQ(RoughTime(121), "3 min");
  EXPECT_EQ(RoughTime(7201), "3 h");
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
