// SPDX-License-Identifier: MIT
// Descriptors that a lifecycle in a process with the host drop-in closes too often, and those that it may close.
#include <cuaudit/gtest.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::host_closes_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFault = " after cuEventCreate#1=OUT_OF_MEMORY,refuse";

// Open for as long as the process, and not a lifecycle's.
int OfTheTest() {
  static const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return descriptor;
}

void CloseTwice(int descriptor) {
  close(descriptor);
  close(descriptor);
}

struct Closed {
  const char* name;
  Do wrong;
  Do repaired;
  const char* detail;
};

void PrintTo(const Closed& closed, std::ostream* out) { *out << closed.name; }

class HostCloses : public ::testing::TestWithParam<Closed> {};

constexpr char kOfTheTest[] = "it was open when the audit began; by the faulted cycle, beyond what a good one does";

TEST_P(HostCloses, TooOftenAreFound) {
  const int theirs = OfTheTest();
  const Audit audit = Sweep(WithAnEvent(GetParam().name, GetParam().wrong));
  ASSERT_THAT(Texts(audit), ElementsAre("deficit file_descriptor 1" + kFault)) << audit.Text();
  EXPECT_THAT(audit.findings.at(0).detail, HasSubstr(GetParam().detail));
  EXPECT_THAT(audit.findings.at(0).where_stack, Contains(HasSubstr("host_closes_test.cc")));
  EXPECT_EQ(audit.verdicts.at("misuse"), 1U);
  EXPECT_EQ(fcntl(theirs, F_GETFD), FD_CLOEXEC) << "the process has lost it";
  EXPECT_GE(fcntl(STDIN_FILENO, F_GETFD), 0);
}

TEST_P(HostCloses, OfItsOwnAreNot) {
  (void)OfTheTest();
  EXPECT_UNWINDS_CLEANLY(WithAnEvent(GetParam().name, GetParam().repaired));
}

// What every cycle closes is usual, wherever the faulted one closes it.
TEST_P(HostCloses, OfEveryCycleAreNot) {
  (void)OfTheTest();
  EXPECT_UNWINDS_CLEANLY(WithAnEvent(GetParam().name, kNothing, GetParam().wrong));
  EXPECT_ALLOCATION_NEUTRAL(WithAnEvent(GetParam().name, kNothing, GetParam().wrong));
}

INSTANTIATE_TEST_SUITE_P(
    Every, HostCloses,
    ::testing::Values(Closed{"of_the_test", [] { close(OfTheTest()); }, [] { close(dup(OfTheTest())); }, kOfTheTest},
                      Closed{"in_a_range", [] { close_range(static_cast<unsigned>(OfTheTest()), static_cast<unsigned>(OfTheTest()), 0); },
                             [] {
                               const auto own = static_cast<unsigned>(dup(OfTheTest()));
                               close_range(own, own, 0);
                             },
                             kOfTheTest},
                      Closed{"a_standard_stream", [] { close(STDIN_FILENO); },
                             [] {
                               close(STDIN_FILENO);
                               open("/dev/null", O_RDONLY);
                             },
                             kOfTheTest},
                      Closed{"again", [] { CloseTwice(dup(OfTheTest())); },
                             [] {
                               close(dup(OfTheTest()));
                               close(dup(OfTheTest()));
                             },
                             "it was closed already"}),
    [](const auto& test) { return std::string(test.param.name); });

// A failing cycle closes in its own way what every cycle closes, and loses something else.
TEST(HostCloses, ElsewhereIsAsUsual) {
  static std::vector<pthread_mutex_t> lost(10000);
  static std::size_t used = 0;
  (void)OfTheTest();
  const Audit audit = Sweep(Lifecycle("closes_elsewhere").WithCurrentContext().Init([](DriverRef driver) {
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) {
      close(OfTheTest());
      pthread_mutex_init(&lost.at(used++), nullptr);
      return code;
    }
    close(OfTheTest());
    return driver.EventDestroy(event);
  }));
  EXPECT_THAT(Texts(audit), ElementsAre("leak mutex 1" + kFault)) << audit.Text();
}

// A close too many of one sort, where every cycle makes one of the other sort.
TEST(HostCloses, OneSortExcusesNoOther) {
  const auto closes = [](const char* name, const Do& usual, const Do& failing) {
    return Lifecycle(name).WithCurrentContext().Init([usual, failing](DriverRef driver) {
      CUevent event = nullptr;
      const CUresult code = driver.EventCreate(&event, 0);
      (code == CUDA_SUCCESS ? usual : failing)();
      return code == CUDA_SUCCESS ? driver.EventDestroy(event) : code;
    });
  };
  const Do of_the_test = [] { close(OfTheTest()); };
  const Do again = [] { CloseTwice(dup(OfTheTest())); };
  const Do again_elsewhere = [] { CloseTwice(dup(OfTheTest())); };
  const Audit twice = Sweep(closes("twice", of_the_test, again));
  ASSERT_THAT(Texts(twice), ElementsAre("deficit file_descriptor 1" + kFault)) << twice.Text();
  EXPECT_THAT(twice.findings.at(0).detail, HasSubstr("it was closed already"));
  const Audit theirs = Sweep(closes("theirs", again, of_the_test));
  ASSERT_THAT(Texts(theirs), ElementsAre("deficit file_descriptor 1" + kFault)) << theirs.Text();
  EXPECT_THAT(theirs.findings.at(0).detail, HasSubstr(kOfTheTest));
  EXPECT_UNWINDS_CLEANLY(closes("again_elsewhere", again, again_elsewhere));
}

// As a program does that goes on without its parent's files. The copies are closed, too: nothing is said, and what it closed is gone.
TEST(HostCloses, ARangeWithoutAnEndIsNotTold) {
  const int first = fcntl(OfTheTest(), F_DUPFD_CLOEXEC, 900);
  const Audit audit = Sweep(WithAnEvent("closes_all", [&] { close_range(static_cast<unsigned>(first), ~0U, 0); }));
  EXPECT_TRUE(audit.clean()) << audit.Text();
  EXPECT_EQ(fcntl(first, F_GETFD), -1);
}

// Who waits for the last end of a pipe hears of the close, although a copy of a file would be kept until the end of the cycle.
TEST(HostCloses, APipesReaderHearsOfItAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  ssize_t got = -1;
  (void)Sweep(WithAnEvent("pipe", [&] {
    char byte = 0;
    close(ends[1]);
    got = read(ends[0], &byte, 1);
  }));
  EXPECT_EQ(got, 0);
  close(ends[0]);
}

// A loop over all numbers takes the copies along: what was closed stays closed, and no number of somebody else's is taken.
TEST(HostCloses, ALoopThatTakesTheCopiesToo) {
  const int theirs = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const Audit audit = Sweep(WithAnEvent("loop", [&] {
    close(theirs);
    for (int i = 200; i < 232; ++i) close(i);
  }));
  EXPECT_EQ(audit.verdicts.count("crash"), 0U);
  EXPECT_EQ(fcntl(theirs, F_GETFD), -1);
}

// It may be a thread of the test, which owns what it closes: nothing is said, and nothing opened again.
TEST(HostCloses, WhatAnotherThreadClosesIsItsOwn) {
  const int theirs = dup(OfTheTest());
  EXPECT_UNWINDS_CLEANLY(WithAnEvent("in_a_thread", [&] { std::thread([&] { close(theirs); }).join(); }));
  EXPECT_EQ(fcntl(theirs, F_GETFD), -1);
}

}  // namespace
}  // namespace cuaudit::testing::host_closes_test
