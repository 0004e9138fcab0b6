// SPDX-License-Identifier: MIT
#include "harness/lifecycle/isolation.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>
#include <sstream>
#include <string_view>

#include "faults/journal/record.h"
#include "harness/process/files.h"
#include "harness/process/shell.h"

namespace cuaudit::harness {
namespace {

constexpr int kDeadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr std::size_t kMostWords = 4096;
constexpr int kAnswerMs = 2000;  // what a child gets to say where its threads are; one that answers is gone at once

// State of the signal handler. Only one sweep at a time has last words.
struct TrialWords {
  char text[kMostWords];
  std::size_t size;
  struct sigaction before[std::size(kDeadly)];
  pid_t owner;
};
TrialWords last_words;

void SayLastWords(int signal, siginfo_t*, void*) {
  // A forked child dies silently; its parent reports the death.
  if (getpid() == last_words.owner) (void)!write(STDERR_FILENO, last_words.text, last_words.size);
  for (std::size_t i = 0; i < std::size(kDeadly); ++i) {
    if (kDeadly[i] == signal) sigaction(signal, &last_words.before[i], nullptr);
  }
  // A hardware fault repeats when the handler returns. A signal that was sent must be raised again.
  if (signal == SIGABRT) raise(signal);
}

Ending EndingOf(int status) {
  Ending ending;
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ending.exit_status = WEXITSTATUS(status);
  return ending;
}

[[noreturn]] void BeChild(const std::function<void()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  body();
  _exit(0);
}

}  // namespace

SharedBytes::SharedBytes(std::size_t bytes) noexcept : size_(bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) bytes_ = memory;
}

SharedBytes::~SharedBytes() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

Result<Ending> RunForked(const std::function<void()>& body, std::uint32_t deadline_ms, const std::function<bool()>& still_going,
                         const std::function<bool()>& answers) {
  // A signal between a look at StopSignals::Seen and the wait would not end the wait, so stop signals arrive only in it.
  sigset_t stops;
  sigset_t before;
  sigemptyset(&stops);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stops, number);
  pthread_sigmask(SIG_BLOCK, &stops, &before);
  const pid_t child = fork();
  if (child <= 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return Status(Exit::Failure, std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) BeChild(body);
  const FileDescriptor ended(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  struct pollfd wait = {ended.get(), POLLIN, 0};
  int ready = 0;
  // An interrupted wait starts anew: the deadline is a bound against hanging and no measurement.
  const struct timespec deadline = {static_cast<time_t>(deadline_ms / 1000), static_cast<long>(deadline_ms % 1000) * 1000000};
  do ready = StopSignals::Seen() != 0 ? -1 : ppoll(&wait, 1, &deadline, &before);
  while ((ready < 0 && errno == EINTR && StopSignals::Seen() == 0) || (ready == 0 && still_going()));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const bool late = ended.valid() && ready <= 0;
  sigval request = {};
  request.sival_int = faults::kStopRequest;
  if (late && answers() && sigqueue(child, faults::StopRequestSignal(), request) == 0) (void)poll(&wait, 1, kAnswerMs);
  if (late) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
  }
  // The group is killed while the leader is a zombie, because the group's number could be reused afterwards.
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  kill(-child, SIGKILL);
  int status = 0;
  pid_t got = 0;
  do got = waitpid(child, &status, 0);
  while (got < 0 && errno == EINTR);
  if (got != child) return Status(Exit::Failure, std::string("lost the process of a trial: ") + std::strerror(errno));
  Ending ending = EndingOf(status);
  if (late) {
    ending = Ending();
    ending.timed_out = true;
  }
  return ending;
}

LastWords::LastWords() {
  last_words.size = 0;
  last_words.owner = getpid();
  struct sigaction action = {};
  action.sa_sigaction = &SayLastWords;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < std::size(kDeadly); ++i) sigaction(kDeadly[i], &action, &last_words.before[i]);
}

LastWords::~LastWords() {
  for (std::size_t i = 0; i < std::size(kDeadly); ++i) sigaction(kDeadly[i], &last_words.before[i], nullptr);
}

void LastWords::Set(const std::string& text) noexcept {
  last_words.size = 0;
  const std::size_t size = text.size() < kMostWords ? text.size() : kMostWords;
  std::memcpy(last_words.text, text.data(), size);
  last_words.size = size;
}

namespace {

std::mutex guard;

std::string& TestFilter() {
  static std::string filter;
  return filter;
}

// Options that choose tests, repeats or outputs. The reproduce line sets its own.
bool ChoosesTests(std::string_view word) {
  constexpr std::string_view kFlags[] = {"--gtest_filter", "--gtest_repeat", "--gtest_shuffle", "--gtest_output", "--gtest_color"};
  return std::any_of(std::begin(kFlags), std::end(kFlags), [word](std::string_view flag) { return word.starts_with(flag); });
}

std::vector<std::string> ReadCommandWords() {
  const Result<std::string> bytes = ReadFile("/proc/self/cmdline");
  std::istringstream text(bytes.ok() ? *bytes : std::string());
  std::vector<std::string> words;
  for (std::string word; std::getline(text, word, '\0');) words.push_back(word);
  if (words.empty()) words.emplace_back("./test");
  return words;
}

}  // namespace

void SetTestFilter(const std::string& filter) {
  const std::lock_guard<std::mutex> lock(guard);
  TestFilter() = filter;
}

const std::vector<std::string>& CommandWords() {
  static const auto* const words = new std::vector<std::string>(ReadCommandWords());  // never destroyed: sweeps may end in exit handlers
  return *words;
}

std::string CommandLine() {
  const std::vector<std::string>& words = CommandWords();
  const std::lock_guard<std::mutex> lock(guard);
  std::string line = ShellQuote(words.front());
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (TestFilter().empty() || !ChoosesTests(words[i])) line.append(" ").append(ShellQuote(words[i]));
  }
  if (!TestFilter().empty()) line.append(" ").append(ShellQuote("--gtest_filter=" + TestFilter()));
  return line;
}

bool IsOwnObject() noexcept {
  static const char kHere = 0;
  Dl_info here{};
  Dl_info program{};
  const auto* const entry = reinterpret_cast<const void*>(getauxval(AT_ENTRY));  // NOLINT(performance-no-int-to-ptr)
  return dladdr(&kHere, &here) != 0 && dladdr(entry, &program) != 0 && here.dli_fbase != program.dli_fbase;
}

namespace {

constexpr int kTaken[] = {SIGINT, SIGTERM, SIGHUP};
constexpr time_t kPatienceSeconds = 5;

// State of the handler.
struct {
  pid_t owner;
  std::atomic<int> seen;
  struct {
    bool taken;
    struct sigaction before;
    bool timed;
    timer_t timer;  // sends the signal again
  } of[std::size(kTaken)];
} state;

void Hear(int number) {
  const int error = errno;
  int none = 0;
  const bool first = getpid() == state.owner && state.seen.compare_exchange_strong(none, number);
  for (std::size_t i = 0; i < std::size(kTaken); ++i) {
    if (kTaken[i] != number) continue;
    const struct itimerspec patience = {{0, 0}, {kPatienceSeconds, 0}};
    if (first && state.of[i].timed && timer_settime(state.of[i].timer, 0, &patience, nullptr) == 0) continue;
    sigaction(number, &state.of[i].before, nullptr);
    raise(number);  // arrives when this handler has returned
  }
  errno = error;
}

}  // namespace

StopSignals::StopSignals() {
  state.owner = getpid();
  state.seen = 0;
  struct sigaction hear = {};
  hear.sa_handler = &Hear;
  hear.sa_flags = SA_RESTART | SA_ONSTACK;
  for (std::size_t i = 0; i < std::size(kTaken); ++i) {
    auto& one = state.of[i];
    sigaction(kTaken[i], nullptr, &one.before);
    one.taken = (one.before.sa_flags & SA_SIGINFO) != 0 || one.before.sa_handler != SIG_IGN;
    if (!one.taken) continue;
    struct sigevent again = {};
    again.sigev_notify = SIGEV_SIGNAL;
    again.sigev_signo = kTaken[i];
    one.timed = timer_create(CLOCK_MONOTONIC, &again, &one.timer) == 0;
    sigaction(kTaken[i], &hear, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < std::size(kTaken); ++i) {
    auto& one = state.of[i];
    if (!one.taken) continue;
    if (one.timed) timer_delete(one.timer);
    sigaction(kTaken[i], &one.before, nullptr);
  }
  state.seen = 0;
}

int StopSignals::Seen() noexcept { return state.seen; }

}  // namespace cuaudit::harness
