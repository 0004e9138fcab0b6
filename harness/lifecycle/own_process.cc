// SPDX-License-Identifier: MIT
#include "harness/lifecycle/own_process.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <string_view>
#include <vector>

#include "harness/process/files.h"
#include "harness/process/shell.h"

namespace cuaudit::harness {
namespace {

std::mutex guard;

std::string& TestFilter() {
  static std::string filter;
  return filter;
}

// Options that choose tests, repeats or outputs. The reproduce line sets its own.
bool ChoosesTests(std::string_view word) {
  constexpr std::string_view kFlags[] = {"--gtest_filter", "--gtest_repeat", "--gtest_shuffle", "--gtest_output", "--gtest_color"};
  for (const std::string_view flag : kFlags) {
    if (word.starts_with(flag)) return true;
  }
  return false;
}

}  // namespace

void SetTestFilter(const std::string& filter) {
  const std::lock_guard<std::mutex> lock(guard);
  TestFilter() = filter;
}

std::vector<std::string> CommandWords() {
  const Result<std::string> bytes = ReadFile("/proc/self/cmdline");
  std::vector<std::string> words;
  if (bytes.ok()) {
    for (std::size_t at = 0; at < bytes->size();) {
      const std::size_t end = bytes->find('\0', at);
      words.push_back(bytes->substr(at, end - at));
      if (end == std::string::npos) break;
      at = end + 1;
    }
  }
  if (words.empty()) words.emplace_back("./test");
  return words;
}

std::string CommandLine() {
  const std::vector<std::string> words = CommandWords();
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
