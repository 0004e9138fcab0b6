// SPDX-License-Identifier: MIT
// Programs that are started, watched and ended, and what they leave running.
#include "harness/process/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/left_behind.h"
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

Launch ShellIn(const std::string& script, std::vector<std::string> environment) {
  Launch launch = Shell(script, 20000);
  launch.environment = std::move(environment);
  launch.environment.emplace_back("PATH=/usr/bin:/bin");
  return launch;
}

Ending End(const Launch& launch) {
  int interrupted = 0;
  const Result<Ending> ending = RunToEnd(launch, &interrupted);
  EXPECT_TRUE(ending.ok()) << ending.status().message();
  return *ending;
}

// A named pipe whose reader waits as long as it lives.
struct HeldPipe {
  explicit HeldPipe(const TemporaryDir& dir) : name(dir.File("held")) {
    EXPECT_EQ(mkfifo(name.c_str(), 0600), 0);
    writer = open(name.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(writer, 0);
  }
  ~HeldPipe() { close(writer); }
  std::string name;
  int writer = -1;
};

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
  const HeldPipe held(dir);
  const Ending ending = End(ShellIn(kDaemon, {"FIFO=" + held.name, "CUAUDIT_OPTIONS=journal=" + dir.File("journal")}));
  EXPECT_EQ(ending.exit_status, 0);
  EXPECT_EQ(ending.left_behind, 1U);
  EXPECT_EQ(ending.orphans, 1U);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "nothing of it is left, dead or alive";
  EXPECT_EQ(End(Shell("exit 0")).left_behind, 0U);
}

// A fork can start a daemon before the tool has adopted the fork. If the program that forked it ends just then, the daemon is not its.
TEST(Process, WhatAForkLeavesThatIsNotAdoptedYetIsNotCountedForAnother) {
  const TemporaryDir dir;
  const HeldPipe held(dir);
  const Launch forking = ShellIn(std::string("export CUAUDIT_OPTIONS=journal=of_the_fork; ") + kDaemon,
                                 {"FIFO=" + held.name, "CUAUDIT_OPTIONS=journal=" + dir.File("journal")});
  ProcessPool pool;
  for (const bool all_adopted : {false, true}) {
    pool.Spare([all_adopted] { return std::vector<pid_t>(all_adopted ? 0 : 1, getpid()); });
    ASSERT_TRUE(pool.Start(1, all_adopted ? Shell("exit 0") : forking).ok());
    const Result<ProcessPool::Ended> ended = pool.WaitAny();
    ASSERT_TRUE(ended.ok());
    EXPECT_EQ(ended->ending.left_behind, all_adopted ? 1U : 0U);
  }
}

TEST(Process, ToldApartByTheirEnvironmentWhatOthersLeaveStays) {
  const TemporaryDir dir;
  const HeldPipe held(dir);
  const std::string begun = dir.File("begun");
  const std::string done = dir.File("done");
  ASSERT_EQ(mkfifo(begun.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(done.c_str(), 0600), 0);
  ProcessPool pool;
  // It leaves its helper to itself and goes on: the helper is its own until it ends, whoever ends meanwhile.
  Launch longer = Shell("setsid sh -c 'cat <\"$FIFO\" >/dev/null & :'; echo ready >\"$BEGUN\"; read line <\"$DONE\"; exit 4");
  longer.environment = {"PATH=/usr/bin:/bin", "FIFO=" + held.name, "BEGUN=" + begun, "DONE=" + done,
                        "CUAUDIT_OPTIONS=journal=" + dir.File("one")};
  ASSERT_TRUE(pool.Start(1, longer).ok());
  Launch shorter = Shell("read line <\"$BEGUN\"; exit 5");
  shorter.environment = {"PATH=/usr/bin:/bin", "BEGUN=" + begun, "CUAUDIT_OPTIONS=journal=" + dir.File("two")};
  ASSERT_TRUE(pool.Start(2, shorter).ok());
  const Result<ProcessPool::Ended> first = pool.WaitAny();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->ending.exit_status, 5);
  EXPECT_EQ(first->ending.left_behind, 0U);
  ASSERT_TRUE(pool.Start(3, ShellIn("echo go >\"$DONE\"", {"DONE=" + done})).ok());
  std::size_t left = 0;
  while (pool.size() != 0) {
    const Result<ProcessPool::Ended> ended = pool.WaitAny();
    ASSERT_TRUE(ended.ok());
    if (ended->tag == 1) left = ended->ending.left_behind;
  }
  EXPECT_EQ(left, 1U);
}

TEST(Process, AChildFromBeforeIsSomebodyElses) {
  const TemporaryDir dir;
  const HeldPipe held(dir);
  const pid_t stranger = fork();
  if (stranger == 0) {
    const int reader = open(held.name.c_str(), O_RDONLY | O_CLOEXEC);
    char byte = 0;
    _exit(read(reader, &byte, 1) == 1 ? 9 : 8);
  }
  EXPECT_EQ(End(Shell("exit 0")).orphans, 0U);
  ASSERT_EQ(write(held.writer, "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(WEXITSTATUS(status), 9);
}

TEST(Process, GivesEnvironmentAndOutputAndNoInput) {
  const TemporaryDir dir;
  Launch launch = Shell("echo \"$WORD\"; echo error >&2; read line || echo no input");
  launch.output = dir.File("log");
  EXPECT_EQ(End(launch).exit_status, 0);
  const Result<std::string> log = ReadFile(launch.output);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(*log, "from the environment\nerror\nno input\n");
  launch.output = dir.File("pipe");
  ASSERT_EQ(mkfifo(launch.output.c_str(), 0600), 0);
  EXPECT_THAT(ProcessPool().Start(1, launch).message(), HasSubstr("/pipe: cannot open: ")) << "nobody waits for a reader";
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

// The number of a process that is to be adopted comes from a program. Signals to 1 or to a stranger would end what is not the tool's.
TEST(Process, OnlyAChildThatNobodyHasCanBeAdopted) {
  ProcessPool pool;
  for (const pid_t stranger : {-1, 0, 1, getpid(), getppid()}) EXPECT_FALSE(pool.CanAdopt(stranger)) << stranger;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_TRUE(pool.CanAdopt(child)) << "whether it runs or has ended";
  ASSERT_TRUE(pool.Adopt(1, child, 0, {}).ok());
  EXPECT_FALSE(pool.CanAdopt(child)) << "twice";
  EXPECT_TRUE(pool.WaitAny().ok());
  EXPECT_FALSE(pool.CanAdopt(child)) << "it is gone";
}

TEST(Process, StopsOnASignalToItself) {
  ProcessPool pool;
  ASSERT_TRUE(pool.Start(0, Shell("exec cat /dev/zero >/dev/null")).ok());
  raise(SIGTERM);
  const Result<ProcessPool::Ended> ended = pool.WaitAny();
  EXPECT_FALSE(ended.ok());
  EXPECT_EQ(pool.interrupted(), SIGTERM);
}

// What a program leaves running: reaped while it goes on, told as it is where it cannot be ended, and left alone where it is somebody
// else's.

// The program waits until the tool has adopted its helper, lets that end, and waits until the tool has no such child any more.
TEST(LeftBehind, OrphansThatEndAreReapedWhileAProgramInTheForegroundGoesOn) {
  const TemporaryDir dir;
  const std::string fifo = dir.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Launch launch = ShellIn(
      "children() { cat /proc/$PPID/task/$PPID/children; }\n"
      "(sh -c 'read line <\"$FIFO\"' &)\n"
      "while [ \"$(children)\" = \"$$ \" ]; do :; done\n"
      "echo go >\"$FIFO\"\n"
      "while [ \"$(children)\" != \"$$ \" ]; do :; done\n"
      "exit 6\n",
      {"FIFO=" + fifo});
  launch.foreground = true;
  const Ending ending = End(launch);
  EXPECT_FALSE(ending.timed_out) << "its helper stayed a zombie";
  EXPECT_EQ(ending.exit_status, 6);
  EXPECT_EQ(ending.left_behind, 0U);
}

// kill(pid, SIGKILL) is refused for one process, not for a group.
bool RefuseToKillOne() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 5),
                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGKILL, 0, 3),
                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
                        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x80000000U, 1, 0),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(LeftBehind, WhatCouldNotBeEndedIsNotSaidToHaveBeen) {
  const TemporaryDir dir;
  const HeldPipe held(dir);
  constexpr int kNoFilter = 99;
  for (const bool refused : {false, true}) {
    const pid_t tool = fork();
    if (tool == 0) {
      if (refused && !RefuseToKillOne()) _exit(kNoFilter);
      const Ending ending = End(ShellIn(kDaemon, {"FIFO=" + held.name, "CUAUDIT_OPTIONS=journal=" + dir.File("journal")}));
      _exit(static_cast<int>(ending.left_behind * 10 + ending.survived));
    }
    int status = 0;
    ASSERT_EQ(waitpid(tool, &status, 0), tool);
    if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "no filter of system calls can be set here";
    EXPECT_EQ(WEXITSTATUS(status), refused ? 11 : 10);
  }
}

// '?' when nothing comes.
char ReadByte(int end) {
  constexpr int kPatienceMs = 10000;
  pollfd one = {end, POLLIN, 0};
  char byte = 0;
  return poll(&one, 1, kPatienceMs) == 1 && read(end, &byte, 1) == 1 ? byte : '?';
}

// The tool as the first process of a container, and a stranger that was put into that from outside.
class Container {
 public:
  // False: not allowed here.
  bool Start(const std::function<char()>& tool) {
    if (pipe2(go_, O_CLOEXEC) != 0 || pipe2(said_, O_CLOEXEC) != 0) return false;
    outer_ = fork();
    if (outer_ == 0) {
      close(go_[1]);  // or its end would never be read
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) _exit(1);
      const pid_t first = fork();
      if (first == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const bool own_proc =
            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && mount("proc", "/proc", "proc", 0, nullptr) == 0;
        Say(own_proc ? 'r' : 'n');
        char byte = 0;
        if (!own_proc || read(go_[0], &byte, 1) != 1) _exit(1);
        Say(tool());
        (void)!read(go_[0], &byte, 1);  // the container ends with it
        _exit(0);
      }
      (void)!write(said_[1], &first, sizeof(first));
      int status = 0;
      waitpid(first, &status, 0);
      _exit(0);
    }
    close(said_[1]);
    return read(said_[0], &first_, sizeof(first_)) == static_cast<ssize_t>(sizeof(first_)) && first_ > 0 && Hear() == 'r';
  }
  ~Container() {
    for (const int end : {go_[0], go_[1], said_[0]}) close(end);
    if (outer_ > 0) waitpid(outer_, nullptr, 0);
  }
  // Orphaned in there.
  void Put(const std::function<void()>& stranger) {
    const pid_t helper = fork();
    if (helper == 0) {
      const int space = open(("/proc/" + std::to_string(first_) + "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC);
      if (setns(space, CLONE_NEWPID) != 0) _exit(1);
      const pid_t middle = fork();
      if (middle == 0) {
        if (fork() == 0) stranger();
        _exit(0);
      }
      int status = 0;
      _exit(waitpid(middle, &status, 0) == middle ? WEXITSTATUS(status) : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(helper, &status, 0), helper);
    ASSERT_EQ(status, 0);
  }
  void Go() { ASSERT_EQ(write(go_[1], "g", 1), 1); }
  char Hear() { return ReadByte(said_[0]); }

 private:
  void Say(char byte) { (void)!write(said_[1], &byte, 1); }
  int go_[2] = {-1, -1};
  int said_[2] = {-1, -1};
  pid_t outer_ = -1;
  pid_t first_ = -1;
};

TEST(LeftBehind, AStrangersOrphanInTheToolsContainerIsNotEnded) {
  int poke[2];
  int answer[2];
  ASSERT_EQ(pipe2(poke, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(answer, O_CLOEXEC), 0);
  Container container;
  const bool started = container.Start([&] { return static_cast<char>('0' + End(ShellIn("exit 0", {})).left_behind); });
  if (!started) GTEST_SKIP() << "no process id namespace can be made here";
  container.Put([&] {
    char byte = 0;
    if (read(poke[0], &byte, 1) == 1) (void)!write(answer[1], "a", 1);
    _exit(0);
  });
  container.Go();
  EXPECT_EQ(container.Hear(), '0');
  close(answer[1]);
  ASSERT_EQ(write(poke[1], "p", 1), 1);
  EXPECT_EQ(ReadByte(answer[0]), 'a') << "the stranger is gone";
  for (const int end : {poke[0], poke[1], answer[0]}) close(end);
}

}  // namespace
}  // namespace cuaudit::harness::process_test
