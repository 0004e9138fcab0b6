// SPDX-License-Identifier: MIT
#include "harness/cli/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/process/process.h"

namespace cuaudit::harness::side_by_side_test {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

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
    Progress progress(file, ProgressForm::Bar, Progress::Clock::now());
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
    SideBySide how;
    how.at_a_time = at_a_time;
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
  SideBySide how;
  how.at_a_time = 2;
  int changed = 0;
  how.carry_out = [&](std::size_t) { return std::to_string(++changed); };
  ASSERT_TRUE(kept.Run(3, how).ok());
  EXPECT_THAT(kept.taken, ElementsAre("0 1", "1 1", "2 1"));
  EXPECT_EQ(changed, 0);
}

TEST(SideBySide, AProcessMayStartProgramsAndWaitForThem) {
  Kept kept;
  SideBySide how;
  how.at_a_time = 2;
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
  SideBySide how;
  how.at_a_time = 2;
  how.carry_out = [](std::size_t number) {
    if (number == 1) raise(SIGKILL);
    return std::string("done");
  };
  const Status status = kept.Run(3, how);
  EXPECT_EQ(status.exit(), Exit::Failure);
  EXPECT_THAT(status.message(), HasSubstr("ended before it was done: signal 9: fewer --jobs need less memory"));
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
  SideBySide how;
  how.at_a_time = 2;
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
}  // namespace cuaudit::harness::side_by_side_test
