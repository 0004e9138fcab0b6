// SPDX-License-Identifier: MIT
#include "harness/lifecycle/stop_signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>

namespace cuaudit::harness {
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
