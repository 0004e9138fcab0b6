// SPDX-License-Identifier: MIT
#include "harness/process/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::process_test {
namespace {

using testing::HasSubstr;

Launch Shell(const std::string& script, std::uint64_t deadline_ms = 60000) {
  Launch launch;
  launch.path = "/bin/sh";
  launch.arguments = {"sh", "-c", script};
  launch.environment = {"PATH=/usr/bin:/bin", "WORD=from the environment"};
  launch.output = "/dev/null";
  launch.deadline_ms = deadline_ms;
  return launch;
}

Ending End(const Launch& launch) {
  int interrupted = 0;
  const Result<Ending> ending = RunToEnd(launch, &interrupted);
  EXPECT_TRUE(ending.ok()) << ending.status().message();
  return *ending;
}

TEST(Process, TellsExitStatusAndSignalApart) {
  EXPECT_EQ(End(Shell("exit 0")).exit_status, 0);
  EXPECT_EQ(End(Shell("exit 77")).exit_status, 77);
  const Ending aborted = End(Shell("kill -ABRT $$"));
  EXPECT_EQ(aborted.signal, SIGABRT);
  EXPECT_FALSE(aborted.timed_out);
}

TEST(Process, KillsWhatMissesItsDeadline) {
  // The shell waits for a child that ignores everything it can; both are in the killed group.
  const Ending ending = End(Shell("trap '' TERM INT; cat /dev/zero >/dev/null & wait", 50));
  EXPECT_TRUE(ending.timed_out);
  EXPECT_EQ(ending.signal, SIGKILL);
}

TEST(Process, TakesTheWholeGroupWithIt) {
  const TemporaryDir dir;
  const std::string fifo = dir.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_EQ(End(Shell("(echo ready; exec cat /dev/zero >/dev/null) >" + fifo + " & exit 5")).exit_status, 5);
  // The left-behind child held the write end; end of file comes only when it is gone.
  ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
  std::string text;
  char byte = 0;
  while (read(reader, &byte, 1) == 1) text += byte;
  close(reader);
  EXPECT_TRUE(text.empty() || text == "ready\n") << text;
}

// A shell in a session of its own starts `cat` on the fifo, and goes.
constexpr const char* kDaemon = "setsid sh -c 'cat <\"$FIFO\" >/dev/null & :'; exit 0";

TEST(Process, EndsWhatLeftItsGroupAndOrphanedItself) {
  const TemporaryDir dir;
  const std::string fifo = dir.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int writer = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  Launch launch = Shell(kDaemon);
  launch.environment = {"PATH=/usr/bin:/bin", "FIFO=" + fifo, "CUAUDIT_OPTIONS=journal=" + dir.File("journal")};
  const Ending ending = End(launch);
  EXPECT_EQ(ending.exit_status, 0);
  EXPECT_EQ(ending.left_behind, 1U);
  EXPECT_EQ(ending.orphans, 1U);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "nothing of it is left, dead or alive";
  EXPECT_EQ(End(Shell("exit 0")).left_behind, 0U);
  close(writer);
}

TEST(Process, ToldApartByTheirEnvironmentWhatOthersLeaveStays) {
  const TemporaryDir dir;
  const std::string fifo = dir.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int writer = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  const std::string begun = dir.File("begun");
  const std::string done = dir.File("done");
  ASSERT_EQ(mkfifo(begun.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(done.c_str(), 0600), 0);
  ProcessPool pool;
  // It leaves its helper to itself and goes on: the helper is its own until it ends, whoever ends meanwhile.
  Launch longer = Shell("setsid sh -c 'cat <\"$FIFO\" >/dev/null & :'; echo ready >\"$BEGUN\"; read line <\"$DONE\"; exit 4");
  longer.environment = {"PATH=/usr/bin:/bin", "FIFO=" + fifo, "BEGUN=" + begun, "DONE=" + done,
                        "CUAUDIT_OPTIONS=journal=" + dir.File("one")};
  ASSERT_TRUE(pool.Start(1, longer).ok());
  Launch shorter = Shell("read line <\"$BEGUN\"; exit 5");
  shorter.environment = {"PATH=/usr/bin:/bin", "BEGUN=" + begun, "CUAUDIT_OPTIONS=journal=" + dir.File("two")};
  ASSERT_TRUE(pool.Start(2, shorter).ok());
  const Result<ProcessPool::Ended> first = pool.WaitAny();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->ending.exit_status, 5);
  EXPECT_EQ(first->ending.left_behind, 0U);
  Launch last = Shell("echo go >\"$DONE\"");
  last.environment = {"PATH=/usr/bin:/bin", "DONE=" + done};
  ASSERT_TRUE(pool.Start(3, last).ok());
  std::size_t left = 0;
  while (pool.size() != 0) {
    const Result<ProcessPool::Ended> ended = pool.WaitAny();
    ASSERT_TRUE(ended.ok());
    if (ended->tag == 1) left = ended->ending.left_behind;
  }
  EXPECT_EQ(left, 1U);
  close(writer);
}

TEST(Process, AChildFromBeforeIsSomebodyElses) {
  const TemporaryDir dir;
  const std::string fifo = dir.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int writer = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  const pid_t stranger = fork();
  if (stranger == 0) {
    const int reader = open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
    char byte = 0;
    _exit(read(reader, &byte, 1) == 1 ? 9 : 8);
  }
  EXPECT_EQ(End(Shell("exit 0")).orphans, 0U);
  ASSERT_EQ(write(writer, "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(WEXITSTATUS(status), 9);
  close(writer);
}

TEST(Process, GivesEnvironmentAndOutputAndNoInput) {
  const TemporaryDir dir;
  Launch launch = Shell("echo \"$WORD\"; echo error >&2; read line || echo no input");
  launch.output = dir.File("log");
  EXPECT_EQ(End(launch).exit_status, 0);
  const Result<std::string> log = ReadFile(launch.output);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(*log, "from the environment\nerror\nno input\n");
}

TEST(Process, LeavesNoSignalBlockedInTheProgram) {
  const TemporaryDir dir;
  Launch launch = Shell("grep SigBlk /proc/self/status");
  launch.output = dir.File("log");
  EXPECT_EQ(End(launch).exit_status, 0);
  EXPECT_THAT(*ReadFile(launch.output), HasSubstr("0000000000000000"));
}

TEST(Process, SaysWhatCannotBeExecuted) {
  const TemporaryDir dir;
  Launch launch = Shell("");
  launch.path = dir.path();
  ProcessPool pool;
  const Status status = pool.Start(0, launch);
  EXPECT_EQ(status.exit(), Exit::Usage);
  EXPECT_THAT(status.message(), HasSubstr("cannot execute"));
  EXPECT_EQ(pool.size(), 0U);
}

TEST(Process, AnswersWhoeverEndsFirst) {
  const TemporaryDir dir;
  const std::string fifo = dir.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ProcessPool pool;
  ASSERT_TRUE(pool.Start(1, Shell("read line <" + fifo + "; exit 1")).ok());
  ASSERT_TRUE(pool.Start(2, Shell("exit 2")).ok());
  Result<ProcessPool::Ended> first = pool.WaitAny();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->tag, 2U);
  EXPECT_EQ(first->ending.exit_status, 2);
  ASSERT_TRUE(pool.Start(3, Shell("echo go >" + fifo)).ok());
  std::set<std::size_t> rest;
  while (pool.size() != 0) rest.insert(pool.WaitAny()->tag);
  EXPECT_THAT(rest, testing::ElementsAre(1U, 3U));
}

TEST(Process, StopsOnASignalToItself) {
  ProcessPool pool;
  ASSERT_TRUE(pool.Start(0, Shell("exec cat /dev/zero >/dev/null")).ok());
  raise(SIGTERM);
  const Result<ProcessPool::Ended> ended = pool.WaitAny();
  EXPECT_FALSE(ended.ok());
  EXPECT_EQ(pool.interrupted(), SIGTERM);
}

}  // namespace
}  // namespace cuaudit::harness::process_test
