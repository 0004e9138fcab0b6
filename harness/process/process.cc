// SPDX-License-Identifier: MIT
#include "harness/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "faults/journal/layout.h"
#include "faults/journal/record.h"
#include "faults/plan/fork_file.h"
#include "harness/process/left_behind.h"

#if defined(__SANITIZE_ADDRESS__)  // GCC
#define CUAUDIT_HAS_ASAN 1
#elif defined(__has_feature)
#define CUAUDIT_HAS_ASAN __has_feature(address_sanitizer)
#else
#define CUAUDIT_HAS_ASAN 0
#endif

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kWholeDay = 86400000;
constexpr std::uint64_t kAnswerMs = 2000;  // what a process gets to say where its threads are; one that answers is gone at once
constexpr std::string_view kJournalLine = "CUAUDIT_OPTIONS=journal=";

std::uint64_t NowMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct ChildPlan {
  const char* path;
  char* const* arguments;
  char* const* environment;
  const char* directory;  // null: this one
  int input;              // -1: inherited
  int output;             // -1: inherited
  int failure;
  bool own_group;
  pid_t parent;
  const sigset_t* mask;
};

// Runs between vfork and exec, in the tool's memory: only async-signal-safe calls are allowed.
[[noreturn]] void Become(const ChildPlan& plan) {
  if (plan.own_group) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(127);
  }
  bool wired = true;
  if (plan.input >= 0) wired = dup2(plan.input, STDIN_FILENO) >= 0;
  if (plan.output >= 0) wired = wired && dup2(plan.output, STDOUT_FILENO) >= 0 && dup2(plan.output, STDERR_FILENO) >= 0;
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  sigprocmask(SIG_SETMASK, plan.mask, nullptr);
  wired = wired && (plan.directory == nullptr || chdir(plan.directory) == 0);
  if (wired) execve(plan.path, plan.arguments, plan.environment);
  const int error = errno;
  ssize_t ignored = write(plan.failure, &error, sizeof(error));
  static_cast<void>(ignored);
  _exit(127);
}

Ending FromWaitStatus(int status, bool timed_out) {
  Ending ending = {.timed_out = timed_out};
  if (WIFSIGNALED(status)) {
    ending.signal = WTERMSIG(status);
  } else {
    ending.exit_status = WEXITSTATUS(status);
  }
  return ending;
}

sigset_t Taken() {
  sigset_t taken = EndingSignals();
  sigaddset(&taken, SIGCHLD);
  return taken;
}

// The path in the line by which a process's descendants are known; empty when the line names none.
std::string JournalOf(const std::string& origin) {
  if (!origin.starts_with(kJournalLine)) return {};
  return origin.substr(kJournalLine.size(), origin.find(';') - kJournalLine.size());
}

// Asks the process where its threads are. False: it cannot answer, or would not know the signal.
bool AskForStops(pid_t pid, const std::string& journal) {
  const FileDescriptor file(journal.empty() ? -1 : open(journal.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::uint32_t flags = 0;
  constexpr auto kFlags = static_cast<off_t>(offsetof(faults::JournalHeader, flags));
  if (!file.valid() || pread(file.get(), &flags, sizeof(flags), kFlags) != static_cast<ssize_t>(sizeof(flags))) return false;
  sigval request = {};
  request.sival_int = faults::kStopRequest;
  return (flags & faults::kTellsStops) != 0 && sigqueue(pid, faults::StopRequestSignal(), request) == 0;
}

// The signal mask from before the first SignalsTaken, and how many exist.
int takers = 0;
sigset_t mask_before = {};

}  // namespace

SignalsTaken::SignalsTaken() {
  const sigset_t taken = Taken();
  sigset_t mask;
  sigprocmask(SIG_BLOCK, &taken, &mask);
  if (takers++ == 0) mask_before = mask;
}

SignalsTaken::~SignalsTaken() {
  if (--takers == 0) sigprocmask(SIG_SETMASK, &mask_before, nullptr);
}

ProcessPool::ProcessPool() {
  const sigset_t taken = Taken();
  Orphans::OfThisProcess().Begin();
  signals_ = FileDescriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

void ProcessPool::Kill(const Running& one) const {
  if (!one.foreground && before_kill_) before_kill_();
  if (!one.foreground) kill(-one.pid, SIGKILL);
  kill(one.pid, SIGKILL);  // it may have left its group
}

void ProcessPool::End(Running* one, std::uint64_t now) const {
  if (!one->timed_out && AskForStops(one->pid, one->journal)) {
    one->timed_out = true;
    one->deadline_at = now + kAnswerMs;
    return;
  }
  one->timed_out = one->killed = true;
  Kill(*one);
}

void ProcessPool::Stop() {
  for (const Running& one : running_) {
    Kill(one);
    waitpid(one.pid, nullptr, 0);
    Orphans::OfThisProcess().Remove(one.pid, one.foreground, spared_);
  }
  running_.clear();
}

ProcessPool::~ProcessPool() {
  Stop();
  Orphans::OfThisProcess().End();
}

Status ProcessPool::Start(std::size_t tag, const Launch& launch) {
  FileDescriptor input;
  FileDescriptor output;
  if (!launch.foreground) {
    input = FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
    // A program may have put a pipe in the place of the file, which would wait for a reader without O_NONBLOCK.
    output = FileDescriptor(open(launch.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666));
    if (!input.valid() || !output.valid()) return {Exit::Failure, launch.output + ": cannot open: " + std::strerror(errno)};
    fcntl(output.get(), F_SETFL, O_APPEND);
  }
  if (launch.foreground && launch.stdout_is_ours) {
    output = FileDescriptor(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!output.valid()) return {Exit::Failure, std::string("stderr: cannot copy: ") + std::strerror(errno)};
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {Exit::Failure, std::string("cannot make a pipe: ") + std::strerror(errno)};
  const FileDescriptor report(ends[0]);
  FileDescriptor failure(ends[1]);

  const std::vector<char*> arguments = Pointers(launch.arguments);
  const std::vector<char*> environment = Pointers(launch.environment);
  const char* const directory = launch.directory.empty() ? nullptr : launch.directory.c_str();
  const ChildPlan plan{launch.path.c_str(), arguments.data(), environment.data(), directory, input.get(),
                       output.get(),        failure.get(),    !launch.foreground, getpid(),  &mask_before};
#if CUAUDIT_HAS_ASAN
  const pid_t pid = fork();  // AddressSanitizer takes the redzones off the stack of a function that does not return, here the tool's own
#else
  const pid_t pid = vfork();  // a fork would copy the tool's page tables, and then each page that the tool writes to
#endif
  if (pid < 0) return {Exit::Failure, std::string("cannot start a process: ") + std::strerror(errno)};
  if (pid == 0) Become(plan);
  if (!launch.foreground) setpgid(pid, pid);
  failure = FileDescriptor();

  int error = 0;
  ssize_t got = 0;
  do {
    got = read(report.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof(error))) {
    waitpid(pid, nullptr, 0);
    return {Exit::Usage, launch.path + ": cannot execute: " + std::strerror(error)};
  }
  Running one;
  one.tag = tag;
  one.pid = pid;
  one.foreground = launch.foreground;
  one.deadline_at = launch.deadline_ms == 0 ? 0 : NowMs() + launch.deadline_ms;
  return Watch(std::move(one), OriginOf(launch));
}

Status ProcessPool::Watch(Running one, const std::string& origin) {
  one.exited = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, one.pid, 0)));
  if (!one.exited.valid()) {
    const int reason = errno;
    kill(one.foreground ? one.pid : -one.pid, SIGKILL);
    waitpid(one.pid, nullptr, 0);
    return {Exit::Failure, std::string("cannot watch a process: pidfd_open: ") + std::strerror(reason)};
  }
  Orphans::OfThisProcess().Add(one.pid, origin, !one.foreground);
  one.journal = JournalOf(origin);
  running_.push_back(std::move(one));
  return {};
}

bool ProcessPool::CanAdopt(pid_t pid) const {
  siginfo_t seen = {};
  return pid > 0 && waitid(P_PID, static_cast<id_t>(pid), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         std::none_of(running_.begin(), running_.end(), [pid](const Running& one) { return one.pid == pid; });
}

Status ProcessPool::Adopt(std::size_t tag, pid_t pid, std::uint64_t deadline_ms, const std::string& origin) {
  Running one;
  one.tag = tag;
  one.pid = pid;
  one.deadline_at = deadline_ms == 0 ? 0 : NowMs() + deadline_ms;
  return Watch(std::move(one), origin);
}

void ProcessPool::Postpone(std::size_t tag, std::uint64_t deadline_ms) {
  for (Running& one : running_) {
    if (one.tag == tag && one.deadline_at != 0 && !one.timed_out) one.deadline_at = NowMs() + deadline_ms;
  }
}

ProcessPool::Ended ProcessPool::Reap(std::size_t index) {
  Running& one = running_[index];
  // The process is still a zombie, so its process id cannot belong to another process.
  if (!one.foreground) Kill(one);
  int status = 0;
  while (waitpid(one.pid, &status, 0) < 0 && errno == EINTR) {
  }
  // A signal to the whole group may end the program before this process has read its own copy.
  signalfd_siginfo seen = {};
  while (one.foreground && read(signals_.get(), &seen, sizeof(seen)) == static_cast<ssize_t>(sizeof(seen))) {
    if (interrupted_ == 0 && seen.ssi_signo != SIGCHLD) interrupted_ = static_cast<int>(seen.ssi_signo);
  }
  Ended ended{one.tag, FromWaitStatus(status, one.timed_out)};
  const LeftBehind left = Orphans::OfThisProcess().Remove(one.pid, one.foreground, spared_);
  ended.ending.left_behind = left.alive;
  ended.ending.orphans = left.orphans;
  ended.ending.survived = left.survived;
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  return ended;
}

Result<ProcessPool::Ended> ProcessPool::WaitAny() {
  if (running_.empty()) return Status(Exit::Failure, "no process to wait for");
  for (;;) {
    Result<std::optional<Ended>> ended = WaitSome(kWholeDay);
    if (!ended.ok()) return ended.status();
    if (ended->has_value()) return **ended;
  }
}

Result<std::optional<ProcessPool::Ended>> ProcessPool::WaitSome(std::uint64_t patience_ms) {
  const std::uint64_t until = NowMs() + patience_ms;
  std::vector<pollfd> watched;
  for (;;) {
    watched.clear();
    std::uint64_t next = until;
    bool foreground = false;
    for (const Running& one : running_) {
      watched.push_back({one.exited.get(), POLLIN, 0});
      foreground = foreground || one.foreground;
      if (one.deadline_at != 0 && !one.killed) next = std::min(next, one.deadline_at);
    }
    watched.push_back({signals_.get(), POLLIN, 0});
    const std::uint64_t before = NowMs();
    const int timeout = next <= before ? 0 : static_cast<int>(std::min<std::uint64_t>(next - before, 1U << 30));
    const int ready = poll(watched.data(), watched.size(), timeout);
    if (ready < 0 && errno != EINTR) return Status(Exit::Failure, std::string("poll: ") + std::strerror(errno));

    // A process that finished exactly at its deadline finished, so endings are read before deadlines are checked.
    for (std::size_t i = 0; ready > 0 && i < running_.size(); ++i) {
      if (watched[i].revents != 0) return std::optional<Ended>(Reap(i));
    }
    signalfd_siginfo signal_seen = {};
    bool child = false;
    while (read(signals_.get(), &signal_seen, sizeof(signal_seen)) == static_cast<ssize_t>(sizeof(signal_seen))) {
      const int number = static_cast<int>(signal_seen.ssi_signo);
      if (number == SIGCHLD) {
        child = true;
        continue;
      }
      interrupted_ = number;
      // A program in the foreground gets Ctrl-C from the terminal and decides what to do. Other signals reached only this process.
      if (!foreground) return Status(Exit::Failure, std::string("stopped by ") + strsignal(number));
      if (signal_seen.ssi_code != SI_KERNEL) {
        for (const Running& one : running_) kill(one.pid, number);
      }
    }
    const std::uint64_t now = NowMs();
    for (Running& one : running_) {
      if (one.deadline_at != 0 && !one.killed && now >= one.deadline_at) End(&one, now);
    }
    // What an ended program in the foreground left behind is not judged, and there may be any number of it.
    if (child && foreground) Orphans::OfThisProcess().ReapEnded();
    if (child || now >= until) return std::optional<Ended>();
  }
}

std::string OriginOf(const Launch& launch) {
  std::string origin;
  for (const std::string& line : launch.environment) {
    const bool own_journal = line.starts_with(kJournalLine);
    const bool forks = line.starts_with(std::string(faults::kForkVariable) + "=");  // copies of the program also have this journal
    if (forks || (own_journal && origin.empty())) origin = line;
  }
  return origin;
}

Result<Ending> RunToEnd(const Launch& launch, int* interrupted) {
  ProcessPool pool;
  Status started = pool.Start(0, launch);
  if (!started.ok()) return started;
  Result<ProcessPool::Ended> ended = pool.WaitAny();
  *interrupted = pool.interrupted();
  if (!ended.ok()) return ended.status();
  return ended->ending;
}

}  // namespace cuaudit::harness
