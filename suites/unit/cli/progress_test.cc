// SPDX-License-Identifier: MIT
// What a person sees while work goes on, and cases that run side by side.
#include "harness/cli/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/cli/side_by_side.h"
#include "harness/process/process.h"

namespace cuaudit::harness::progress_test {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
  Progress progress(fileno(file), ProgressForm::Lines, start);
  for (const int second : {0, 9, 10, 11, 19, 25}) progress.Show(static_cast<std::size_t>(second), 30, start + std::chrono::seconds(second));
  progress.Clear();
  EXPECT_EQ(Written(file), "cuaudit: 10 of 30 trials so far\ncuaudit: 25 of 30 trials so far\n");
  std::fclose(file);
}

TEST(Progress, OnATerminalIsABarThatIsRemoved) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(fileno(file), ProgressForm::Bar, {});
  progress.Show(1, 2, {});
  progress.Clear();
  progress.Clear();
  EXPECT_EQ(Written(file), "\rcuaudit: " + ProgressBar(1, 2) + " trials\033[K\r\033[K");
  std::fclose(file);
}

TEST(Progress, ABarIsRemovedWithItsProgress) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress(fileno(file), ProgressForm::Bar, {}).Show(1, 2, {});
  EXPECT_THAT(Written(file), EndsWith(" trials\033[K\r\033[K"));
  std::fclose(file);
}

TEST(Progress, AStepHasANameAndPlainTheFirstOneAlone) {
  for (const ProgressForm form : {ProgressForm::Bar, ProgressForm::Plain}) {
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    {
      Progress progress(fileno(file), form, {});
      progress.Step("reading a\x1b", 0, 2, {});
      progress.Step("judging a", 1, 2, {});
    }
    EXPECT_EQ(Written(file), form == ProgressForm::Plain
                                 ? "cuaudit: reading a\\x1b\n"
                                 : "\rcuaudit: reading a\\x1b " + ProgressBar(0, 2) + " steps\033[K\rcuaudit: judging a " +
                                       ProgressBar(1, 2) + " steps\033[K\r\033[K");
    std::fclose(file);
  }
}

TEST(Progress, OnATerminalHasRateEstimateAndTheSlowestCase) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const Progress::Clock::time_point start{};
  Progress progress(fileno(file), ProgressForm::Bar, start);
  progress.Begin("trials", "2 of 3: pool\x1b", "slowest: open, 12 s", start);
  progress.Show(10, 110, start);  // an earlier sweep's
  progress.Show(30, 110, start + std::chrono::seconds(4));
  progress.Clear();
  const std::string text = Written(file);
  std::fclose(file);
  EXPECT_THAT(text, HasSubstr("cuaudit: 2 of 3: pool\\x1b " + ProgressBar(10, 110) + " trials, slowest: open, 12 s\033[K"));
  EXPECT_THAT(text, HasSubstr(ProgressBar(30, 110) + " trials, 5 a second, about 16 s left, slowest: open, 12 s\033[K"));
}

TEST(Progress, PlainIsALineForEachTenthWhateverTheTime) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(fileno(file), ProgressForm::Plain, {});
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
  EXPECT_THAT(text, EndsWith("27 of 30 trials so far\ncuaudit: 1 of 2: pool: 30 of 60 trials so far\ncuaudit: 1 of 2 runs so far\n"));
}

TEST(Progress, SomethingElseIsCountedUnderTheSameName) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(fileno(file), ProgressForm::Plain, {});
  progress.Begin("trials", "1 of 2: pool", "", {});
  progress.Count("fault-free runs", {});
  progress.Show(2, 2, {});
  progress.Count("trials", {});
  progress.Show(1, 1, {});
  progress.Rename("5 of 7 calls\x1b left");
  progress.Show(2, 10, {});
  EXPECT_EQ(Written(file),
            "cuaudit: 1 of 2: pool: 2 of 2 fault-free runs so far\ncuaudit: 1 of 2: pool: 1 of 1 trials so far\n"
            "cuaudit: 5 of 7 calls\\x1b left: 2 of 10 trials so far\n");
  std::fclose(file);
}

TEST(Progress, AResultIsNamedByTheEndOfItsPath) {
  EXPECT_EQ(ShortName("results/1.0/"), "1.0");
  EXPECT_EQ(ShortName("/a/b/report.json"), "report.json");
  EXPECT_EQ(ShortName("./results/."), "results");
  EXPECT_EQ(ShortName(std::string(40, 'a')), std::string(40, 'a'));
  EXPECT_EQ(ShortName(std::string(10000, 'a')), std::string(40, 'a') + "…");
  EXPECT_EQ(ShortName(std::string(39, 'a') + "äb"), std::string(39, 'a') + "…") << "no half character";
  EXPECT_EQ(ShortName(std::string(38, 'a') + "äb"), std::string(38, 'a') + "ä…");
  for (const char* const path : {"", "/", ".", ".."}) EXPECT_LE(ShortName(path).size(), 2U) << path;
}

TEST(Progress, NoneIsSilent) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Progress progress(fileno(file), ProgressForm::None, {});
  progress.Show(1, 2, Progress::Clock::time_point{} + std::chrono::hours(1));
  progress.Clear();
  EXPECT_EQ(Written(file), "");
  std::fclose(file);
}

// The alarm ends a test that waits for the reader.
TEST(Progress, NeverWaitsForAReaderAndLeavesRoomForMessages) {
  for (const ProgressForm form : {ProgressForm::Bar, ProgressForm::Plain}) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    const int size = fcntl(ends[1], F_GETPIPE_SZ);
    ASSERT_GT(size, 0);
    alarm(60);
    {
      Progress progress(ends[1], form, {});
      for (std::size_t i = 0; i < 1000; ++i) {
        progress.Begin("trials", "pool", "", {});
        progress.Show(1, 2, {});
      }
    }
    alarm(0);
    int unread = 0;
    ASSERT_EQ(ioctl(ends[0], FIONREAD, &unread), 0);
    EXPECT_GT(unread, 0);
    EXPECT_LE(unread, size / 4);
    close(ends[0]);
    close(ends[1]);
  }
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
  TrialResult trial = {.faults = {"cuMemAlloc#3=OUT_OF_MEMORY,refuse", "cuMemFree#1=INVALID_VALUE,refuse"}};
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
  EXPECT_THAT(FirstFound(trial, 0, 864), StartsWith("first found, in an earlier run: leak of 2 stream, "));
}

// Carries out `count` pieces and keeps what was taken, with its number.
struct Kept {
  std::vector<std::string> taken;
  int signal = 0;

  Status Run(std::size_t count, SideBySide how) {
    how.take = [this](std::size_t number, const std::string& answer) {
      taken.push_back(std::to_string(number) + " " + answer);
      return Status();
    };
    return CarryOutSideBySide(count, how, &signal);
  }
};

TEST(SideBySide, ShowsHowManyAreDone) {
  for (const std::size_t at_a_time : {std::size_t{1}, std::size_t{3}}) {
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    Progress progress(fileno(file), ProgressForm::Bar, Progress::Clock::now());
    Kept kept;
    SideBySide how;
    how.at_a_time = at_a_time;
    how.progress = &progress;
    how.carry_out = [](std::size_t number) { return std::to_string(number); };
    ASSERT_TRUE(kept.Run(3, how).ok());
    std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    for (const char* const done : {"] 0/3", "] 1/3", "] 2/3"}) EXPECT_THAT(text, HasSubstr(done)) << at_a_time;
    EXPECT_TRUE(text.ends_with("\r\033[K")) << "the bar is gone at the end";
  }
}

TEST(SideBySide, AnswersAreTakenInOrderHoweverManyAtATime) {
  for (const std::size_t at_a_time : {std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
    Kept kept;
    SideBySide how = {.at_a_time = at_a_time};
    // The first waits until the second is gone, when there is one beside it.
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    how.carry_out = [&](std::size_t number) {
      char byte = 0;
      if (at_a_time > 1 && number == 0) (void)!read(ends[0], &byte, 1);
      if (at_a_time > 1 && number == 1) (void)!write(ends[1], "x", 1);
      return std::string(number * 100000, 'a') + static_cast<char>('0' + number);
    };
    ASSERT_TRUE(kept.Run(4, how).ok());
    close(ends[0]);
    close(ends[1]);
    ASSERT_EQ(kept.taken.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string digit(1, static_cast<char>('0' + i));
      EXPECT_EQ(kept.taken[i], digit + " " + std::string(i * 100000, 'a') + digit);
    }
  }
}

TEST(SideBySide, EachHasAProcessOfItsOwn) {
  Kept kept;
  SideBySide how = {.at_a_time = 2};
  int changed = 0;
  how.carry_out = [&](std::size_t) { return std::to_string(++changed); };
  ASSERT_TRUE(kept.Run(3, how).ok());
  EXPECT_THAT(kept.taken, ElementsAre("0 1", "1 1", "2 1"));
  EXPECT_EQ(changed, 0);
}

TEST(SideBySide, AProcessMayStartProgramsAndWaitForThem) {
  Kept kept;
  SideBySide how = {.at_a_time = 2};
  how.carry_out = [](std::size_t) {
    Launch launch;
    launch.path = "/bin/sh";
    launch.arguments = {"sh", "-c", "exit 7"};
    launch.output = "/dev/null";
    int interrupted = 0;
    const Result<Ending> ended = RunToEnd(launch, &interrupted);
    return ended.ok() ? std::to_string(ended->exit_status) + " " + std::to_string(ended->orphans) : ended.status().message();
  };
  ASSERT_TRUE(kept.Run(2, how).ok());
  EXPECT_THAT(kept.taken, ElementsAre("0 7 0", "1 7 0"));
}

TEST(SideBySide, OneThatDiesIsAnError) {
  Kept kept;
  SideBySide how = {.at_a_time = 2};
  how.carry_out = [](std::size_t number) {
    if (number == 1) raise(SIGKILL);
    return std::string("done");
  };
  const Status status = kept.Run(3, how);
  EXPECT_EQ(status.exit(), Exit::Failure);
  EXPECT_THAT(status.message(), HasSubstr("ended before it was done: SIGKILL: fewer --jobs need less memory"));
  EXPECT_EQ(kept.signal, 0);
  how.carry_out = [](std::size_t) -> std::string { throw std::bad_alloc(); };
  how.name = [](std::size_t number) { return "case " + std::to_string(number + 7); };
  EXPECT_THAT(Kept().Run(2, how).message(),
              ContainsRegex("^case [78]: a process of cuaudit itself ended before it was done: exit status 1$"));
}

TEST(SideBySide, WhatCannotBeTakenEndsAll) {
  SideBySide how;
  how.carry_out = [](std::size_t) { return std::string(); };
  how.take = [](std::size_t number, const std::string&) { return number == 1 ? Status(Exit::Usage, "no room") : Status(); };
  for (const std::size_t at_a_time : {std::size_t{1}, std::size_t{3}}) {
    how.at_a_time = at_a_time;
    int signal = 0;
    EXPECT_EQ(CarryOutSideBySide(5, how, &signal).message(), "no room") << at_a_time;
  }
}

TEST(SideBySide, MemoryLimitsHowManyRun) {
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{60}, std::uint64_t{200}}) {
    Kept kept;
    SideBySide how;
    how.at_a_time = 2;
    how.memory = 100;
    how.bytes = [&](std::size_t) { return bytes; };
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    how.carry_out = [&](std::size_t number) {
      char byte = 0;
      // Where two fit, the first needs the byte of the second. Where one fits, the second needs that of the first.
      const bool waits = number == (bytes <= 50 ? 0U : 1U);
      const bool moved = waits ? read(ends[0], &byte, 1) == 1 : write(ends[1], "x", 1) == 1;
      return std::string(moved ? "moved" : "nothing");
    };
    ASSERT_TRUE(kept.Run(2, how).ok());
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(std::count_if(kept.taken.begin(), kept.taken.end(), [](const std::string& one) { return one.ends_with("nothing"); }), 0);
  }
}

TEST(SideBySide, ASignalEndsAll) {
  Kept kept;
  SideBySide how = {.at_a_time = 2};
  const pid_t parent = getpid();
  how.carry_out = [parent](std::size_t number) {
    if (number == 0) kill(parent, SIGTERM);
    return std::string("done");
  };
  const Status status = kept.Run(100, how);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(kept.signal, SIGTERM);
  EXPECT_LT(kept.taken.size(), 100U);
}

}  // namespace
}  // namespace cuaudit::harness::progress_test
