// SPDX-License-Identifier: MIT
// Each process that dies here is a forked child, which writes to a journal file that the test reads afterwards.
#include "faults/shim/stop_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "faults/shim/thread_identity.h"
#include "suites/support/temporary_journal.h"

namespace cuaudit::faults::stop_watch_test {
namespace {

// The objects stay: the handlers use them.
void Watch(const TemporaryJournal& file) {
  auto* const journal = new Journal;
  auto* const stacks = new StackTable;
  if (journal->Open(file.path()) != nullptr) _exit(99);
  stacks->Attach(journal, false);
  WatchStops(journal, stacks);
}

template <typename Body>
pid_t Child(const Body& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  ForgetThread();
  body();
  _exit(0);
}

int EndOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

struct Written {
  std::vector<Record> stops;
  bool tells = false;  // the process may be asked for the places of its threads
};

Written In(const TemporaryJournal& file) {
  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  EXPECT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  Written written;
  for (const Record& record : view.records()) {
    if (record.kind == RecordKind::Stop) written.stops.push_back(record);
  }
  written.tells = (view.header().flags.load() & kTellsStops) != 0;
  return written;
}

TEST(StopWatch, ADeathIsWrittenAndEndsTheProcessByTheSameSignal) {
  const TemporaryJournal file;
  const pid_t child = Child([&] {
    Watch(file);
    raise(SIGTRAP);
  });
  const int status = EndOf(child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTRAP);
  const std::vector<Record> stops = In(file).stops;
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].call, SIGTRAP);
  EXPECT_EQ(stops[0].pid, static_cast<std::uint32_t>(child));
  EXPECT_EQ(static_cast<std::int64_t>(stops[0].argument[0]), SI_TKILL);
  EXPECT_EQ(stops[0].argument[1], 0U) << "no address could not be accessed";
  EXPECT_EQ(stops[0].argument[3], 0U) << "no driver call was under way";
  EXPECT_NE(stops[0].stack, 0U);
}

TEST(StopWatch, AFaultHasTheAddressThatCouldNotBeAccessed) {
  const TemporaryJournal file;
  void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const int status = EndOf(Child([&] {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler
    Watch(file);
    *static_cast<volatile char*>(page) = 1;
  }));
  munmap(page, 4096);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  const std::vector<Record> stops = In(file).stops;
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].argument[0], static_cast<std::uint64_t>(SEGV_ACCERR));
  EXPECT_EQ(stops[0].argument[1], reinterpret_cast<std::uintptr_t>(page));
}

TEST(StopWatch, AHandlerOfTheProgramIsLeftAlone) {
  const TemporaryJournal file;
  const int status = EndOf(Child([&] {
    signal(SIGTRAP, [](int) { _exit(7); });
    Watch(file);
    raise(SIGTRAP);
  }));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(In(file).stops.empty());
}

TEST(StopWatch, EachThreadAnswersARequestAndTheProcessIsKilled) {
  const TemporaryJournal file;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = Child([&] {
    Watch(file);
    std::thread other([&] {
      (void)!write(ready[1], "", 1);
      for (;;) pause();
    });
    for (;;) pause();
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(In(file).tells);
  sigval request = {};
  request.sival_int = kStopRequest;
  ASSERT_EQ(sigqueue(child, StopRequestSignal(), request), 0);
  const int status = EndOf(child);
  for (const int end : ready) close(end);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  const std::vector<Record> stops = In(file).stops;
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_NE(stops[0].tid, stops[1].tid);
  for (const Record& stop : stops) EXPECT_EQ(stop.call, 0U) << "no signal ended it";
}

TEST(StopWatch, TheSignalOfARequestFromSomebodyElseHasItsDefaultDisposition) {
  const TemporaryJournal file;
  const int status = EndOf(Child([&] {
    Watch(file);
    raise(StopRequestSignal());
  }));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), StopRequestSignal());
  EXPECT_TRUE(In(file).stops.empty());
}

// The child of a vfork dies in its parent's memory.
TEST(StopWatch, OnlyAForkedChildThatOwnsItsMemoryWrites) {
  for (const bool owns : {false, true}) {
    const TemporaryJournal file;
    const int status = EndOf(Child([&] {
      Watch(file);
      const int died = EndOf(Child([&] {
        if (owns) WatchStopsInChild();
        raise(SIGTRAP);
      }));
      _exit(WIFSIGNALED(died) && WTERMSIG(died) == SIGTRAP ? 0 : 1);
    }));
    EXPECT_EQ(status, 0);
    EXPECT_EQ(In(file).stops.size(), owns ? 1U : 0U);
  }
}

TEST(StopWatch, KnowsItsOwnHandlers) {
  EXPECT_FALSE(IsWatched(SIGTRAP)) << "before the watch";
  const TemporaryJournal file;
  EXPECT_EQ(EndOf(Child([&] {
              Watch(file);
              if (!IsWatched(SIGTRAP) || !IsWatched(StopRequestSignal()) || IsWatched(SIGTERM)) _exit(1);
              if (!IsWatchHandler(WatchAction(SIGTRAP)) || !IsWatchHandler(WatchAction(StopRequestSignal()))) _exit(2);
              struct sigaction own = {};
              own.sa_handler = SIG_DFL;
              if (IsWatchHandler(own)) _exit(3);
            })),
            0);
  EXPECT_TRUE(In(file).tells);
}

TEST(StopWatch, WhoTakesTheSignalOfTheRequestCannotBeAsked) {
  const TemporaryJournal file;
  EXPECT_EQ(EndOf(Child([&] {
              Watch(file);
              NoteDisposition(SIGTRAP, false);
              if (!In(file).tells) _exit(1);
              NoteDisposition(StopRequestSignal(), false);
            })),
            0);
  EXPECT_FALSE(In(file).tells);
}

}  // namespace
}  // namespace cuaudit::faults::stop_watch_test
